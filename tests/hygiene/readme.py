#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""readme.py COMPILER: the programs that README.md and the guide show compile as they stand, without a
warning."""
import re
import subprocess
import sys

import repository


def compile_programs(compiler, path):
    programs = re.findall(r"^```cpp\n(.*?)^```$", path.read_text(encoding="utf-8"),
                          re.MULTILINE | re.DOTALL)
    for program in programs:
        subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
                        f"-I{repository.ROOT / 'include'}", "-x", "c++", "-"],
                       input=program, text=True, check=True)
    print(f"{path.relative_to(repository.ROOT)}: {len(programs)} programs")
    return len(programs)


def main():
    guide = sorted((repository.ROOT / "examples/guide").glob("*.md"))
    counts = [compile_programs(sys.argv[1], path)
              for path in [repository.ROOT / "README.md", *guide]]
    return 0 if counts[0] > 0 and sum(counts[1:]) > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
