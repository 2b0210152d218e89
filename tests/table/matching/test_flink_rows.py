"""MATCH_RECOGNIZE gives the rows of Flink SQL, which `flink_oracle` recorded."""

from __future__ import annotations

import json
import shutil
from collections import Counter

import pytest

from benchmarks.runs.environments import cache_directory
from tests.table.matching.flink_differences import our_answer, verdict_on
from tests.table.matching.flink_oracle import RECORD, csv_tables, environment, main

_SLICES = 2


@pytest.mark.slow
@pytest.mark.spec("Q01")
@pytest.mark.parametrize("part", range(_SLICES))
def test_recorded_rows_of_flink_are_given(part, tmp_path):
    rows, *recorded = map(json.loads, RECORD.read_text(encoding="utf-8").splitlines())
    t_env = environment(csv_tables(rows, tmp_path))
    verdicts: Counter[str] = Counter()
    for line in recorded[part::_SLICES]:
        verdict = verdict_on(line["flink"], our_answer(t_env, line["query"]))
        assert not verdict.startswith("DIFFERENT"), f"{verdict}: {line['query']}"
        verdicts[verdict] += 1
    assert verdicts["equal: some rows"] > 10 > verdicts["equal: both refuse the query"]


def test_other_rows_and_errors_of_one_side_are_differences():
    two, one = {"rows": [["a", 1], ["b", None]]}, {"rows": [["a", 1]]}
    assert verdict_on(two, {"rows": [["b", None], ["a", 1]]}) == "equal: some rows"
    assert verdict_on(two, one) == "DIFFERENT rows"
    assert verdict_on({"rows": [[-0.0]]}, {"rows": [[0.0]]}) == "DIFFERENT rows"
    assert verdict_on({"error": "NullPointerException"}, one).startswith("DIFFERENT: Flink")
    assert verdict_on(one, {"error": "refused: no such column"}).startswith("DIFFERENT: here")
    miss = {"error": "FlinkRuntimeException: Could not skip to first element of a match."}
    assert verdict_on(miss, {"error": "refused: no such column"}).startswith("DIFFERENT errors")


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.timeout(400)
def test_flink_gives_the_same_rows_where_it_is_installed(capsys):
    if not list(cache_directory().glob("flink-py*/requirements.txt")) or not shutil.which("javac"):
        pytest.skip("needs a JDK, and the Flink that python -m tests.table.matching.flink_oracle installs")
    assert main(["--queries", "40", "--seed", "11"]) == 0, capsys.readouterr().out


def test_the_comparison_says_what_is_missing(monkeypatch, capsys):
    monkeypatch.setattr("shutil.which", lambda tool: None)
    assert main(["--queries", "1"]) == 0
    assert "skipped: no java and javac on PATH" in capsys.readouterr().out
