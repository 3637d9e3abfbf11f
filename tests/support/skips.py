#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""skips.py EXPECTED LOG...: lists the skipped tests of ctest logs; fails on one not expected.

A name in EXPECTED may hold `*`. Logs are ctest's own output (skipped ctest entries) and its
LastTest.log (skipped GoogleTest cases).
"""
import fnmatch
import re
import sys

GTEST = re.compile(r"^\[  SKIPPED \] (\S+) \(\d+ ms\)$", re.M)
CTEST = re.compile(r"^ *\d+/\d+ Test +#\d+: (\S+) \.*\*\*\*Skipped", re.M)


def read_expected(path):
    expected = []
    for line in open(path, encoding="utf-8"):
        line = line.strip()
        if line and not line.startswith("#"):
            name, _, reason = line.partition(" ")
            expected.append((name.rstrip(":"), reason.strip(" :")))
    return expected


def main():
    expected = read_expected(sys.argv[1])
    skipped = set()
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8", errors="replace") as log:
            text = log.read()
        skipped.update(GTEST.findall(text), CTEST.findall(text))
    unexpected = 0
    print(f"Skipped tests: {len(skipped) or 'none'}")
    for name in sorted(skipped):
        reason = next((r for n, r in expected if fnmatch.fnmatchcase(name, n)), None)
        unexpected += reason is None
        print(f"  {name:50} {reason if reason is not None else 'NOT EXPECTED'}")
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
