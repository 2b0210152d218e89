"""A job that stops with a savepoint while matches are partial, and goes on with other subtasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rayflink.cep import CEP, Pattern
from rayflink.common import JobClient
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.testing import rec, wm
from rayflink.testing.sources import Pause, ScriptedSource

EVENTS = [rec((number % 13, number * 7919 % 101, number), number) for number in range(600)]
"""(key, value, number)"""
STOP = [wm(280), Pause(3_600_000)]
"""After the first half, of which some events still wait; a restored source does not pause."""
RISE = (
    Pattern[Any]
    .begin("low").where(lambda event: event[1] < 20)
    .followed_by("high").where(lambda event: event[1] > 80).within(100)
)  # fmt: skip


def rises(events: list[Any], matches: list[tuple[int, int]], parallelism: int, **options: str) -> JobClient:
    """Start the job, whose matches are the numbers of their two events."""
    places = {"execution.target": "local", "parallelism.default": str(parallelism)}
    env = StreamExecutionEnvironment({**places, **options})
    source = env.from_source(ScriptedSource(events), None, "Events").uid("events")
    pattern_stream = CEP.pattern(source.key_by(lambda event: event[0]), RISE)
    numbers = pattern_stream.select(lambda match: (match["low"][0][2], match["high"][0][2])).uid("matches")
    numbers.add_sink(matches.append).uid("results")
    return env.execute_async("rises")


@pytest.mark.slow
def test_partial_matches_go_on_at_another_parallelism(tmp_path: Path) -> None:
    expected: list[tuple[int, int]] = []
    rises(EVENTS, expected, 2).get_job_execution_result().result()
    first_half = [match for match in expected if match[1] <= 280]
    before: list[tuple[int, int]] = []
    after: list[tuple[int, int]] = []
    stopped = [*EVENTS[:300], *STOP, *EVENTS[300:]]
    client = rises(stopped, before, 2)
    while len(before) < len(first_half):
        assert not client.get_job_status().result().is_terminal
    savepoint = client.stop_with_savepoint(False, str(tmp_path)).result()
    assert sorted(before) == sorted(first_half)
    rises(stopped, after, 3, **{"execution.state-recovery.path": savepoint}).get_job_execution_result().result()
    assert sorted(before + after) == sorted(expected)
    assert sum(low <= 280 for low, _ in after) > 3, "too few matches were partial when the job was stopped"
