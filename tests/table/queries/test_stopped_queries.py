"""Queries that are killed, or stopped midway and restored at another parallelism, give the rows of undisturbed ones.

Each query meets all of it in one test, which is marked `soak` where other queries have the same operators; each
hardship by itself, and at each parallelism, is long and marked `soak`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from rayflink.actors.messages.states import JobStatus
from rayflink.connectors.collection import CollectSink
from rayflink.graph.job_graph import JobGraph
from rayflink.testing import UNRELIABLE_NETWORK, KillTask, SimulatedDisk, StopWithSavepoint, simulate
from tests.table.planned_streams import planned_stream
from tests.table.queries.golden_queries import golden_queries, unlike
from tests.table.queries.paced_orders import PacedConnector

BATCH = "batch mode takes no checkpoints"
LEFT_OUT = {query.folder.name: BATCH for query in golden_queries() if query.options.get("mode") == "batch"} | {
    name: "FIRST_VALUE and LAST_VALUE go by arrival, here from two subtasks"
    for name in ("first_and_last", "stream_group_first_last")
} | {
    query.folder.name: "orders, which come at a pace here, are looked up"
    for query in golden_queries() if "lookup" in query.folder.name
}  # fmt: skip
"""Queries that are not run here, and why."""
EMPTY = {"interval_join_nothing", "intersect_of_groups", "no_windows"}
"""Queries without a row."""
ANY_ORDER = {"array_agg", "array_agg_session", "json_aggregates", "listagg_window", "stream_group_lists"}
"""Their collections go by arrival, from two subtasks: they are compared without it."""
QUERIES = {query.folder.name: query for query in golden_queries() if query.folder.name not in LEFT_OUT}
DAILY = {query.folder.name for query in unlike(QUERIES.values())}
OPTIONS = {
    "execution.checkpointing.interval": "5 ms",
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "50",
    "restart-strategy.fixed-delay.delay": "0 s",
    "pipeline.max-parallelism": "12",
}


def graph(name: str, width: int, path: str = "") -> JobGraph:
    """The job of a golden query over paced orders; other tables are what they are."""
    restored = {"execution.state-recovery.path": path} if path else {}
    t_env = QUERIES[name].environment(**{"parallelism.default": str(width)}, **OPTIONS, **restored)
    catalogs = t_env._context.catalogs
    found_path, table = catalogs.find(("orders",))
    catalogs.replace(found_path, replace(table, connected=PacedConnector(2)))
    table = t_env.sql_query(QUERIES[name].text)
    with t_env._queries.env.apart():
        planned_stream(t_env, table).sink_to(CollectSink()).uid("out")
        return t_env._queries.env.get_job_graph()


def keeps_state(name: str) -> bool:
    """Whether rows are dealt to where their keys are."""
    return "Exchange(" in QUERIES[name].expected


def rows(name: str, story: Any) -> Counter[str]:
    """What holds at the end, however results were updated before."""
    assert story.status is JobStatus.FINISHED, story.describe(story.failure)
    found: Counter[str] = Counter()
    for row in story.collected():
        text = repr(list(row))
        found["".join(sorted(text)) if name in ANY_ORDER else text] += -1 if row._is_retract_msg() else 1
    assert all(count >= 0 for count in found.values())
    return +found


@cache
def undisturbed(name: str) -> tuple[Counter[str], int]:
    story = simulate(graph(name, 2), 1)
    return rows(name, story), story.happenings[-1].move


@pytest.mark.slow
@pytest.mark.parametrize(("name", "width"), [
    pytest.param(name, width, marks=() if name in DAILY else pytest.mark.soak)
    for name, width in zip(QUERIES, itertools.cycle([3, 1]))
], ids=QUERIES)  # fmt: skip
def test_a_query_killed_and_stopped_midway_goes_on_elsewhere_and_is_killed_again(name, width):
    wanted, moves = undisturbed(name)
    assert bool(wanted) == (name not in EMPTY)
    disk, (first, *others) = SimulatedDisk(), [vertex.name.split(" ")[0] for vertex in graph(name, 2).vertices]
    kills = [
        KillTask(name, move=int(moves * 0.15)) for name in others[:1]
    ]  # alone, it would not run when it is stopped
    rough = UNRELIABLE_NETWORK if others else ()
    story = simulate(graph(name, 2), 0, [*kills, *rough, StopWithSavepoint(move=int(moves * 0.3))], disk)
    assert story.stopped_with
    story = simulate(graph(name, width, story.stopped_with), 0, [KillTask(first, move=30 * width)], disk)
    assert rows(name, story) == wanted, story.describe("other rows")
    assert story.restarts or not keeps_state(name)


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("width", [3, 1])
@pytest.mark.parametrize("name", QUERIES)
def test_a_query_stopped_midway_goes_on_at_another_parallelism(name, width):
    wanted, moves = undisturbed(name)
    assert bool(wanted) == (name not in EMPTY)
    disk = SimulatedDisk()
    story = simulate(graph(name, 2), 0, [StopWithSavepoint(move=int(moves * (0.3 if width == 3 else 0.4)))], disk)
    assert story.stopped_with
    story = simulate(graph(name, width, story.stopped_with), 0, (), disk)
    assert rows(name, story) == wanted, story.describe("other rows")


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("name", QUERIES)
def test_a_query_whose_tasks_are_killed_gives_each_row_once(name):
    wanted, moves = undisturbed(name)
    vertices = [vertex.name for vertex in graph(name, 2).vertices]
    for seed in range(2 if keeps_state(name) else 1):
        faults = [KillTask(vertex.split(" ")[0], move=int(moves * (0.2 + 0.25 * at + 0.05 * seed)))
                  for at, vertex in enumerate(vertices[:3])]  # fmt: skip
        story = simulate(graph(name, 2), seed, [*faults, *UNRELIABLE_NETWORK])
        assert rows(name, story) == wanted, story.describe("other rows")
