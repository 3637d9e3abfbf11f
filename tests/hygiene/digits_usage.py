#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""digits_usage.py PROGRAM: the example says how it is used, on the stream and with the code that are usual."""
import subprocess
import sys


def main():
    findings = 0
    for arguments, code in ((["--help"], 0), (["--replicas", "2", "--help"], 0), (["--odd", "2"], 2),
                            (["2"], 2), (["--replicas"], 2), (["--strategy", ""], 2)):
        done = subprocess.run([sys.argv[1], *arguments], capture_output=True, text=True, timeout=60, check=False)
        usage, silent = (done.stdout, done.stderr) if code == 0 else (done.stderr, done.stdout)
        if done.returncode != code or not usage.startswith("usage: digits") or silent:
            print(f"digits {' '.join(arguments)}: expected the usage and exit code {code}, got", done)
            findings += 1
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
