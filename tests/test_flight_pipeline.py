"""The functions of the main job, a pipeline of Spark and a stream; tests/spark runs it whole, against polars."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections import namedtuple
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rayflink.operators.keyed.keyed_process import KeyedProcessOperator
from rayflink.operators.keyed.keyed_two_input import KeyedCoProcessOperator
from rayflink.testing import OperatorHarness, in2, rec, verify, wm
from tests.source_files import ROOT

EXAMPLE = ROOT / "examples" / "flight_pipeline.py"
HOUR = 3_600_000
Left = namedtuple("Left", "airport delay airline seats")
Observed = namedtuple("Observed", "airport sky")


@pytest.fixture(scope="module")
def pipeline() -> Iterator[Any]:
    """The example as a module."""
    pytest.importorskip("pyspark")
    spec = importlib.util.spec_from_file_location("flight_pipeline", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["flight_pipeline"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["flight_pipeline"]


# the functions of the stream


def with_weather(pipeline: Any) -> Any:
    airport = lambda record: record.airport  # noqa: E731
    return lambda: KeyedCoProcessOperator(airport, airport, pipeline.WithWeather())


def left(at: int, delay: int, airport: str = "JFK") -> Any:
    return rec(Left(airport, delay, "Delta", 100), at)


def observed(at: int, sky: str, airport: str = "JFK") -> Any:
    return in2(rec(Observed(airport, sky), at))


def joined(at: int, delay: int, sky: str | None, airport: str = "JFK") -> tuple[int, str, int, str | None]:
    return at, airport, delay, sky


ARRIVALS = {
    "weather first": [
        observed(0, "fog"), observed(HOUR, "rain"), observed(HOUR, "snow", "EWR"), left(HOUR - 1, 1), left(HOUR, 2),
        left(HOUR, 3), left(HOUR + 1, 4, "EWR"), left(5, 5, "EWR"),
    ],
    "departures first": [
        left(HOUR, 2), left(HOUR + 1, 4, "EWR"), left(HOUR, 3), left(5, 5, "EWR"), left(HOUR - 1, 1),
        observed(HOUR, "rain"), observed(HOUR, "snow", "EWR"), observed(0, "fog"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("order", ARRIVALS)
@pytest.mark.slow
def test_a_departure_meets_the_weather_as_of_its_time_in_whatever_order_they_come(pipeline, order):
    with OperatorHarness(with_weather(pipeline), inputs=2) as harness:
        for element in ARRIVALS[order]:
            harness.give(element)
        assert harness.output_values() == []
        for side in (0, 1):
            harness.advance_watermark(2 * HOUR, side)
        found = sorted((entry.timestamp, *entry.value) for entry in harness.output if hasattr(entry, "value"))
    assert [(at, airport, delay, sky) for at, airport, delay, _, _, sky in found] == [
        joined(5, 5, None, "EWR"), joined(HOUR - 1, 1, "fog"), joined(HOUR, 2, "rain"), joined(HOUR, 3, "rain"),
        joined(HOUR + 1, 4, "snow", "EWR"),
    ]  # fmt: skip


@pytest.mark.slow
def test_an_observation_holds_for_three_hours(pipeline):
    with OperatorHarness(with_weather(pipeline), inputs=2) as harness:
        for element in [observed(0, "fog"), left(3 * HOUR - 1, 1), left(3 * HOUR, 2)]:
            harness.give(element)
        for side in (0, 1):
            harness.advance_watermark(9 * HOUR, side)
        assert [(found.delay, found.sky) for found in harness.output_values()] == [(1, "fog"), (2, None)]


def test_what_comes_behind_the_watermark_is_counted_and_changes_nothing(pipeline):
    with OperatorHarness(with_weather(pipeline), inputs=2) as harness:
        for side in (0, 1):
            harness.advance_watermark(HOUR, side)
        harness.give(left(HOUR, 1))
        harness.give(observed(5, "fog"))
        harness.give(left(HOUR + 1, 2))
        for side in (0, 1):
            harness.advance_watermark(2 * HOUR, side)
        assert [(found.delay, found.sky) for found in harness.output_values()] == [(2, None)]
        counts = [value for name, value in harness.metrics.snapshot().items() if name.endswith("late")]
        assert counts == [2]


@pytest.mark.slow
@pytest.mark.parametrize("order", ARRIVALS)
def test_the_join_withstands_every_hardship(pipeline, order):
    middle = len(ARRIVALS[order]) // 2
    given = [*ARRIVALS[order][:middle], wm(4), *ARRIVALS[order][middle:], in2(wm(HOUR)), wm(HOUR), wm(2 * HOUR)]
    verify(with_weather(pipeline), given)


def hour(pipeline: Any, number: int, mean: float, departures: int = 10) -> Any:
    at = datetime.fromtimestamp(number * 3600, timezone.utc)
    return pipeline.Hour("JFK", at, departures, mean, 0, 0, "Delta", 0.0, None)


def rises(pipeline: Any, *hours: Any) -> list[tuple[float | None, bool]]:
    with OperatorHarness(lambda: KeyedProcessOperator(lambda row: row.airport, pipeline.Rises())) as harness:
        for row in hours:
            harness.process(row, 0)
        return [(row.rise, row.rising) for row in harness.output_values()]


def test_a_rise_is_that_of_three_hours_above_the_three_before(pipeline):
    means = [0, 0, 3, 10, 11, 15, 16]
    found = rises(pipeline, *(hour(pipeline, at, mean) for at, mean in enumerate(means)))
    assert found == [(None, False)] * 5 + [(11.0, True), (14.0 - 13 / 3, False)]


@pytest.mark.parametrize(
    ("means", "departures", "rise"),
    [
        ([0, 0, 0, 10, 10, 15], 10, 35 / 3),  # does not grow from hour to hour
        ([0, 0, 0, 9, 9.5, 11], 10, 29.5 / 3),  # not by enough
        ([0, 0, 0, 10, 11, 15], 9, 12.0),  # too few departures
    ],
)
def test_a_rise_that_is_small_uneven_or_of_few_is_not_flagged(pipeline, means, departures, rise):
    found = rises(pipeline, *(hour(pipeline, at, mean, departures) for at, mean in enumerate(means)))
    assert found[-1] == (pytest.approx(rise), False)


def test_hours_count_by_their_departures(pipeline):
    hours = [hour(pipeline, at, mean, n) for at, (mean, n) in enumerate([(0, 10)] * 3 + [(20, 10), (21, 10), (50, 80)])]
    assert rises(pipeline, *hours)[-1] == (44.1, True)


def test_a_missing_hour_begins_anew(pipeline):
    hours = [hour(pipeline, number, number) for number in (0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11)]
    assert [rise for rise, _ in rises(pipeline, *hours)] == [None] * 10 + [3.0]


def test_weather_in_a_word(pipeline):
    rows = [
        ("snow", 32.0, 5.0, 0.1, 1.0), ("rain", 33.0, 5.0, 0.1, 1.0), ("rain", None, 5.0, 0.1, 1.0),
        ("fog", 33.0, 30.0, 0.0, 1.9), ("wind", 33.0, 20.0, 0.0, 2.0), ("fair", 20.0, 19.9, 0.0, 10.0),
        ("fair", 20.0, None, 0.0, 10.0),
    ]  # fmt: skip
    columns = ["temp", "wind_speed", "precip", "visib"]
    frame = pl.DataFrame([row[1:] for row in rows], schema=dict.fromkeys(columns, pl.Float64), orient="row")
    found = pipeline.skies(frame.with_columns(airport=pl.lit("JFK")))
    assert found.columns == ["airport", "sky"]
    assert found["sky"].to_list() == [row[0] for row in rows]


@pytest.mark.slow
def test_the_chart_shows_the_tables(pipeline, tmp_path, monkeypatch):
    drawn = []

    class Kept(pipeline.Figure):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            drawn.append(self)

    monkeypatch.setattr(pipeline, "Figure", Kept)
    tables = {
        "mean delay by month": (["month", "EWR", "JFK"], [("01", 14.9, 8.6), ("02", 13.1, 11.8)]),
        "by weather": (["weather", "hours", "departures", "mean delay"], [("snow", 1, 2, 29.7), ("fair", 3, 4, 11.4)]),
    }
    pipeline.draw(tables, tmp_path / "chart.png")
    by_month, by_weather = drawn[0].axes
    lines = {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in by_month.lines}
    assert lines == {"EWR": (["01", "02"], [14.9, 13.1]), "JFK": (["01", "02"], [8.6, 11.8])}
    assert [bar.get_height() for bar in by_weather.patches] == [29.7, 11.4]
    assert [tick.get_text() for tick in by_weather.get_xticklabels()] == ["snow", "fair"]
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")


# what Spark cleans


@pytest.fixture
def local_spark(pipeline: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A Spark in one JVM, without Ray."""
    from pyspark.sql import SparkSession

    from rayflink.spark.java import find_java, with_java
    from rayflink.spark.ray_session import end_gateway

    for name, value in with_java(find_java(), os.environ).items():
        monkeypatch.setenv(name, value)
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.extraJavaOptions", f"-Djava.io.tmpdir={tmp_path} -XX:-UsePerfData")
    builder = builder.config("spark.local.dir", str(tmp_path)).config("spark.driver.bindAddress", "127.0.0.1")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.sql.warehouse.dir", str(tmp_path / "w"))
    for name, value in pipeline.SPARK.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()
        end_gateway()


