#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Public headers include the standard library and lockstep alone, open with #pragma once, and stand
in their folder's umbrella header."""
import collections
import re

import repository

STANDARD = re.compile(r"[a-z_0-9]+")
# Wanted by those who extend or test lockstep, not by those who use it.
OUTSIDE_UMBRELLA = {"distribute/extension.h", "distribute/testing.h"}


def is_third_party(name):
    return not name.startswith("lockstep/") and not STANDARD.fullmatch(name)


def opens_with_pragma(path):
    for line in repository.lines(path):
        if line.strip() and not line.startswith("//"):
            return line.strip() == "#pragma once"
    return False


def main():
    findings = []
    by_folder = collections.defaultdict(set)
    for path in repository.files():
        if path.suffix == ".h" and not opens_with_pragma(path):
            findings.append(f"{path}: does not open with #pragma once")
        if path.parts[:2] != ("include", "lockstep") or path.suffix != ".h":
            continue
        interop = "interop" in path.parts
        relative = path.relative_to("include/lockstep")
        if len(relative.parts) > 1 and not interop and str(relative) not in OUTSIDE_UMBRELLA:
            by_folder[relative.parts[0]].add(f"lockstep/{relative}")
        for number, _, name in repository.includes(path):
            if is_third_party(name) and not interop:
                findings.append(f"{path}:{number}: {name} is neither the standard library's nor ours")
            if "/interop/" in name and not interop:
                findings.append(f"{path}:{number}: {name}: interop headers are the user's to include")
    for folder, headers in sorted(by_folder.items()):
        umbrella = f"include/lockstep/{folder}.h"
        if not (repository.ROOT / umbrella).is_file():
            continue
        included = {name for _, _, name in repository.includes(umbrella)}
        findings += [f"{umbrella}: does not include {name}" for name in sorted(headers - included)]
    repository.report(findings)


if __name__ == "__main__":
    main()
