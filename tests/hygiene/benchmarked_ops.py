#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every op of include/lockstep/ops/ is measured by tests/benchmarks/ops.cc, and PyTorch's by the same
name in peers/torch_each_op.py."""
import re
import sys

import repository

DECLARATION = re.compile(r"^LOCKSTEP_EXPORT (?!class|struct)[\w:<>&* ]*?(\w+)\(", re.MULTILINE)
NO_OPS = {"current_random_state", "current_recorder", "intra_op_threads",
          "set_intra_op_threads", "update_copies", "update_slots", "updates_by_rows"}


def main():
    benchmarks = repository.ROOT / "tests/benchmarks"
    ours = (benchmarks / "ops.cc").read_text(encoding="utf-8")
    theirs = (benchmarks / "peers/torch_each_op.py").read_text(encoding="utf-8")
    ops = set()
    for header in (repository.ROOT / "include/lockstep/ops").glob("*.h"):
        ops |= set(DECLARATION.findall(header.read_text(encoding="utf-8")))
    findings = [f"ops.cc does not measure {op}" for op in sorted(ops - NO_OPS)
                if not re.search(rf"\bls::{op}\b", ours)]
    cases = re.findall(r'\{"(\w+)", ', ours)
    findings += [f"torch_each_op.py has no {case}" for case in cases if f'"{case}":' not in theirs]
    print("\n".join([*findings, f"{len(ops - NO_OPS)} ops in {len(cases)} cases"]))
    return 1 if findings or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
