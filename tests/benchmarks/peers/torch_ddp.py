# SPDX-License-Identifier: Apache-2.0
"""torch_ddp.py mlp|lenet|resnet20|gpt: a training step in two processes of one thread and a batch
each, DistributedDataParallel on Gloo. The first process sends the second numbers of steps to take
along, 0 to end."""
import os
import shutil
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

import torch_models
import window


def make_step(name, rank, meeting):
    """The step, and how many parameters the model has."""
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    model, batch = torch_models.make(name)
    model = DistributedDataParallel(model, gradient_as_bucket_view=True)
    return torch_models.training_step(model, batch), torch_models.parameters_of(model)


def follow(name, rank, meeting, commands):
    step, _ = make_step(name, rank, meeting)
    while steps := commands.recv():
        for _ in range(steps):
            step()


def main():
    name = sys.argv[1]
    meeting = os.path.join(tempfile.mkdtemp(), "meeting")
    ours, theirs = mp.Pipe()
    follower = mp.get_context("spawn").Process(target=follow, args=(name, 1, meeting, theirs))
    follower.start()
    step, parameters = make_step(name, 0, meeting)
    pending = 0

    def step_together():
        # The follower gets its work in advance, in pieces, so that no step waits for the pipe.
        nonlocal pending
        if pending <= 4:
            ours.send(8)
            pending += 8
        pending -= 1
        return step()

    window.answer_training(f"{torch_models.VERSION} DDP Gloo", step_together, parameters)
    for _ in range(pending):
        step()
    ours.send(0)
    follower.join()
    dist.destroy_process_group()
    shutil.rmtree(os.path.dirname(meeting))


if __name__ == "__main__":
    main()
