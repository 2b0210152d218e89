"""Rates, ratios and tables from runs."""

from __future__ import annotations

from typing import Any

from benchmarks.contestants import PythonModule
from benchmarks.report import (
    Spread,
    as_json,
    numbers_table,
    rate,
    rates_table,
    ratios,
    side_by_side,
    table,
    whole_rate,
)
from benchmarks.rounds import Record


def _record(name: str, seconds: list[float], missing: str | None = None) -> Record:
    """Runs of 100 words that take so many seconds after one second of start-up."""
    results: list[dict[str, Any]] = [
        {"rows": 100, "seconds_total": 1 + taken, "seconds_startup": 1.0} for taken in seconds
    ]
    return Record(PythonModule(name, name.title(), "nowhere"), 100, results, missing)


def test_the_rate_leaves_start_up_out_and_the_whole_rate_does_not() -> None:
    result = {"rows": 100, "seconds_total": 5.0, "seconds_startup": 1.0}
    assert (rate(result), whole_rate(result)) == (25.0, 20.0)


def test_the_rate_of_a_process_with_warm_jobs_is_that_of_their_median() -> None:
    assert rate({"rows": 100, "seconds_total": 50.0, "seconds_startup": 9.0, "seconds_warm": [1.0, 2.0, 10.0]}) == 50.0


def test_a_spread_is_median_least_and_greatest() -> None:
    assert Spread.of([3.0, 1.0, 2.0]) == Spread(2.0, 1.0, 3.0)
    assert Spread.of([3.0, 1.0, 2.0]).show() == "2.00 (1.00 to 3.00)"


def test_ratios_pair_the_runs_of_one_round() -> None:
    ours, slower_together = _record("ours", [1.0, 10.0, 2.0]), _record("peer", [2.0, 20.0, 4.0])
    assert ratios(ours, slower_together) == Spread(2.0, 2.0, 2.0)


def test_ratios_stop_where_one_of_the_two_stopped() -> None:
    assert ratios(_record("ours", [1.0, 1.0]), _record("peer", [4.0], missing="run 2: exit 1")) == Spread(4.0, 4.0, 4.0)


def test_the_base_is_the_first_that_ran() -> None:
    records = [_record("ours", [], missing="absent"), _record("flink", [1.0]), _record("bytewax", [4.0])]
    told = {one["name"]: one for one in as_json(records)}
    assert told["ours"]["missing"] == "absent" and "words_per_second" not in told["ours"]
    assert told["bytewax"]["ratio_flink_to_this"] == {"median": 4.0, "min": 4.0, "max": 4.0}
    assert told["bytewax"]["words_per_second"]["median"] == 25.0
    assert "flink / it" in rates_table(records) and "Ours" not in rates_table(records)


def test_start_up_has_lines_of_its_own() -> None:
    rates, startups = rates_table([_record("ours", [4.0])]).split("\n\n")
    assert "0.000 (0.000 to 0.000)" in rates and "1.00 (1.00 to 1.00)" in startups


def test_every_number_a_run_reports_has_its_line() -> None:
    runs = [{"p99_ms": 4, "note": "x"}, {"p99_ms": 8, "note": "y"}]
    record = Record(PythonModule("ours", "rayflink", "nowhere"), None, runs)
    assert "| p99_ms | 6.000 (4.000 to 8.000) |" in numbers_table([record])
    assert "note" not in numbers_table([record])


def test_numbers_stand_side_by_side_with_the_ratios_of_each_round() -> None:
    ours = Record(
        PythonModule("ours", "rayflink", "nowhere"), None, [{"x": 6, "own": 1, "cases": {}}, {"x": 8, "own": 3}]
    )
    peer = Record(PythonModule("peer", "Peer", "nowhere"), None, [{"x": 2, "zero": 0}, {"x": 4, "zero": 0}])
    assert side_by_side([ours, peer]).splitlines()[0].split("|")[1:-1] == [
        " number ", " rayflink            ", " Peer                ", " ours / peer         "
    ]  # fmt: skip
    assert [line.split() for line in side_by_side([ours, peer]).replace("|", "").splitlines()[2:]] == [
        ["x", "7.00", "(6.00", "to", "8.00)", "3.00", "(2.00", "to", "4.00)", "2.50", "(2.00", "to", "3.00)"],
        ["own", "2.00", "(1.00", "to", "3.00)", "-", "-"],
        ["zero", "-", "0.00", "(0.00", "to", "0.00)", "-"],
    ]
    assert "Peer" not in side_by_side([ours, Record(peer.contestant, None, [], "absent")])


def test_a_table_is_aligned_markdown() -> None:
    assert table(("a", "long"), [("wide", "b")]) == "| a    | long |\n| ---- | ---- |\n| wide | b    |"
