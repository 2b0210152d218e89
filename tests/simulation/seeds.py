"""Many seeds of all topologies, outside the tests: `python -m tests.simulation.seeds --seeds 0:100000 --processes 2`.

Prints what happened, a row for each topology, and each seed that failed with its story; the exit code is 1 then.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Sequence

from tests.simulation.exactly_once import Tally, run
from tests.simulation.topologies import BY_NAME

_AT_ONCE = 20


def work(task: tuple[str, range]) -> tuple[str, Tally]:
    """Some seeds of a topology."""
    name, seeds = task
    total = Tally()
    for seed in seeds:
        try:
            total.add(run(name, seed))
        except AssertionError as error:
            total.add(Tally(1, failures=[str(error)]))
    return name, total


def run_all(names: Sequence[str], seeds: range, processes: int) -> dict[str, Tally]:
    """Some seeds of several topologies, by several processes; failures are printed as they come."""
    tasks = [(name, seeds[start : start + _AT_ONCE]) for start in range(0, len(seeds), _AT_ONCE) for name in names]
    tallies = {name: Tally() for name in names}
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for name, tally in pool.imap_unordered(work, tasks):
            for failure in tally.failures:
                print(failure, "\n", flush=True)
            tallies[name].add(tally)
    return tallies


def table(tallies: dict[str, Tally]) -> str:
    """What happened, for people."""
    head = ("topology", "seeds", "checkpoints", "restarts", "coordinators", "rescales", "in place", "moves", "failures")
    rows = [head]
    rows += [
        (name, *map(str, (t.seeds, t.checkpoints, t.restarts, t.coordinators, t.rescales, t.in_place, t.moves)))
        + (str(len(t.failures)),)
        for name, t in tallies.items()
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def main(arguments: Sequence[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:1000", help="first:last of each topology, the last one not included")
    parser.add_argument("--topology", action="append", choices=[*BY_NAME], help="only these")
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args(arguments)
    first, last = map(int, given.seeds.split(":"))
    began = time.monotonic()
    tallies = run_all(given.topology or [*BY_NAME], range(first, last), given.processes)
    print(f"{table(tallies)}\n\n{time.monotonic() - began:.0f} s with {given.processes} processes; faults planned:")
    planned = sum((tally.faults for tally in tallies.values()), start=Tally().faults)
    print(", ".join(f"{count} {name}" for name, count in planned.most_common()))
    return 1 if any(tally.failures for tally in tallies.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
