# SPDX-License-Identifier: Apache-2.0
"""What the checks of this folder share: the repository's files and its include lines."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def files():
    """Paths, relative to the root, of all files that are or would be committed."""
    listing = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard"],
        capture_output=True, text=True, check=False)
    if listing.returncode == 0 and listing.stdout:
        paths = [pathlib.Path(line) for line in listing.stdout.splitlines()]
    else:  # An unpacked archive.
        paths = [path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file()]
        paths = [path for path in paths
                 if path.parts[0] != ".git" and not path.parts[0].startswith("build")
                 and "__pycache__" not in path.parts]
    return sorted(path for path in paths if (ROOT / path).is_file())


def lines(path):
    return (ROOT / path).read_text(encoding="utf-8").splitlines()


def includes(path):
    """Yields (line number, '<' or '"', name) of each include line."""
    for number, line in enumerate(lines(path), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match[1], match[2]


def report(findings):
    """Prints the findings and ends the process: 0 without any, else 1."""
    for finding in findings:
        print(finding)
    print(f"{len(findings)} findings")
    sys.exit(1 if findings else 0)
