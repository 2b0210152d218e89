"""Many seeds of all topologies, outside the tests: `python -m tests.simulation.seeds --seeds 0:11112 --log seeds.log`.

Seeds are worked in parts. Each part appends a line to the log, with the stories of those that failed. Begun again, the
command goes on behind the last line; so it may be killed, and loses the part it was in. The exit code is 1 where a seed
has failed. `--summary` tells what is in the log.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import multiprocessing
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from multiprocessing.pool import Pool
from pathlib import Path

from tests.simulation.exactly_once import Tally, run
from tests.simulation.topologies import BY_NAME

_AT_ONCE = 5
PART = 50
"""Seeds of each topology in a line of the log."""


def prepare() -> None:
    """This process runs seeds alone: restarts are no news, and what was imported is not searched for garbage."""
    logging.disable(logging.CRITICAL)
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def work(task: tuple[str, range]) -> tuple[str, Tally]:
    """Some seeds of a topology."""
    name, seeds = task
    total = Tally()
    for seed in seeds:
        try:
            total.add(run(name, seed))
        except AssertionError as error:
            total.add(Tally(1, failures=[str(error)]))
    gc.collect()  # event loops of tasks that were killed hold sockets
    return name, total


def run_all(names: Sequence[str], seeds: range, pool: Pool | None = None) -> dict[str, Tally]:
    """Some seeds of several topologies, by the processes of a pool or by this one; the order changes nothing."""
    tasks = [(name, seeds[start : start + _AT_ONCE]) for name in names for start in range(0, len(seeds), _AT_ONCE)]
    tallies = {name: Tally() for name in names}
    for name, tally in map(work, tasks) if pool is None else pool.imap(work, tasks):
        tallies[name].add(tally)
    return tallies


def processes(number: int) -> Pool:
    """So many that run seeds."""
    return multiprocessing.get_context("spawn").Pool(number, prepare)


def table(tallies: dict[str, Tally]) -> str:
    """What happened, for people."""
    head = ("topology", "seeds", "checkpoints", "restarts", "coordinators", "rescales", "in place", "moves", "failures")
    rows = [head]
    every = Tally()
    for tally in tallies.values():
        every.add(tally)
    for name, t in [*tallies.items(), ("all", every)]:
        counts = (t.seeds, t.checkpoints, t.restarts, t.coordinators, t.rescales, t.in_place, t.moves, len(t.failures))
        rows.append((name, *map(str, counts)))
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


class Log:
    """What is done, in a file: one line of JSON for each part, which holds its failures.

    Args:
        path: of the file; made where it is not there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def parts(self) -> Iterator[tuple[range, float, dict[str, Tally]]]:
        """Seeds, seconds and tallies of each part; a line that was cut off is none."""
        for line in self._path.read_text().splitlines() if self._path.exists() else ():
            with suppress(json.JSONDecodeError):
                part = json.loads(line)
                tallies = {name: Tally(**counts) for name, counts in part["tallies"].items()}
                yield range(*part["seeds"]), part["seconds"], tallies

    def append(self, seeds: range, seconds: float, tallies: dict[str, Tally]) -> None:
        """A part is done."""
        counts = {name: vars(tally) for name, tally in tallies.items()}
        part = {"seeds": [seeds.start, seeds.stop], "seconds": round(seconds, 1), "tallies": counts}
        was_cut = self._path.exists() and not self._path.read_text().endswith("\n")
        with self._path.open("a") as file:
            file.write("\n" * was_cut + json.dumps(part) + "\n")

    def summary(self) -> str:
        """All parts together, for people; what has failed is told in full."""
        totals: dict[str, Tally] = {}
        seconds = 0.0
        for _, took, tallies in self.parts():
            seconds += took
            for name, tally in tallies.items():
                totals.setdefault(name, Tally()).add(tally)
        every = sum((tally.faults for tally in totals.values()), start=Tally().faults)
        planned = ", ".join(f"{count} {name}" for name, count in every.most_common())
        failures = [failure for tally in totals.values() for failure in tally.failures]
        return "\n\n".join([*failures, table(totals), f"{seconds:.0f} s; faults planned: {planned}"])


def main(arguments: Sequence[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:1000", help="first:last of each topology, the last one not included")
    parser.add_argument("--topology", action="append", choices=[*BY_NAME], help="only these")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--log", type=Path, required=True, help="where parts are noted")
    parser.add_argument("--summary", action="store_true", help="only tell what is in the log")
    given = parser.parse_args(arguments)
    names = given.topology or [*BY_NAME]
    first, last = map(int, given.seeds.split(":"))
    log = Log(given.log)
    done = max((seeds.stop for seeds, _, _ in log.parts()), default=first)
    with processes(given.processes) if given.processes > 1 else nullcontext() as pool:
        for start in range(max(first, done), last, PART) if not given.summary else ():
            seeds, began = range(start, min(start + PART, last)), time.monotonic()
            tallies = run_all(names, seeds, pool)
            log.append(seeds, time.monotonic() - began, tallies)
    print(log.summary())
    return 1 if any(tally.failures for *_, tallies in log.parts() for tally in tallies.values()) else 0


if __name__ == "__main__":
    prepare()
    sys.exit(main(sys.argv[1:]))
