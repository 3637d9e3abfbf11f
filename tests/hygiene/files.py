#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files are short, licensed, where they belong, and free of paths of one machine."""
import re

import repository

TOP_LEVEL = {"CMakeLists.txt", "include", "src", "examples", "tests", "cmake", "README.md", "LICENSE"}
LICENSED = {".h", ".cc", ".cu", ".cuh", ".py", ".sh", ".cmake", ".proto"}
MACHINE_PATH = re.compile(r"(^|[^A-Za-z0-9_.$}/-])/(work|root|home)/")
# suffix: (where a reader starts to frown, where this check fails)
LENGTHS = {".h": (250, 400), ".cc": (300, 600), ".cu": (300, 600)}


def check_length(path, text):
    if path.suffix not in LENGTHS or path.parts[0] not in {"include", "src", "examples"}:
        return
    frown, limit = LENGTHS[path.suffix]
    length = text.count("\n")
    if length > limit:
        yield f"{path}: {length} lines, at most {limit}"
    elif length > frown:
        print(f"note: {path} has {length} lines; {frown} is where files get hard to read")


def check_licence(path, text):
    if path.suffix not in LICENSED and path.name != "CMakeLists.txt":
        return
    comment = "//" if path.suffix in {".h", ".cc", ".cu", ".cuh", ".proto"} else "#"
    opening = text.split("\n")[:2]
    if not opening[0].startswith("#!"):
        opening = opening[:1]
    if f"{comment} SPDX-License-Identifier: Apache-2.0" not in opening:
        yield f"{path}: does not open with {comment} SPDX-License-Identifier: Apache-2.0"


def check_paths(path, text):
    for number, line in enumerate(text.split("\n"), 1):
        if MACHINE_PATH.search(line):
            yield f"{path}:{number}: a path of one machine: {line.strip()}"


def main():
    findings = []
    for path in repository.files():
        if not path.parts[0].startswith(".") and path.parts[0] not in TOP_LEVEL:
            findings.append(f"{path}: not among {', '.join(sorted(TOP_LEVEL))}")
        try:
            text = (repository.ROOT / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for check in (check_length, check_licence, check_paths):
            findings += check(path, text)
    repository.report(findings)


if __name__ == "__main__":
    main()
