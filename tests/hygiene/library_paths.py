#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""library_paths.py LIBRARY DIRECTORY...: the built library names no path of the machine that built it."""
import re
import sys

HINT = """Sources are compiled with -ffile-prefix-map. ccache leaves that flag out of its keys: objects that it kept
from before the flag was set name the old path. Build once with CCACHE_RECACHE=1 in the environment."""


def main():
    library, directories = sys.argv[1], sys.argv[2:]
    with open(library, "rb") as file:
        content = file.read()
    prefixes = b"|".join(re.escape(directory.rstrip("/").encode()) for directory in directories)
    found = sorted(set(re.findall(rb"(?:" + prefixes + rb")/[\x21-\x7e]*", content)))
    for path in found:
        print(f"{library}: {path.decode()}")
    if found:
        print(HINT)
    print(f"{len(content)} bytes, {len(found)} paths")
    return 1 if found or not content else 0


if __name__ == "__main__":
    sys.exit(main())
