#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compile_time.py COMPILER: examples/digits.cc compiles at -O2 within 4.5 s of processor time.

So that the whole library stays cheap to include. The least of three: what else runs on the machine only
adds.
"""
import resource
import subprocess
import sys

import repository

LIMIT_S = 4.5


def compile_once(compiler):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [compiler, "-std=c++20", "-O2", "-I", str(repository.ROOT / "include"), "-c", "-o", "/dev/null",
         str(repository.ROOT / "examples/digits.cc")], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    times = [compile_once(sys.argv[1]) for _ in range(3)]
    print("examples/digits.cc:", ", ".join(f"{t:.2f} s" for t in times), f"; at most {LIMIT_S} s")
    return 0 if min(times) <= LIMIT_S else 1


if __name__ == "__main__":
    sys.exit(main())
