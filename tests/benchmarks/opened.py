# SPDX-License-Identifier: Apache-2.0
"""Programs held open to be measured in turn (see window.h)."""
import os
import re
import select
import subprocess

# What a program answers for a window, in this order.
STATISTICS = ("median", "p10", "cpu")
ANSWER_TIMEOUT = 300  # seconds


class Failed(Exception):
    """A program that could not be measured."""


class OpenProgram:
    """A running program and the medians of its windows so far."""

    def __init__(self, program):
        environment = os.environ | program.environment
        for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
            environment.pop(name, None)
        self.name = " ".join(os.path.basename(word) for word in program.command)
        self.times = []
        try:
            self.process = subprocess.Popen(program.command, env=environment, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, text=True)
        except OSError as error:
            raise Failed(f"{self.name}: {error}") from error
        ready = re.fullmatch(r"ready (.*?)(?:, (\d+) parameters)?\s*", self._answer())
        if not ready:
            raise Failed(f"{self.name} is not ready")
        self.version = ready[1]
        self.parameters = ready[2] and int(ready[2])  # that it trains, if any

    def _answer(self):
        if not select.select([self.process.stdout], [], [], ANSWER_TIMEOUT)[0]:
            raise Failed(f"{self.name} does not answer")
        line = self.process.stdout.readline()
        if not line:
            raise Failed(f"{self.name} ended with exit code {self.process.wait()}")
        return line

    def ask(self, line):
        try:
            self.process.stdin.write(f"{line}\n")
            self.process.stdin.flush()
        except OSError as error:
            raise Failed(f"{self.name}: {error}") from error
        return self._answer()

    def measure(self, window, statistic):
        """`window` is what the program is asked: its length in seconds, or a case and that."""
        self.times.append(float(self.ask(window).split()[STATISTICS.index(statistic)]))

    def close(self):
        try:
            self.process.stdin.close()
            if code := self.process.wait(timeout=20):
                raise Failed(f"{self.name} ended with exit code {code}")
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()


class OpenLimit:
    """A fixed time in the place of a peer."""

    def __init__(self, limit):
        self.milliseconds = limit.milliseconds
        self.version = "fixed limit"
        self.parameters = None
        self.times = []

    def measure(self, _window, _statistic):
        self.times.append(self.milliseconds)

    def close(self):
        pass
