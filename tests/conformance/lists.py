#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lists.py [--complete] TEST_BINARY...: every conformance case is accounted for.

Prints the cases of cases.txt as lists: run as tests, refused by the compiler, not applicable, not built
yet, and missing from areas that are meant to be whole. Fails when a case is in no list, when a test or
compile_fail case is not there, when one that is called missing is there, and when more is called not
applicable than may be. With --complete, what is missing from whole areas fails, too.
"""
import collections
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
COMPILE_FAIL = HERE.parent / "compile_fail"
LISTS = ("test", "compile_fail", "not_applicable", "missing")
CASES = {
    "CTX": (1, 2, 4, 5), "RUN": (1, 2, 4, 5, 7, 8), "RED": (1, 2, 4, 5, 7, 8, 10),
    "ARG": (1, 3, 4, 6, 7), "CDO": (1, 2, 4, 5, 7, 8), "VAR": (1, 2, 4, 5, 7, 8, 10, 11, 13),
    "INP": (1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16), "CLU": (1, 2, 4, 5, 7, 9), "COL": (1, 2, 4, 5),
    "LOS": (1, 3, 4, 6), "OPT": (1, 3, 4), "LSC": (1, 2, 4, 5, 7), "MET": (1, 3, 4), "CKP": (1,),
    "PRE": (1,), "TPU": (1, 3, 4),
}
MAY_BE_UNBUILT = {"INP", "CKP", "PRE", "CLU", "COL"}
MAY_NOT_APPLY = {"COL-01", "CLU-05", "CDO-05", "TPU-01", "TPU-03", "TPU-04"}
ID = re.compile(rf"(?<![A-Z])({'|'.join(CASES)})_?(\d\d)(?!\d)")


def ids_of_tests(binaries):
    ids = collections.defaultdict(list)
    for binary in binaries:
        listed = subprocess.run([binary, "--gtest_list_tests"], capture_output=True, text=True, check=True)
        suite = ""
        for line in listed.stdout.splitlines():
            name = line.split("#")[0]
            if not name.startswith(" "):
                suite = name.strip()
                continue
            for area, number in ID.findall(name):
                ids[f"{area}-{number}"].append(suite + name.strip())
    return ids


def read_table():
    entries = []
    for line in (HERE / "cases.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            entries.append((line.split(maxsplit=2) + [""])[:3])
    return entries


def problems_of(entries, tests):
    every = {f"{area}-{number:02}" for area, numbers in CASES.items() for number in numbers}
    listed = collections.defaultdict(set)
    for case, kind, phrase in entries:
        if kind not in LISTS:
            yield f"{case}: there is no list {kind}"
        if kind in listed[case]:
            yield f"{case}: twice in list {kind}"
        listed[case].add(kind)
        if kind == "compile_fail" and not (COMPILE_FAIL / phrase.split(":")[0]).exists():
            yield f"{case}: there is no {phrase.split(':')[0]} in tests/compile_fail"
        if kind == "not_applicable" and (case not in MAY_NOT_APPLY or not phrase.endswith(".")):
            yield f"{case}: may not be called not applicable, or not without a sentence"
        if kind == "missing" and not phrase:
            yield f"{case}: say what is missing"
    for case in sorted(every - listed.keys()):
        yield f"{case}: in no list"
    for case in sorted(listed.keys() - every):
        yield f"{case}: there is no such case"
    for case in sorted(every):
        if "test" in listed[case] and case not in tests:
            yield f"{case}: no test carries its id"
        if case in tests and "test" not in listed[case]:
            yield f"{case}: {tests[case][0]} carries its id, the table does not say so"


def show(title, entries):
    print(f"\n{title}: {len({case for case, _, _ in entries})}")
    for case, _, phrase in entries:
        print(f"  {case}  {phrase}".rstrip())


def main():
    arguments = sys.argv[1:]
    complete = "--complete" in arguments
    tests = ids_of_tests(argument for argument in arguments if argument != "--complete")
    entries = read_table()
    problems = list(problems_of(entries, tests))
    of = {kind: [entry for entry in entries if entry[1] == kind] for kind in LISTS}
    unbuilt = [entry for entry in of["missing"] if entry[0][:3] in MAY_BE_UNBUILT]
    missing = [entry for entry in of["missing"] if entry[0][:3] not in MAY_BE_UNBUILT]
    show("Run as tests", [(case, kind, "; ".join(filter(None, (", ".join(tests[case][:2]), phrase))))
                          for case, kind, phrase in of["test"]])
    show("Refused by the compiler", of["compile_fail"])
    show("Not applicable", of["not_applicable"])
    show("Not built yet", unbuilt)
    show("Missing from areas that are meant to be whole", missing)
    if complete:
        problems += [f"{case}: missing" for case, _, _ in missing]
    print("\n" + "\n".join(problems or [f"every case is in a list, {len(missing)} entries are missing"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
