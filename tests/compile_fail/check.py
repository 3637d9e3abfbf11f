#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check.py COMPILER [--update]: users' mistakes end in one sentence of ours.

Each *.cc here must not compile. The text after its `// EXPECT: ` must stand in the first error that
the compiler reports. The number of lines the compiler prints, but for those that say which header
includes which, is kept for g++ in golden_lengths.txt and may shrink, never grow; --update writes the
present numbers.
"""
import concurrent.futures
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
GOLDEN = HERE / "golden_lengths.txt"
HEADER = "# Lines that g++ prints for each mistake. They may shrink, never grow.\n"


def compile_case(compiler, case):
    include = HERE.parents[1] / "include"
    run = subprocess.run(
        [compiler, "-std=c++20", "-fsyntax-only", "-fdiagnostics-color=never", f"-I{include}", str(case)],
        capture_output=True, text=True, check=False)
    return run.returncode, run.stderr


def length_of(output):
    return len([line for line in output.splitlines()
                if not re.match(r"In file included from |\s+from \S+:\d+[,:]", line)])


def read_golden():
    if not GOLDEN.exists():
        return {}
    lines = [line.split() for line in GOLDEN.read_text(encoding="utf-8").splitlines()]
    return {line[0]: int(line[1]) for line in lines if line and line[0] != "#"}


def problems_of(case, status, output, limit):
    expected = re.search(r"^// EXPECT: (.+)$", case.read_text(encoding="utf-8"), re.M)
    if not expected:
        yield "has no // EXPECT: line"
        return
    if status == 0:
        yield "compiles, and should not"
        return
    first_error = re.search(r"error: (.*)$", output, re.M)
    if not first_error or expected[1] not in first_error[1]:
        yield f'expected "{expected[1]}" first, got\n{output[:2000]}'
    length = length_of(output)
    if limit is not None and length > limit:
        yield f"{length} lines of compiler output, {limit} before"


def main():
    compiler = sys.argv[1]
    update = "--update" in sys.argv
    golden = read_golden()
    lengths = {}
    failed = 0
    cases = sorted(HERE.glob("*.cc"))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = pool.map(lambda case: compile_case(compiler, case), cases)
    for case, (status, output) in zip(cases, results):
        lengths[case.name] = length_of(output)
        limit = None if update or "clang" in compiler else golden.get(case.name, 0)
        for problem in problems_of(case, status, output, limit):
            print(f"{case.name}: {problem}")
            failed += 1
        print(f"{case.name}: {lengths[case.name]} lines")
    if update and not failed:
        GOLDEN.write_text(HEADER + "".join(f"{n} {l}\n" for n, l in sorted(lengths.items())),
                          encoding="utf-8")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
