#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares our programs with their peers: both stay open side by side and run a window of steps in
turn, A B A B, so that whatever else the machine does falls on both. The ratio of each pair is
taken; their median counts. run.sh builds what this needs."""
import argparse
import json
import re
import statistics
import subprocess
import sys
import time

from opened import Failed, OpenLimit, OpenProgram, STATISTICS
import rows
import sweep


def prepare(names):
    """Makes what the programs of these rows need."""
    sides = [side for name in names for row in rows.ROWS[name] for side in (row.ours, *row.peers)]
    if "ops" in names:
        sides += rows.EACH_OP
    needed = {need for side in sides for need in getattr(side, "needs", ())}
    if needed:
        subprocess.run([rows.ROOT / "tests/benchmarks/prepare.sh", *sorted(needed)], check=True)


def busy_share():
    """The part of its time that the machine is busy while this program is not; 0 if unknown."""
    def ticks():
        with open("/proc/stat", encoding="ascii") as stat:
            values = list(map(int, stat.readline().split()[1:9]))
        return sum(values), values[3] + values[4]  # idle, and idle waiting for a disk

    try:
        total, idle = ticks()
        time.sleep(0.5)
        later_total, later_idle = ticks()
    except OSError:
        return 0
    return 1 - (later_idle - idle) / max(later_total - total, 1)


def require_one_model(sides):
    """Fails unless all train as many parameters, or none does."""
    if len({side.parameters for side in sides}) > 1:
        of_each = ", ".join(f"{side.version} {side.parameters or 'none'}" for side in sides)
        raise Failed(f"not the same model; parameters: {of_each}")


def measure(row, options):
    """The row's result, with the field names of the JSON files."""
    opened = []
    try:
        for side in (row.ours, *row.peers):
            opened.append(OpenLimit(side) if isinstance(side, rows.Limit) else OpenProgram(side))
        require_one_model(opened)
        for _ in range(options.pairs):
            for side in opened:
                side.measure(options.seconds, options.statistic)
    finally:
        for side in opened:
            side.close()
    ours, *peers = opened
    peer = min(peers, key=lambda side: statistics.median(side.times))
    ratios = [theirs / mine for theirs, mine in zip(peer.times, ours.times)]
    ratio = statistics.median(ratios)
    return {
        "workload": row.workload,
        "ours": statistics.median(ours.times),
        "peer": statistics.median(peer.times),
        "peer_version": peer.version,
        "ratio_median": ratio,
        "ratio_min": min(ratios),
        "ratio_max": max(ratios),
        "bar": row.bar,
        "met": ratio >= row.bar,
    }


def in_words(milliseconds):
    if milliseconds is None:
        return ""
    if milliseconds < 0.1:
        return f"{milliseconds * 1e3:.2f} us"
    return f"{milliseconds:.3g} ms" if milliseconds < 100 else f"{milliseconds:.0f} ms"


LINE = "{:58} {:>9} {:>9} {:>24} {:>6} {:>4}  {}"


def print_row(result):
    ratio = "{ratio_median:.3f} ({ratio_min:.3f}-{ratio_max:.3f})".format(**result)
    print(LINE.format(result["workload"], in_words(result["ours"]), in_words(result["peer"]), ratio,
                      result["bar"], "yes" if result["met"] else "NO", result["peer_version"]),
          flush=True)


def measure_rows(name, options):
    """Prints the rows of this name and returns those that could be measured, and whether all
    were."""
    results = []
    complete = True
    for row in rows.ROWS[name]:
        try:
            results.append(measure(row, options))
            print_row(results[-1])
        except Failed as failure:
            print(f"{row.workload}: {failure}", flush=True)
            complete = False
    if name == "ops":
        try:
            results = sweep.measure(options)
            print_row(results[-1])
        except Failed as failure:
            print(f"ops: {failure}", flush=True)
            complete = False
    return results, complete


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help="rows to measure, or all")
    parser.add_argument("--list", action="store_true", help="name all rows and end")
    parser.add_argument("--pairs", type=int, default=9, help="A B pairs of windows, 7 at least")
    parser.add_argument("--seconds", type=float, default=0.5, help="length of a window")
    parser.add_argument("--statistic", choices=STATISTICS, default="median",
                        help="what counts of a window; p10 or cpu where other work disturbs")
    parser.add_argument("--only", type=re.compile, default=re.compile(""), metavar="REGEX",
                        help="of ops: those whose '<op> <forward|backward> <1k|64k|4M>' has it")
    parser.add_argument("--op-seconds", type=float, default=0.006,
                        help="of ops: length of a window")
    options = parser.parse_args()
    if options.list:
        print("\n".join(rows.ROWS))
        return 0
    names = options.names or list(rows.ROWS)
    if unknown := set(names) - set(rows.ROWS):
        parser.error(f"no such row: {', '.join(sorted(unknown))}; there are {', '.join(rows.ROWS)}")

    prepare(names)
    if busy_share() > 0.1:
        print("Something else keeps this machine busy: times are too long, ratios uncertain.")
    print(LINE.format("workload", "ours", "peer", "ratio (min-max)", "bar", "met", "peer is"))
    all_met = True
    for name in names:
        results, complete = measure_rows(name, options)
        all_met &= complete and all(result["met"] for result in results)
        (rows.OUT / f"{name}.json").write_text(json.dumps(results, indent=1) + "\n")
    return 0 if all_met else 1


if __name__ == "__main__":
    sys.exit(main())
