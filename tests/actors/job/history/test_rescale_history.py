"""The changes of a job's parallelism: what is counted, what is remembered."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from rayflink.actors.job.history.rescale_history import (
    COMPLETED,
    COORDINATOR_LOST,
    FAILED,
    NO_SLOTS,
    SUCCEEDED,
    RescaleHistory,
)
from rayflink.actors.messages.states import JobStatus
from rayflink.graph.job_graph import JobGraph
from rayflink.graph.job_graph_builder import job_graph
from rayflink.graph.translation import PlanSettings, stream_graph
from tests.graph.programs import sink, source


def graph(parallelism: int) -> JobGraph:
    built = job_graph(stream_graph([sink(source())], PlanSettings("demo")))
    return replace(built, vertices=tuple(replace(vertex, parallelism=parallelism) for vertex in built.vertices))


def ends(history: RescaleHistory) -> list[Any]:
    return [(record["id"], record["state"], record["reason"]) for record in history.describe()["history"]]


def test_each_change_ends_once_and_the_newest_are_remembered() -> None:
    history = RescaleHistory(3)
    history.begin("a", graph(1), graph(2), 10)
    history.cancel(15)
    assert history.describe()["counts"] == {"COMPLETED": 0, "FAILED": 0, "IGNORED": 0, "IN_PROGRESS": 1}
    history.end(COMPLETED, SUCCEEDED, 20)
    history.end(FAILED, NO_SLOTS, 21)
    (record,) = history.describe()["history"]
    assert (record["began"], record["cancelled"], record["ended"]) == (10, 15, 20)
    assert (set(record["before"].values()), set(record["after"].values())) == ({1}, {2})
    history.ignore("b", graph(2), 30)
    history.begin("c", graph(2), graph(3), 40)
    history.end(FAILED, NO_SLOTS, 50)
    history.begin("d", graph(2), graph(3), 60)
    history.job_ended(JobStatus.CANCELED, 70)
    assert ends(history) == [
        ("d", "IGNORED", "JOB_CANCELED"),
        ("c", "FAILED", "EXCEPTION_OCCURRED"),
        ("b", "IGNORED", "NO_RESOURCES_OR_PARALLELISMS_CHANGE"),
    ]
    assert history.describe()["counts"] == {"COMPLETED": 1, "FAILED": 1, "IGNORED": 2, "IN_PROGRESS": 0}


@pytest.mark.parametrize(("parallelism", "end"), [(3, (COMPLETED, SUCCEEDED)), (2, (FAILED, COORDINATOR_LOST))])
def test_the_next_coordinator_says_what_came_of_a_change(parallelism: int, end: tuple[str, str]) -> None:
    history = RescaleHistory(3)
    history.ignore("a", graph(2), 5)
    history.begin("b", graph(2), graph(3), 10)
    successor = RescaleHistory(3, json.loads(json.dumps(history.as_json())))
    assert successor.describe() == history.describe()
    successor.resume(graph(parallelism), 20)
    assert ends(successor)[0] == ("b", *end)
    described = successor.describe()
    assert described["counts"] == {"COMPLETED": 0, "FAILED": 0, "IGNORED": 1, "IN_PROGRESS": 0} | {end[0]: 1}
    successor.resume(graph(parallelism), 30)
    assert successor.describe() == described, "a change ends once"


def test_each_step_of_a_change_is_stored() -> None:
    history = RescaleHistory(3)
    revisions = [history.revision]
    history.cancel(5)  # of nothing
    history.end(COMPLETED, SUCCEEDED, 6)
    assert history.revision == revisions[0]
    history.begin("a", graph(1), graph(2), 10)
    revisions.append(history.revision)
    history.cancel(15)
    revisions.append(history.revision)
    history.end(COMPLETED, SUCCEEDED, 20)
    revisions.append(history.revision)
    assert sorted(set(revisions)) == revisions
