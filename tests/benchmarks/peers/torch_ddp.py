# SPDX-License-Identifier: Apache-2.0
"""A training step of the MLP in two processes of one thread each: DistributedDataParallel on Gloo,
128 rows each. The first process sends the second numbers of steps to take along, 0 to end."""
import os
import shutil
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

import torch_models
import window


def make_step(rank, meeting):
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    model = DistributedDataParallel(torch_models.mlp(), gradient_as_bucket_view=True)
    return torch_models.training_step(model, torch_models.mlp_batch())


def follow(rank, meeting, commands):
    step = make_step(rank, meeting)
    while steps := commands.recv():
        for _ in range(steps):
            step()


def main():
    meeting = os.path.join(tempfile.mkdtemp(), "meeting")
    ours, theirs = mp.Pipe()
    follower = mp.get_context("spawn").Process(target=follow, args=(1, meeting, theirs))
    follower.start()
    step = make_step(0, meeting)
    pending = 0

    def step_together():
        # The follower gets its work in advance, in pieces, so that no step waits for the pipe.
        nonlocal pending
        if pending <= 4:
            ours.send(8)
            pending += 8
        pending -= 1
        step()

    window.answer_windows(f"{torch_models.VERSION} DDP Gloo", step_together)
    for _ in range(pending):
        step()
    ours.send(0)
    follower.join()
    dist.destroy_process_group()
    shutil.rmtree(os.path.dirname(meeting))


if __name__ == "__main__":
    main()
