#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""readme.py COMPILER: the programs that README.md shows compile as they stand, without a warning."""
import re
import subprocess
import sys

import repository


def main():
    text = (repository.ROOT / "README.md").read_text(encoding="utf-8")
    programs = re.findall(r"^```cpp\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    if not programs:
        print("README.md shows no program")
        return 1
    for program in programs:
        subprocess.run([sys.argv[1], "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
                        f"-I{repository.ROOT / 'include'}", "-x", "c++", "-"],
                       input=program, text=True, check=True)
    print(f"{len(programs)} programs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
