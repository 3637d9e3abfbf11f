# SPDX-License-Identifier: Apache-2.0
"""Every op by itself against the same op of PyTorch, at three sizes (ops.cc, torch_each_op.py). Two
programs stay open side by side for all of them; each case is measured as the other rows are, in
windows of a few milliseconds."""
import re
import statistics

from opened import Failed, OpenProgram
import rows

SIZES = ("1k", "64k", "4M")
PAIRS = 7
LINE = "{:30}" + " {:>7}" * 6


# Why a case is below 1: the first of these that its name has. What is left out is not known.
NOISE = 0.92  # from run to run
REASONS = (
    (r"^(sigmoid|silu|softplus) forward",
     "one polynomial for every instruction set; theirs is of a vector library"),
    (r"^conv", "oneDNN on both sides"),
    (r"^permutation", "sorts 64 Philox bits for each number, so that all devices agree; theirs swaps"),
    (r"^(max|min)\w* forward", "looks for NaN in every element, beside the order"),
    (r"^top_k", "keeps the order of equal elements, and where each was"),
    (r"^where ", "two passes over the elements"),
    (r" 4M$", "larger than the caches: the time of memory, on both sides"),
)


def reason_for(result):
    if result["ratio_median"] >= NOISE:
        return "as fast, within what runs differ by"
    found = (reason for name, reason in REASONS if re.search(name, result["workload"]))
    return next(found, "not known")


def cases_of(sides):
    """The names, which both must have."""
    ours, theirs = (side.ask("cases").split() for side in sides)
    if alone := set(ours) ^ set(theirs):
        raise Failed(f"only one side has {', '.join(sorted(alone))}")
    return ours


def measure_case(sides, case, options):
    """The row of a case, with the field names of the JSON files."""
    op, which, size = case
    asked = f"{op} {which} {SIZES.index(size)} {options.op_seconds}"
    for side in sides:
        side.times = []
        side.ask(asked)  # prepares it, and warms up
    for _ in range(PAIRS):
        for side in sides:
            side.measure(asked, options.statistic)
    ours, theirs = sides
    ratios = [their / our for our, their in zip(ours.times, theirs.times)]
    return {
        "workload": " ".join(case),
        "ours": statistics.median(ours.times),
        "peer": statistics.median(theirs.times),
        "peer_version": theirs.version,
        "ratio_median": statistics.median(ratios),
        "ratio_min": min(ratios),
        "ratio_max": max(ratios),
        "bar": rows.EVERY_OP,
        "met": statistics.median(ratios) >= rows.EVERY_OP,
    }


def summary(results):
    """The row that stands for all."""
    ratios = [result["ratio_median"] for result in results]
    median = statistics.median(ratios)
    return {
        "workload": "median over all ops",
        "ours": None,
        "peer": None,
        "peer_version": results[0]["peer_version"],
        "ratio_median": median,
        "ratio_min": min(ratios),
        "ratio_max": max(ratios),
        "bar": rows.MEDIAN_OP,
        "met": median >= rows.MEDIAN_OP,
    }


def print_op(op, found):
    """The ratios of an op: forward at each size, then backward."""
    cells = [f"{found[op, which, size]['ratio_median']:.2f}" if (op, which, size) in found else "-"
             for which in ("forward", "backward") for size in SIZES]
    print(LINE.format(op, *cells), flush=True)


def print_summary(results):
    for size in SIZES:
        ratios = [result["ratio_median"] for result in results
                  if result["workload"].endswith(f" {size}")]
        if not ratios:
            continue
        print(f"{size}: median {statistics.median(ratios):.2f} of {len(ratios)}, "
              f"{sum(ratio < 1 for ratio in ratios)} below 1, "
              f"{sum(ratio < rows.EVERY_OP for ratio in ratios)} below {rows.EVERY_OP}")
    for result in sorted(results, key=lambda result: result["ratio_median"]):
        if result["ratio_median"] < 1:
            print("  {workload:40} {ratio_median:.2f} ({ratio_min:.2f}-{ratio_max:.2f})  "
                  "{ours:.4g} ms, theirs {peer:.4g} ms; ".format(**result) +
                  reason_for(result))


def measure(options):
    """All rows, and last the one of their median."""
    print(LINE.format("op: PyTorch's time / ours", *(f"{word} {size}" for word in ("fwd", "bwd")
                                                    for size in SIZES)))
    sides = []
    try:
        sides = [OpenProgram(program) for program in rows.EACH_OP]
        cases = [(*name.split(":"), size) for name in cases_of(sides) for size in SIZES]
        cases = [case for case in cases if options.only.search(" ".join(case))]
        found = {}
        for i, case in enumerate(cases):
            found[case] = measure_case(sides, case, options)
            if i + 1 == len(cases) or cases[i + 1][0] != case[0]:
                print_op(case[0], found)
    finally:
        for side in sides:
            side.close()
    if not found:
        raise Failed("no op has such a name")
    print_summary(list(found.values()))
    return [*found.values(), summary(list(found.values()))]
