#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""alike.py LOCKSTEP_RUN PROGRAM STRATEGY...: an example prints the same numbers under all of these.

A few steps of the example, as a user would run it. What it prints as "step N: NAME VALUE" must be within a tolerance
of what the first strategy gives, whose last number may have to be a fraction of its first; "workers:2" are two
processes of one replica each, of which the chief prints. Exit code 77, skipped, for "tpu" where no plugin stands in
for one.
"""
import gzip
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

TOLERANCE = {"gan": 1e-2}  # relus' slopes, which the penalty is made of, jump where another rounding crosses zero
FALL = {"char_lm": 0.65}
SKIPPED = 77
STEP = re.compile(r"^(?:\[(?P<worker>[^]]*)\] )?step (?P<step>\d+): \w+ (?P<value>\S+)", re.M)


def write_articles(folder):
    """Files as Fashion-MNIST's, of a few images that a network can tell apart."""
    for split, rows in (("train", 200), ("t10k", 40)):
        labels = [row * row % 10 for row in range(rows)]
        pixels = bytes(label * 25 if pixel // 78 == label else (row * pixel) % 128
                       for row, label in enumerate(labels) for pixel in range(28 * 28))
        for kind, dims, values in (("images-idx3", (rows, 28, 28), pixels), ("labels-idx1", (rows,), bytes(labels))):
            with gzip.open(pathlib.Path(folder) / f"{split}-{kind}-ubyte.gz", "wb") as file:
                file.write(struct.pack(f">BBBB{len(dims)}I", 0, 0, 8, len(dims), *dims) + values)


def arguments_of(example, folder):
    if example == "gan":
        return ["--steps", "10", "--print_every", "1"]
    if example == "own_gradients":
        return ["--epochs", "5"]
    if example == "char_lm":
        text = pathlib.Path(__file__).parents[2] / "LICENSE"
        return ["--text", str(text), "--layers", "2", "--size", "32", "--heads", "2", "--length", "32",
                "--batch", "15", "--steps", "50", "--rate", "0.005", "--print_every", "1", "--sample", "50"]
    write_articles(folder)
    return ["--data", folder, "--batch_size", "32", "--epochs", "2", "--dropout", "0", "--learning_rate", "3e-4",
            "--print_every", "1"]


def numbers_of(command):
    """[(step, value)] of each process that prints any."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, errors="replace", timeout=250,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}")
    processes = {}
    for match in STEP.finditer(done.stdout):
        processes.setdefault(match["worker"], []).append((int(match["step"]), float(match["value"])))
    return list(processes.values())


def main():
    launcher, program, *strategies = sys.argv[1:]
    plugin = os.environ.get("LOCKSTEP_PJRT_CPU_PLUGIN", "")
    if any(strategy.startswith("tpu") for strategy in strategies) and not os.path.exists(plugin):
        return SKIPPED
    tolerance = TOLERANCE.get(os.path.basename(program), 1e-3)
    expected, findings = None, 0
    with tempfile.TemporaryDirectory() as folder:
        arguments = arguments_of(os.path.basename(program), folder)
        for strategy in strategies:
            kind, _, count = strategy.partition(":")
            command = [program, "--strategy", "multi_worker:1" if kind == "workers" else strategy, *arguments]
            if kind == "workers":
                command = [launcher, "-n", count, "--", *command]
            processes = numbers_of(command)
            expected = expected or processes[0]
            worst = max(abs(got - value) for steps in processes for (_, got), (_, value) in zip(steps, expected))
            same_steps = all([n for n, _ in steps] == [n for n, _ in expected] for steps in processes)
            print(f"{strategy}: {len(expected)} steps, {worst:.1e} away")
            if len(processes) != 1 or not same_steps or not worst <= tolerance:
                print(f"  expected of one process {expected}\n  got {processes}")
                findings += 1
    first, last = expected[0][1], expected[-1][1]
    if not last <= FALL.get(os.path.basename(program), float("inf")) * first:
        print(f"  expected numbers that fall, got {first} first and {last} last")
        findings += 1
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
