#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""isa_symbols.py NM --ISA OBJECT... --ISA OBJECT...: objects built for one instruction set keep to themselves.

A function that two objects define is picked by the linker from either. Were it std::vector's from an
AVX-512 object, every CPU would run that one. So all that an object for v3 defines has isa_v3 or
lockstep_eigen_v3 in its name, be it as namespace or as template argument.
"""
import subprocess
import sys

VISIBLE = set("TWwVvuDBRGSCi")  # nm's letters for symbols that other objects see
HARMLESS = ("DW.ref.",)  # Pointers to the exception personality, the same in all objects.


def foreign_symbols(nm, isa, path):
    own = (f"isa_{isa}", f"lockstep_eigen_{isa}")
    listing = subprocess.run([nm, "--defined-only", path], capture_output=True, text=True, check=True)
    for line in listing.stdout.splitlines():
        kind, _, symbol = line[17:].partition(" ")
        if kind in VISIBLE and not symbol.startswith(HARMLESS):
            if not any(name in symbol for name in own):
                yield symbol


def main():
    findings = 0
    objects = 0
    for argument in sys.argv[2:]:
        if argument.startswith("--"):
            isa = argument[2:]
            continue
        path = argument
        objects += 1
        for symbol in foreign_symbols(sys.argv[1], isa, path):
            readable = subprocess.run(["c++filt", symbol], capture_output=True, text=True, check=False)
            print(f"{path}\n  defines {readable.stdout.strip() or symbol}, which is not {isa}'s own")
            findings += 1
    print(f"{objects} objects, {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
