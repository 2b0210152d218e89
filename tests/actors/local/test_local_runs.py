"""The surroundings of a local run."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from rayflink.actors.local.local_runs import fewer_collections
from rayflink.datastream import StreamExecutionEnvironment


@pytest.fixture
def thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize(
    "program, within", [((700, 10, 10), (50_000, 10, 10)), ((0, 5, 5), (0, 5, 5)), ((90_000,), (90_000,))]
)
def test_collections_are_fewer_within_a_run(
    program: tuple[int, ...], within: tuple[int, ...], thresholds: None
) -> None:
    gc.set_threshold(*program)
    before = gc.get_threshold()
    with pytest.raises(KeyError), fewer_collections():
        assert gc.get_threshold()[: len(within)] == within
        raise KeyError
    assert gc.get_threshold() == before


def test_a_local_job_runs_with_fewer_collections(thresholds: None) -> None:
    gc.set_threshold(700)
    env = StreamExecutionEnvironment.get_execution_environment({"execution.target": "local"})
    seen = env.from_collection([1]).map(lambda number: gc.get_threshold()[0])
    assert list(seen.execute_and_collect()) == [50_000]
    assert gc.get_threshold()[0] == 700
