"""Cached streams on Ray: what one job keeps, another reads."""

from __future__ import annotations

import pytest

from rayflink.datastream import StreamExecutionEnvironment

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]


def test_a_cached_stream_is_computed_once_and_again_once_it_is_invalidated(tmp_path):
    calls = tmp_path / "calls"
    calls.touch()

    def noted(number: int) -> int:
        with calls.open("a") as file:
            file.write("x")
        return number

    env = StreamExecutionEnvironment({"execution.target": "ray", "parallelism.default": 2})
    kept = env.from_sequence(1, 1_000).map(noted).cache()
    assert sorted(kept.execute_and_collect()) == list(range(1, 1_001))
    assert len(calls.read_text()) == 1_000
    assert sorted(kept.map(lambda n: n + 1).execute_and_collect()) == list(range(2, 1_002))
    assert len(calls.read_text()) == 1_000
    kept.invalidate()
    assert len(list(kept.execute_and_collect())) == 1_000
    assert len(calls.read_text()) == 2_000
    env.close()
