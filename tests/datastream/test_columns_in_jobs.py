"""Whole jobs whose keyed records travel as columns give what jobs on rows give."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from rayflink.actors.exchange import key_codes
from rayflink.common.records.row_columns import RowColumns
from rayflink.datastream.environment import StreamExecutionEnvironment

LINES = [" ".join(f"w{(i * j) % 97}" for j in range(1, 9)) for i in range(1500)]


def count(least_rows: int, monkeypatch: pytest.MonkeyPatch) -> tuple[list[tuple[str, int]], int]:
    """Every update of a word count, and how many batches were made columns."""
    made = 0

    def counting(*given: Any) -> RowColumns:
        nonlocal made
        made += 1
        return RowColumns(*given)

    monkeypatch.setattr(key_codes, "LEAST_ROWS", least_rows)
    monkeypatch.setattr(key_codes, "RowColumns", counting)
    env = StreamExecutionEnvironment({"execution.target": "local", "parallelism.default": 2})
    words = env.from_collection(LINES).flat_map(lambda line: [(word, 1) for word in line.split()])
    return list(words.key_by(lambda pair: pair[0]).sum(1).execute_and_collect()), made


def test_a_word_count_gives_the_same_updates_a_word_with_columns_as_with_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    by_columns, made = count(16, monkeypatch)
    by_rows, none = count(10**9, monkeypatch)
    assert made and not none
    totals = Counter(word for line in LINES for word in line.split())
    for updates in (by_columns, by_rows):
        assert {type(value) for pair in updates for value in pair} == {str, int}
        for word, total in totals.items():
            assert [number for found, number in updates if found == word] == list(range(1, total + 1))