GOOD = {"dep_time": "517", "sched_dep_time": "515", "dep_delay": "2", "carrier": "UA", "tailnum": "N1", "origin": "EWR",
        "year": "2013", "month": "1", "day": "1"}  # fmt: skip
BAD_FLIGHTS: list[tuple[str | None, dict[str, str]]] = [
    (None, {}),
    (None, {"dep_time": "2400", "sched_dep_time": "2359", "dep_delay": "1"}),
    (None, {"dep_time": "2", "sched_dep_time": "2400", "dep_delay": "2"}),
    (None, {"dep_time": "301", "sched_dep_time": "159", "dep_delay": "2", "month": "3", "day": "10"}),  # clocks go on
    (None, {"dep_time": "101", "sched_dep_time": "159", "dep_delay": "2", "month": "11", "day": "3"}),  # and back
    (None, {"tailnum": "N404"}),
    (None, {"tailnum": "NA"}),
    ("cancelled", {"dep_time": "NA", "dep_delay": "NA"}),
    ("departed, delay unknown", {"dep_delay": "NA"}),
    ("a delay, but no departure", {"dep_time": "NA"}),
    ("departure and delay disagree", {"dep_delay": "3"}),
    ("departure and delay disagree", {"dep_time": "2517"}),
    ("impossible delay", {"dep_delay": "14402"}),
    ("no such scheduled time", {"month": "13"}),
    ("no such scheduled time", {"month": "2", "day": "30"}),
    ("no such scheduled time", {"sched_dep_time": "2413", "dep_time": "15"}),
    ("no such scheduled time", {"sched_dep_time": "1375", "dep_time": "1417"}),
    ("no such scheduled time", {"sched_dep_time": "-5"}),
    ("no such scheduled time", {"sched_dep_time": "NA"}),
    ("no such scheduled time", {"sched_dep_time": "230", "dep_time": "332", "month": "3", "day": "10"}),  # was skipped
    ("unknown carrier", {"carrier": "ZZ"}),
    ("unknown carrier", {"carrier": "NA"}),
    ("unknown airport", {"origin": "NYC"}),
    ("unreadable line", {"dep_delay": "two"}),
    ("unreadable line", {"month": "January"}),
]
GOOD_HOUR = {"origin": "EWR", "year": "2013", "month": "1", "day": "1", "hour": "1", "temp": "39.02", "precip": "0",
             "wind_speed": "10.4", "visib": "10", "time_hour": "2013-01-01T06:00:00Z"}  # fmt: skip
