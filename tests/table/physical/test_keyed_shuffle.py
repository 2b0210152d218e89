"""Rows are partitioned by the PRIMARY KEY of the table that they are written to, as `keyed-shuffle` says."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass

import pytest

from rayflink.actors.messages.states import JobStatus
from rayflink.common import Row
from rayflink.common.options.registry import SinkKeyedShuffle
from rayflink.common.typeinfo import Types
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.table import StreamTableEnvironment
from rayflink.table.connectors.contract import TableSink
from rayflink.table.physical.physical_sinks import is_shuffled
from rayflink.table.plan.logical import Sink
from rayflink.table.table import plan_of
from rayflink.testing import UNRELIABLE_NETWORK, ScriptedSource, simulate

NONE, AUTO, FORCE = SinkKeyedShuffle
KEYS = 7


@dataclass(frozen=True)
class Upserts(TableSink):
    parallelism: int | None = None
    row_key: tuple[str, ...] = ("word",)
    key: tuple[str, ...] = ("word",)
    is_append_only: bool = False
    requires_update_before: bool = False

    def attach(self, stream, name):
        step = stream.sink_to(CollectSink()).name(name)
        return step if self.parallelism is None else step.set_parallelism(self.parallelism)


def environment(strategy: SinkKeyedShuffle, *sinks: TableSink, width: int = 3) -> StreamExecutionEnvironment:
    """The program that writes words with rising numbers, which one reader reads."""
    env = StreamExecutionEnvironment({"execution.target": "local"})
    env.set_parallelism(width)
    t_env = StreamTableEnvironment.create(env)
    t_env.get_config().set_string("table.exec.sink.keyed-shuffle", strategy.value)
    script = [Row(f"word {number % KEYS}", number) for number in range(20 * KEYS)]
    kind = Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.INT()])
    source = env.from_source(ScriptedSource(script), None, "words", kind).set_parallelism(1)
    t_env.create_temporary_view("words", t_env.from_data_stream(source))
    query = plan_of(t_env.sql_query("SELECT word, n + 1 AS n FROM words WHERE n >= 0"))
    t_env._queries.add_inserts([Sink((), query, ("c", "d", f"table {n}"), sink) for n, sink in enumerate(sinks)])
    return env


def way_to_sink(strategy: SinkKeyedShuffle, sink: TableSink, width: int = 3) -> tuple[str, int]:
    """How rows get to the subtasks that write, and the number of these."""
    nodes = json.loads(environment(strategy, sink, width=width).get_execution_plan())["nodes"]
    [node] = [node for node in nodes if node["type"].startswith("Sink")]
    return node["predecessors"][0]["ship_strategy"], node["parallelism"]


@pytest.mark.spec("R28", "option")
@pytest.mark.parametrize(
    ("strategy", "writers", "senders", "expected"),
    [
        (AUTO, 3, 3, False), (AUTO, 3, 2, True), (AUTO, 1, 3, False),
        (FORCE, 3, 3, True), (FORCE, 1, 3, False), (NONE, 3, 2, False),
    ],
)  # fmt: skip
def test_the_option_decides_by_the_numbers_of_subtasks(strategy, writers, senders, expected):
    assert is_shuffled(strategy, writers, senders) is expected


def test_the_plan_shows_the_exchange_and_none_leaves_it_out():
    assert way_to_sink(AUTO, Upserts(3)) == ("HASH", 3)
    assert way_to_sink(NONE, Upserts(3)) == ("REBALANCE", 3)
    assert way_to_sink(AUTO, Upserts()) == ("FORWARD", 1), "rows of a key stay in order, as the reader has them"
    assert way_to_sink(FORCE, Upserts(1)) == ("FORWARD", 1)
    assert way_to_sink(FORCE, Upserts(3, row_key=(), key=())) == ("FORWARD", 3), "without a key rows have no order"


@pytest.mark.parametrize("sinks", [(Upserts(), Upserts(row_key=(), key=())), (Upserts(row_key=(), key=()), Upserts())])
def test_rows_of_a_key_stay_in_order_whichever_table_is_written_first(sinks):
    nodes = json.loads(environment(AUTO, *sinks).get_execution_plan())["nodes"]
    assert {node["parallelism"] for node in nodes} == {1}


@pytest.mark.spec("R28", "order")
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_rows_of_a_key_stay_in_order_where_three_subtasks_write(seed):
    story = simulate(environment(AUTO, Upserts(3)).get_job_graph(), seed, UNRELIABLE_NETWORK)
    assert story.status is JobStatus.FINISHED, story.describe(story.failure)
    found = defaultdict(list)
    for word, number in story.collected():
        found[word].append(number)
    assert len(found) == KEYS and all(len(numbers) == 20 for numbers in found.values())
    assert all(numbers == sorted(numbers) for numbers in found.values())
