#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How well examples/char_lm learns the King James Bible, against the same program in PyTorch
(peers/torch_char_lm.py). Both run once for each seed, side by side; the ratio of their mean
validation losses counts, as seeds alone differ by some percent. Exit code 0 only when it is within
the tolerance. Prints one table and writes build/benchmarks/char_lm.json. Takes minutes for each
seed; nothing is timed, so that the machine may do other work."""
import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys

import rows

TOLERANCE = 0.02
TEXT = rows.OUT / "bible.txt"


def programs():
    """Ours and the peer's."""
    example = rows.Program((str(rows.OUT / "release/examples/char_lm"), "--strategy", "one_device",
                            "--sample", "0", "--text", str(TEXT)), {}, ("char_lm",))
    return example, rows.torch("torch_char_lm.py", str(TEXT))


def start(program, *arguments):
    return subprocess.Popen((*program.command, *arguments), env=os.environ | program.environment,
                            stdout=subprocess.PIPE, text=True)


def loss_of(process):
    output, _ = process.communicate()
    loss = re.search(r"^validation loss (\S+)$", output, re.M)
    if process.returncode != 0 or not loss:
        sys.exit(f"{process.args[0]}: exit code {process.returncode}\n{output}")
    return float(loss[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="1, 2, ... so many")
    parser.add_argument("--steps", type=int, default=1000, help="of training")
    options = parser.parse_args()

    sides = programs()
    subprocess.run([rows.ROOT / "tests/benchmarks/prepare.sh",
                    *(need for side in sides for need in side.needs)], check=True)
    losses = []
    print("seed  ours    PyTorch")
    for seed in range(1, options.seeds + 1):
        arguments = ("--seed", str(seed), "--steps", str(options.steps))
        processes = [start(side, *arguments) for side in sides]
        try:
            pair = [loss_of(process) for process in processes]
        finally:
            for process in processes:
                process.kill()
        print("{:4}  {:.4f}  {:.4f}".format(seed, *pair), flush=True)
        losses.append(pair)
    ours, theirs = map(statistics.mean, zip(*losses))
    met = math.isclose(ours, theirs, rel_tol=TOLERANCE)
    print(f"mean  {ours:.4f}  {theirs:.4f}: {ours / theirs - 1:+.1%}, "
          f"within {TOLERANCE:.0%}: {'yes' if met else 'NO'}")
    result = {"workload": "char_lm", "losses": losses, "ours": ours, "peer": theirs,
              "ratio": ours / theirs, "tolerance": TOLERANCE, "met": met}
    (rows.OUT / "char_lm.json").write_text(json.dumps(result, indent=1) + "\n")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
