"""The description of a job that does not change while it runs."""

from __future__ import annotations

import json
from dataclasses import replace

from rayflink.graph.job_description import describe_graph
from rayflink.graph.job_graph_builder import job_graph
from rayflink.graph.translation import PlanSettings, stream_graph

from .programs import key_by, sink, source, step


def test_vertices_name_their_inputs_and_secrets_are_masked() -> None:
    plan = stream_graph([sink(step(key_by(step(source()))))], PlanSettings("demo", parallelism=2))
    graph = replace(job_graph(plan), configuration={"s3.secret-key": "abc", "parallelism.default": 2})
    described = describe_graph(graph)
    assert json.loads(json.dumps(described)) == described
    assert described["configuration"] == {"parallelism.default": "2", "s3.secret-key": "******"}
    assert (described["jid"], described["mode"]) == (graph.id, "STREAMING")
    first, second = described["vertices"]
    assert first["inputs"] == []
    (edge,) = second["inputs"]
    assert (edge["id"], edge["ship_strategy"], edge["exchange"]) == (first["id"], "HASH", "pipelined_bounded")
    assert [operator["name"] for operator in first["operators"]] == first["name"].split(" -> ")
