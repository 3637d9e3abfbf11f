#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage.py PROGRAM...: what the examples say of themselves and of a user's mistakes.

--help lists the flags; a mistake ends with one message on stderr and exit code 1, whoever finds it.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

EVERYWHERE = ((["--odd", "2"], '"--odd"'), (["2"], '"2"'), (["--strategy"], '"--strategy"'),
              (["--strategy", "none"], "[make_strategy]"))
OWN = {
    "char_lm": ((["--text", "NOWHERE/a.txt"], "NOWHERE/a.txt"), (["--batch", "x"], '--batch: expected a number, got "x"')),
    "fashion_mnist": ((["--data", "NOWHERE"], "[data::fashion_mnist] cannot read NOWHERE"),
                      (["--precision", "half"], "[PrecisionPolicy]")),
    "gan": ((["--steps", "many"], '--steps: expected a number, got "many"'),),
    "reinforce": ((["--updates", "1.5"], '--updates: expected a number, got "1.5"'),),
    "tabular": ((["--csv", "NOWHERE/a.csv"], "[from_csv] cannot read NOWHERE/a.csv"),
                (["--csv", "TABLE"], 'line 3, column "bought": the field is missing')),
}


def run(program, arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60, check=False)


def main():
    findings = 0

    def check(program, arguments, right, expected):
        nonlocal findings
        done = run(program, arguments)
        if not right(done):
            print(f"{os.path.basename(program)} {' '.join(arguments)}: expected {expected}, got", done)
            findings += 1

    with tempfile.TemporaryDirectory() as folder:
        table = pathlib.Path(folder) / "table.csv"
        table.write_text("age,bought\n1,0\n,\n")
        for program in sys.argv[1:]:
            check(program, ["--strategy", "mirrored:2", "--help"],
                  lambda d: d.returncode == 0 and d.stdout.startswith("--strategy ") and not d.stderr, "the flags")
            for arguments, message in (*EVERYWHERE, *OWN.get(os.path.basename(program), ())):
                arguments = [a.replace("NOWHERE", folder + "/none").replace("TABLE", str(table)) for a in arguments]
                message = message.replace("NOWHERE", folder + "/none")
                check(program, arguments,
                      lambda d, m=message: d.returncode == 1 and m in d.stderr and d.stderr.count("\n") == 1,
                      f"exit code 1 and a line with {message}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
