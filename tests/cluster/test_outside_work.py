"""Coroutines and pools of actors on Ray: they run beside the task, and a dead actor is replaced."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from rayflink.common import Time
from rayflink.common.errors import JobFailed
from rayflink.datastream import ActorPool, AsyncDataStream, StreamExecutionEnvironment

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]


class Mortal:
    """Dies once, with its process, at number 20; a file says that it has."""

    def __call__(self, rows: list[Any]) -> list[Any]:
        for number, mark in rows:
            if number == 20 and not os.path.exists(mark):
                with open(mark, "w", encoding="utf-8"):
                    os.kill(os.getpid(), signal.SIGKILL)
        return [(number, os.getpid()) for number, _ in rows]


def test_a_pool_replaces_an_actor_that_is_killed_and_works_its_batch_again(tmp_path):
    env, mark = StreamExecutionEnvironment(), str(tmp_path / "died")
    pool = ActorPool(2, num_cpus=0.1, batch_size=5)
    here = env.from_sequence(1, 60).map(lambda n: (n, mark))
    scored = here.map_batches(Mortal, "rows", concurrency=pool).map(lambda pair: (*pair, os.getpid()))
    found = list(scored.execute_and_collect())
    assert [number for number, _, _ in found] == list(range(1, 61))
    processes = {worker for _, worker, _ in found}
    assert os.path.exists(mark) and len(processes) >= 2
    assert not processes & {task for _, _, task in found}


def test_coroutines_run_in_the_process_of_their_slot():
    async def where(n):
        return [(n, os.getpid())]

    numbers = StreamExecutionEnvironment().from_sequence(1, 100)
    found = list(AsyncDataStream.ordered_wait(numbers, where, Time.seconds(10), 20).execute_and_collect())
    assert [n for n, _ in found] == list(range(1, 101)) and os.getpid() not in {pid for _, pid in found}


@pytest.mark.soak
def test_a_pool_without_room_on_the_cluster_says_what_there_is_and_what_is_wanted():
    pool = ActorPool(num_cpus=64, start_timeout_ms=1_000)
    scored = StreamExecutionEnvironment().from_sequence(1, 3).map_batches(lambda rows: rows, "rows", concurrency=pool)
    said = "num_cpus=64, num_gpus=0 was not there.*: the cluster has 2 CPUs, .* of them free; give the cluster more"
    with pytest.raises(JobFailed, match=said):
        list(scored.execute_and_collect())