BAD_WEATHER: list[tuple[str | None, dict[str, str]]] = [
    (None, {}),
    (None, {"wind_speed": "NA"}),
    ("impossible wind", {"wind_speed": "1048.36"}),
    ("impossible wind", {"wind_speed": "-1"}),
    ("no such hour", {"hour": "24"}),
    ("no such hour", {"month": "13"}),
    ("no such hour", {"time_hour": "NA"}),
    ("unreadable line", {"temp": "cold"}),
]


def write_table(pipeline: Any, folder: Path, name: str, rows: list[dict[str, str]]) -> None:
    columns = [column.split()[0] for column in pipeline.COLUMNS[name].split(", ")]
    lines = [",".join(columns), *(",".join(row.get(column, "NA") for column in columns) for row in rows)]
    (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def counted(rows: list[tuple[str | None, dict[str, str]]]) -> dict[str, int]:
    return dict(pl.Series([problem or "as they should be" for problem, _ in rows]).value_counts().iter_rows())


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.timeout(200)
def test_what_cannot_be_is_counted_by_its_problem_and_left_out(pipeline, local_spark, tmp_path):
    write_table(pipeline, tmp_path, "flights", [{**GOOD, **row} for _, row in BAD_FLIGHTS])
    write_table(pipeline, tmp_path, "weather", [{**GOOD_HOUR, **row} for _, row in BAD_WEATHER])
    write_table(pipeline, tmp_path, "planes", [{"tailnum": "N1", "seats": "149"}])
    write_table(pipeline, tmp_path, "airlines", [{"carrier": "UA", "name": "United"}])
    write_table(pipeline, tmp_path, "airports", [{"faa": "EWR", "name": "Newark"}])
    flights = pipeline.cleaned_flights(local_spark, tmp_path).cache()
    weather = pipeline.cleaned_weather(local_spark, tmp_path).cache()
    found = {(table, what): (rows, used) for table, what, rows, used in pipeline.counts(flights, weather)}

    assert found.pop(("flights", "... but of a plane that is not known")) == (2, "used, without seats")
    want = {("flights", what): rows for what, rows in counted(BAD_FLIGHTS).items()}
    want |= {("weather", what): rows for what, rows in counted(BAD_WEATHER).items()}
    assert {what: rows for what, (rows, _) in found.items()} == want
    assert {used for (_, what), (_, used) in found.items() if what != "as they should be"} == {"left out"}

    rows = [(row.at.timestamp(), row.delay, row.airline, row.seats) for row in pipeline.usable(flights).collect()]
    utc = [datetime(2013, *at, tzinfo=timezone.utc).timestamp() for at in [
        (1, 1, 10, 17), (1, 1, 10, 17), (1, 1, 10, 17), (1, 2, 5, 0), (1, 2, 5, 2), (3, 10, 7, 1), (11, 3, 6, 1)
    ]]  # fmt: skip
    assert [row[0] for row in rows] == utc
    assert sorted(str(row[3]) for row in rows) == ["149"] * 5 + ["None"] * 2
    assert pipeline.usable(weather).count() == 2
