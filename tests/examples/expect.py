#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""expect.py PATTERN LEAST PROGRAM [ARGUMENT...]: runs an example, which is to end with code 0; the last
number in its output that PATTERN's group matches is at least LEAST.

Ends with 77, which ctest calls skipped, where the example needs a PJRT plugin and there is none.
"""
import os
import re
import subprocess
import sys

SKIPPED = 77


def main():
    pattern, least, command = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
    if any(argument.startswith("tpu") for argument in command) and not os.path.exists(
            os.environ.get("LOCKSTEP_PJRT_CPU_PLUGIN", "")):
        print("skipped: needs a PJRT plugin: LOCKSTEP_PJRT_CPU_PLUGIN is not set")
        return SKIPPED
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=280, check=False)
    print(done.stdout)
    numbers = re.findall(pattern, done.stdout)
    if done.returncode != 0 or not numbers:
        print(f"expected exit code 0 and a match of {pattern!r}, got code {done.returncode}")
        return 1
    if not float(numbers[-1]) >= least:
        print(f"expected at least {least}, got {numbers[-1]}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
