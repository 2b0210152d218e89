"""Rates, ratios and tables from runs."""

from __future__ import annotations

from typing import Any

from benchmarks.runs.contestants import PythonModule
from benchmarks.runs.report import (
    Spread,
    as_json,
    jobs_table,
    numbers_table,
    rate,
    rates_table,
    ratios,
    side_by_side,
    slopes_table,
    table,
    whole_rate,
)
from benchmarks.runs.rounds import Record


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


def _cells(told: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in told.splitlines()[2:]]


def test_a_slope_is_the_rows_more_over_the_seconds_more_of_two_sizes() -> None:
    def sized(name: str, rows: int, seconds: list[float], missing: str | None = None) -> Record:
        contestant = PythonModule(name, f"{name.title()}, w2, {rows} rows", "nowhere")
        return Record(contestant, None, [{"rows": rows, "seconds_job": taken} for taken in seconds], missing)

    ours = [sized("ours", 1_000_000, [2.0, 3.0]), sized("ours", 5_000_000, [3.0, 5.0])]
    flink = [sized("flink", 1_000_000, [3.0, 3.0]), sized("flink", 5_000_000, [7.0, 11.0])]
    gone = [sized("other", 1_000_000, [1.0]), sized("other", 5_000_000, [], "absent")]
    told = _cells(slopes_table([ours[0], flink[0], gone[0], ours[1], flink[1], gone[1]]))
    assert told == [
        ["w2", "Ours, w2, 1000000 rows", "2.50 (2.00 to 3.00)", "3.00 (2.00 to 4.00)", "1.00 (1.00 to 1.00)"],
        ["w2", "Flink, w2, 1000000 rows", "3.00 (3.00 to 3.00)", "0.75 (0.50 to 1.00)", "4.00 (4.00 to 4.00)"],
    ]


def test_jobs_of_a_session_are_compared_by_query_and_in_their_geometric_mean() -> None:
    def ran(name: str, factors: dict[str, float]) -> Record:
        jobs = [
            {"query": query, "events": events, "seconds": factor * (1 + events / 1e6), "cpu_seconds": events / 1e6}
            for events in (1_000_000, 3_000_000)
            for query, factor in factors.items()
        ]
        return Record(PythonModule(name, name.title(), "nowhere"), None, [{"jobs": jobs}])

    told = _cells(jobs_table([ran("ours", {"q0": 1, "q1": 1}), ran("flink", {"q0": 2, "q1": 8})]))
    once, both = "1.00 (1.00 to 1.00)", "1000 (1000 to 1000)"
    assert told[1] == [
        "q0", "Flink", "8.00 (8.00 to 8.00)", "2000 (2000 to 2000)", both, "2.00 (2.00 to 2.00)", "2.00 (2.00 to 2.00)",
        once,
    ]  # fmt: skip
    assert [line[:2] + line[5:] for line in told[-2:]] == [
        ["geometric mean", "Ours", "1.00", "1.00", "1.00"],
        ["geometric mean", "Flink", "4.00", "4.00", "1.00"],
    ]


def test_a_table_is_aligned_markdown() -> None:
    assert table(("a", "long"), [("wide", "b")]) == "| a    | long |\n| ---- | ---- |\n| wide | b    |"
