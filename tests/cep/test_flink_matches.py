"""Matches are those of Flink's own CEP, in the same order; `flink_oracle` recorded what Flink finds."""

from __future__ import annotations

import json
import shutil
from collections import Counter

import pytest

from benchmarks.runs.environments import cache_directory
from tests.cep.described_patterns import find
from tests.cep.flink_differences import difference_of
from tests.cep.flink_oracle import GOLDEN, main

_SLICES = 5


@pytest.mark.parametrize("part", range(_SLICES))
def test_recorded_matches_of_flink_are_found(part):
    verdicts: Counter[str] = Counter()
    for line in GOLDEN.read_text(encoding="utf-8").splitlines()[part::_SLICES]:
        pair = json.loads(line)
        verdict = difference_of(pair, pair.pop("flink"))
        assert not verdict.startswith("DIFFERENT"), f"{verdict}: {pair}"
        verdicts[verdict.partition(":")[0]] += 1
    assert verdicts["equal"] > 3 * verdicts["known"] > 0


def test_matches_of_one_event_that_began_alike_have_the_order_of_flink():
    group = {"how": "begin", "name": "B", "calls": [["where", ["letter", "c"]], ["optional"]]}
    steps = [
        {"how": "begin", "name": "A", "calls": [["where", ["letter", "bc"]]]},
        {"how": "followed_by", "group": [group], "calls": [["times_range", 0, 3, None], ["consecutive"]]},
        {"how": "followed_by", "name": "C", "calls": [["optional"]]},
        {"how": "followed_by_any", "name": "D", "calls": [["where", ["letter", "a"]]]},
    ]
    pair = {"steps": steps, "skip": ["no_skip"], "events": "b3@0 a4@1 b4@3 a2@4", "rest": 15}
    # as recorded of Flink 2.3: each way through the group, which has no event, gives the same match again
    second = ["3 A=0 C=1 D=3", "3 A=0 D=3", "3 A=0 D=3", "3 A=0 D=3", *["3 A=0 C=1 D=3"] * 3, "3 A=0 D=3"]
    assert find(pair) == [*["1 A=0 D=1"] * 4, *second, *["3 A=2 D=3"] * 4]


def test_another_match_or_another_order_is_a_difference():
    step = {"how": "begin", "name": "A", "calls": [["where", ["letter", "a"]]]}
    pair = {"steps": [step], "skip": ["no_skip"], "events": "a0@0 a0@1", "rest": 0}
    assert difference_of(pair, {"found": ["0 A=0", "1 A=1"]}) == "equal: something is found"
    assert difference_of(pair, {"found": ["1 A=1", "0 A=0"]}) == "DIFFERENT order"
    assert difference_of(pair, {"found": ["0 A=0"]}) == "DIFFERENT matches"
    assert difference_of(pair, {"found": [], "error": "NullPointerException: null"}).startswith("DIFFERENT error")


@pytest.mark.slow
@pytest.mark.soak
def test_flink_finds_the_same_matches_where_it_is_installed(capsys):
    if not list(cache_directory().glob("flink-py*/requirements.txt")) or not shutil.which("javac"):
        pytest.skip("needs a JDK, and the Flink that python -m tests.cep.flink_oracle installs")
    assert main(["--pairs", "2000", "--seed", "11"]) == 0, capsys.readouterr().out


def test_the_comparison_says_what_is_missing(monkeypatch, capsys):
    monkeypatch.setattr("shutil.which", lambda tool: None)
    assert main(["--pairs", "1"]) == 0
    assert "skipped: no java and javac on PATH" in capsys.readouterr().out
