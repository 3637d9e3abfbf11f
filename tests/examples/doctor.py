#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""doctor.py EXPECTED PROGRAM [ARGUMENT...]: what an example says of its training step with --doctor.

EXPECTED is "nothing found", and its exit code 0, or the one mistake that is found, and its exit code 1.
"""
import os
import re
import subprocess
import sys
import tempfile

import alike


def main():
    expected, program, *arguments = sys.argv[1:]
    name = os.path.basename(program)
    with tempfile.TemporaryDirectory() as folder:
        own = alike.arguments_of(name, folder) if name in ("fashion_mnist", "char_lm") else []
        done = subprocess.run([program, "--doctor", *own, *arguments], stdout=subprocess.PIPE, text=True,
                              timeout=280, check=False)
    print(done.stdout)
    found = re.findall(r"^verify: (nothing found|[\w ]+(?=:))", done.stdout, re.M)
    code = 0 if expected == "nothing found" else 1
    if found != [expected] or done.returncode != code:
        print(f"expected code {code} and {expected!r}, got code {done.returncode} and {found}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
