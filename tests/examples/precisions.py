#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""precisions.py FASHION_MNIST: what the example reaches on the whole data set in 32 bits and in 16.

At least 0.916 of the test images in float32, and with mixed_bfloat16 and mixed_float16 half a point less at most.
"""
import re
import subprocess
import sys

LEAST, APART = 0.916, 0.005


def accuracy(program, precision):
    done = subprocess.run([program, "--precision", precision], stdout=subprocess.PIPE, text=True, timeout=3600,
                          check=True)
    value = float(re.search(r"^test accuracy (\S+)", done.stdout, re.M)[1])
    print(f"{precision}: {value:.4f}", flush=True)
    return value


def main():
    full = accuracy(sys.argv[1], "float32")
    halves = [accuracy(sys.argv[1], precision) for precision in ("mixed_bfloat16", "mixed_float16")]
    if not full >= LEAST or not min(halves) >= full - APART:
        print(f"expected {LEAST} in float32, and in 16 bits {APART} less at most")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
