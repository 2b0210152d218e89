"""A program whose state is not as the savepoint holds it: the job ends at once, since no restart heals that."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from rayflink.common import JobExecutionError
from rayflink.common.typeinfo import Types
from rayflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from rayflink.datastream.state import ListStateDescriptor, ValueStateDescriptor

OPTIONS = {
    "execution.target": "local",
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": 1_000_000,
    "restart-strategy.fixed-delay.delay": "0 ms",
}


class Kept(KeyedProcessFunction):
    """Keeps the newest number of a key, in a value or in a list."""

    def __init__(self, in_list: bool) -> None:
        self.in_list = in_list

    def open(self, ctx: Any) -> None:
        if self.in_list:
            self.state = ctx.get_list_state(ListStateDescriptor("kept", Types.LONG()))
        else:
            self.state = ctx.get_state(ValueStateDescriptor("kept", Types.LONG()))

    def process_element(self, value: int, ctx: Any) -> Iterable[int]:
        self.state.update([value] if self.in_list else value)
        yield value


def job(in_list: bool, **more: str) -> Any:
    env = StreamExecutionEnvironment({**OPTIONS, **more})
    numbers = env.from_sequence(1, 10_000_000).uid("numbers")
    numbers.key_by(lambda number: number % 3).process(Kept(in_list)).uid("kept").add_sink(lambda number: None)
    return env.execute_async("kept")


@pytest.mark.slow
def test_state_of_another_kind_ends_the_job_without_a_restart(tmp_path: Path) -> None:
    first = job(in_list=False)
    first.get_job_status()
    savepoint = first.stop_with_savepoint(False, str(tmp_path)).result()
    second = job(in_list=True, **{"execution.state-recovery.path": savepoint})
    with pytest.raises(JobExecutionError, match="cannot restore state 'kept' of operator 'kept'"):
        second.get_job_execution_result().result()
    assert second.status()["metrics"]["numRestarts"] == 0
