#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare.py FACTOR TOLERANCE VARIANTS LOCKSTEP_RUN PROGRAM [ARGUMENT...]: runs an example in several ways
that are to come to the same.

VARIANTS are further arguments, such as "--strategy one_device | --strategy mirrored:2"; one with a strategy
multi_worker is run by lockstep-run with two workers. Each reports the loss of each step ("step 3  loss
1.25"), which differs from the first variant's by no more than TOLERANCE. The last loss of the first is at
most FACTOR times its first.

Ends with 77, which ctest calls skipped, where a variant needs a PJRT plugin and there is none.
"""
import os
import re
import subprocess
import sys

SKIPPED = 77


def losses(command, lockstep_run):
    if any(argument.startswith("multi_worker") for argument in command):
        command = [lockstep_run, "-n", "2", "--", *command]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", timeout=280, check=False)
    found = {int(step): float(loss)
             for step, loss in re.findall(r"step (\d+) +loss ([0-9.]+)", done.stdout)}
    if done.returncode != 0 or not found:
        sys.exit(f"{command}: exit code {done.returncode}\n{done.stdout}")
    return found


def main():
    factor, tolerance, variants, lockstep_run = sys.argv[1:5]
    variants = [variant.split() for variant in variants.split("|")]
    if any("tpu" in argument for variant in variants for argument in variant) and not os.path.exists(
            os.environ.get("LOCKSTEP_PJRT_CPU_PLUGIN", "")):
        print("skipped: needs a PJRT plugin: LOCKSTEP_PJRT_CPU_PLUGIN is not set")
        return SKIPPED
    first = losses([*sys.argv[5:], *variants[0]], lockstep_run)
    falls = first[max(first)] <= float(factor) * first[min(first)]
    print(f"{variants[0]}: {len(first)} losses from {first[min(first)]} to {first[max(first)]}")
    findings = 0 if falls else 1
    for variant in variants[1:]:
        other = losses([*sys.argv[5:], *variant], lockstep_run)
        apart = max((abs(other[step] - first[step]) for step in first if step in other), default=0)
        print(f"{variant}: {len(other)} losses, at most {apart:.2g} apart")
        if other.keys() != first.keys() or apart > float(tolerance):
            findings += 1
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
