"""The work of a task on a stream: its calls of Python code grow with the buffers, not with the records in them."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import pytest

from rayflink.common.records.batches import RowBatch
from rayflink.operators.stateless import FilterOperator, FlatMapOperator, MapOperator
from tests.actors.task.task_bench import TaskBench

ROOT = str(Path(__file__).parents[3])
BUFFERS = 4
USER = "functions of the job"


def _calls(records: int) -> Counter[str]:
    """Return the calls while a task works on buffers of so many records, from their bytes through a chain to bytes."""
    bench = TaskBench([MapOperator(lambda n: n + 1), FilterOperator(lambda n: n > 0), FlatMapOperator(lambda n: [n])])
    bench.start()
    bench.work()
    for number in range(BUFFERS):
        bench.feed(0, RowBatch(list(range(number * records, (number + 1) * records))))
    calls: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            path = frame.f_code.co_filename
            calls[USER if path == __file__ else f"{path.removeprefix(ROOT)}:{frame.f_code.co_name}"] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        bench.work()
    finally:
        sys.setprofile(before)
    assert bench.output == list(range(1, BUFFERS * records + 1))
    return calls


@pytest.mark.spec("A10", "throughput")
def test_the_calls_of_a_task_do_not_grow_with_the_records_of_a_buffer() -> None:
    """One call of the runtime a record and step would bound every rate; only functions of the job are called so."""
    few, many = _calls(1_000), _calls(4_000)
    assert (few.pop(USER), many.pop(USER)) == (3 * 1_000 * BUFFERS, 3 * 4_000 * BUFFERS)
    assert many.total() <= 1.2 * few.total(), f"more of {(many - few).most_common(9)}"
