#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""stablehlo.py DIRECTORY: parses every program of a LOCKSTEP_XLA_DUMP with mlir-opt-19.

Fails for a program that does not parse, and unless there are some and every instruction that the
sources know to write occurs in them.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = ["src/device/xla", "src/ops", "src/tensor"]
# How the sources name instructions.
NAMES = [
    r'"stablehlo\.(\w+)',
    r'\bemit\(\s*"(\w+)"',
    r'\b(?:apply|reduce|reducer)\("(\w+)"',
    r'\bLOCKSTEP_HLO_(?:UNARY|BINARY)\([^,]+, (\w+)\s*\)',
]
BATCH = 500
PARSE = ["mlir-opt-19", "--allow-unregistered-dialect", "--split-input-file", "-o", "/dev/null"]


def known_instructions():
    names = set()
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".cc", ".h"):
                text = path.read_text(encoding="utf-8")
                names.update(name for pattern in NAMES for name in re.findall(pattern, text))
    return names - {"instruction"}  # the macros' own parameter


def parse(paths):
    """What mlir-opt says of these programs, "" if nothing."""
    text = "\n// -----\n".join(path.read_text(encoding="utf-8") for path in paths)
    result = subprocess.run(PARSE, input=text, text=True, capture_output=True, check=False)
    return "" if result.returncode == 0 else result.stderr or f"exit code {result.returncode}"


def main():
    paths = sorted(pathlib.Path(sys.argv[1]).glob("*.mlir"))
    seen = set()
    for path in paths:
        seen.update(re.findall(r'"stablehlo\.(\w+)"', path.read_text(encoding="utf-8")))
    refused = []
    for begin in range(0, len(paths), BATCH):
        batch = paths[begin:begin + BATCH]
        if parse(batch):
            refused += [(path, said) for path in batch if (said := parse([path]))]
    for path, said in refused:
        print(f"{path} does not parse:\n{said}")
    known = known_instructions()
    missing = sorted(known - seen)
    if missing:
        print("instructions that no program holds:", *missing)
    unknown = sorted(seen - known)
    if unknown:
        print("instructions that this script does not find in the sources:", *unknown)
    print(f"{len(paths)} programs, {len(refused)} refused; {len(seen)} instructions of {len(known)}")
    return 1 if refused or missing or unknown or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
