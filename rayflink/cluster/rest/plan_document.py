"""The plan of a job as Flink's web interface draws it: a node for each vertex, with its inputs."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from typing import TypedDict

from ..jobs.cluster_job import Document

__all__ = ["JobPlan", "chain_description", "plan_document"]


class PlanInput(TypedDict):
    """An edge of the plan."""

    num: int
    id: str
    ship_strategy: str
    exchange: str


class PlanNode(TypedDict, total=False):
    """A vertex of the plan; sources have no inputs."""

    id: str
    parallelism: int
    operator: str
    operator_strategy: str
    description: str
    inputs: list[PlanInput]
    optimizer_properties: dict[str, str]


class JobPlan(TypedDict):
    """The plan of a job."""

    jid: str
    name: str
    type: str
    nodes: list[PlanNode]


def plan_document(status: Document, description: Document) -> JobPlan:
    """Return the plan of a job, consumers first.

    Args:
        status: of the job, with the parallelisms that it has now.
        description: of the job.

    Source: apache/flink JsonPlanGenerator.
    """
    parallelism = {vertex["id"]: vertex["parallelism"] for vertex in status["vertices"]}
    nodes = [
        _node(vertex, parallelism.get(vertex["id"], vertex["parallelism"]))
        for vertex in reversed(description["vertices"])
    ]
    return {"jid": status["jid"], "name": status["name"], "type": description["mode"], "nodes": nodes}


def _node(vertex: Document, parallelism: int) -> PlanNode:
    node: PlanNode = {
        "id": vertex["id"],
        "parallelism": parallelism,
        "operator": "",
        "operator_strategy": "",
        "description": chain_description(vertex["operators"]),
        "optimizer_properties": {},
    }
    if vertex["inputs"]:
        node["inputs"] = [
            {"num": number, "id": edge["id"], "ship_strategy": edge["ship_strategy"], "exchange": edge["exchange"]}
            for number, edge in enumerate(vertex["inputs"])
        ]
    return node


def chain_description(operators: Sequence[Document]) -> str:
    """Return the operators of a vertex as a tree of lines, as HTML: names of users are escaped.

    >>> first = {"name": "Source: events", "chained_to": [1, 2]}
    >>> others = [{"name": "a<b", "chained_to": []}, {"name": "sink", "chained_to": []}]
    >>> chain_description([first, *others])
    'Source: events<br/>:- a&lt;b<br/>+- sink<br/>'
    """
    return "".join(f"{line}<br/>" for line in _lines(operators, 0, "", "")) if operators else ""


def _lines(operators: Sequence[Document], position: int, branch: str, indent: str) -> Iterator[str]:
    operator = operators[position]
    yield branch + html.escape(operator.get("description") or operator["name"])
    targets = operator.get("chained_to", ())
    for number, target in enumerate(targets):
        is_last = number == len(targets) - 1
        mark, further = ("+- ", "   ") if is_last else (":- ", ":  ")
        yield from _lines(operators, target, f"{indent}{mark}", f"{indent}{further}")
