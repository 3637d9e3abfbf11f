# SPDX-License-Identifier: Apache-2.0
"""What tests/benchmarks/window.h is for C++: one side of a comparison, driven line by line."""
import statistics
import sys
import time


def milliseconds_of(step, seconds, inner=1, at_least=3):
    """Times of single steps over a window, each the mean of `inner` calls."""
    times = []
    end = time.perf_counter() + seconds
    while len(times) < at_least or time.perf_counter() < end:
        begin = time.perf_counter()
        for _ in range(inner):
            step()
        times.append((time.perf_counter() - begin) * 1e3 / inner)
    return times


def answer_one(step, seconds, inner=1, at_least=3):
    begin = time.process_time()
    times = sorted(milliseconds_of(step, seconds, inner, at_least))
    cpu = (time.process_time() - begin) * 1e3 / (len(times) * inner)
    print(statistics.median(times), times[len(times) // 10], cpu, flush=True)


def answer_windows(version, step, inner=1):
    """Answers each line of standard input, a window's length in seconds, with three numbers in
    milliseconds: median and tenth percentile of the time of a step, and the CPU time per step."""
    milliseconds_of(step, 0.5, inner)
    print("ready", version, flush=True)
    for line in sys.stdin:
        answer_one(step, float(line), inner)


def answer_training(version, step, parameters):
    """The same for a model of so many parameters, all trainable ones, whose `step` returns the
    loss. Fails if that did not fall."""
    losses = [step()]

    def counted_step():
        losses[1:] = [step()]

    answer_windows(f"{version}, {parameters} parameters", counted_step)
    if not losses[-1] < losses[0]:
        sys.exit(f"The loss was {losses[0]} and is {losses[-1]}")
