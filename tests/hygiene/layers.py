#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Includes go down only: each folder may include what this table says, and itself."""
import repository

COMMON = {"base", "telemetry"}
MODEL = {"autodiff", "replica", "ops", "tensor"}
MAY_INCLUDE = {
    "base": set(),
    "telemetry": {"base"},
    "device": COMMON,
    "tensor": COMMON | {"device"},
    "comm": COMMON | {"device"},
    "cluster": COMMON,
    "ops": COMMON | {"tensor", "device"},
    "replica": COMMON | {"ops", "tensor", "device"},
    "autodiff": COMMON | {"ops", "tensor"},
    "data": COMMON | {"tensor"},
    "nn": COMMON | MODEL,
    "optim": COMMON | MODEL,
    "metrics": COMMON | MODEL,
    "train": COMMON | {"replica", "tensor", "data"},
    "distribute": COMMON | {"replica", "comm", "cluster", "data", "ops", "tensor", "device"},
}


def folder_of(parts):
    """The layer a path below include/lockstep or src belongs to; an umbrella to its folder's."""
    name = parts[0].removesuffix(".h")
    return name if name in MAY_INCLUDE else None


def check(path, layer):
    for number, _, name in repository.includes(path):
        where = f"{path}:{number}"
        if name.startswith("../") or "/../" in name:
            yield f"{where}: {name}: name files from include/ or src/ on, not by .."
            continue
        parts = name.split("/")
        public = parts[0] == "lockstep"
        if name == "lockstep/lockstep.h":
            yield f"{where}: only programs include lockstep.h"
            continue
        if public:
            parts = parts[1:]
        elif len(parts) == 1:
            continue  # The standard library, or a file next to this one.
        target = folder_of(parts) if parts else None
        if target is None:
            continue
        if not public and path.parts[0] == "include":
            yield f"{where}: a public header includes {name} of src/"
        if target != layer and target not in MAY_INCLUDE[layer]:
            allowed = ", ".join(sorted(MAY_INCLUDE[layer])) or "nothing"
            yield f"{where}: {layer}/ includes {name}; it may include {allowed}"


def main():
    findings = []
    for path in repository.files():
        if path.suffix not in {".h", ".cc", ".cu", ".cuh", ".inc"}:
            continue
        if path.parts[:2] == ("include", "lockstep"):
            parts = path.parts[2:]
        elif path.parts[0] == "src":
            parts = path.parts[1:]
        else:
            continue
        layer = folder_of(parts)
        if layer:
            findings += check(path, layer)
        elif path.name != "lockstep.h":
            findings.append(f"{path}: in no folder that has a layer")
    repository.report(findings)


if __name__ == "__main__":
    main()
