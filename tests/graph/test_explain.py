"""Plans for people: text, drawing and Flink's JSON; golden files hold what they look like.

`RAYFLINK_WRITE_GOLDEN=1 pytest tests/graph/test_explain.py` writes the golden files anew.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from rayflink.graph.execution_graph import execution_graph
from rayflink.graph.explain import explain
from rayflink.graph.job_graph_builder import chain_calls, job_graph
from rayflink.graph.partitioners import Broadcast
from rayflink.graph.plan_json import plan_json
from rayflink.graph.stream_graph import StreamGraph
from rayflink.graph.svg import to_svg
from rayflink.graph.transformations import Feedback, Partition, SideOutput, TwoInput, Union
from rayflink.graph.translation import PlanSettings, stream_graph

from .programs import first, key_by, operator, sink, socket_window_count, source, step

GOLDEN = Path(__file__).parent.parent / "golden" / "graphs"


def rolling_word_count() -> StreamGraph:
    counts = step(key_by(step(source("Collection Source"), "Flat Map")), "Keyed Aggregation")
    return stream_graph([sink(step(counts, "Filter"))], PlanSettings("rolling word count"))


def three_steps(chaining: bool) -> StreamGraph:
    return stream_graph([sink(step(source()))], PlanSettings("three steps", parallelism=2, chaining=chaining))


def rules_and_late_rows() -> StreamGraph:
    words = step(source(), "Flat Map")
    window = step(key_by(words), "Window", uid="window", parallelism=3)
    rules = Partition(source("Rules", parallelism=2), Broadcast())
    judged = TwoInput(key_by(words), rules, operator, first, name="Judge", parallelism=4, call_site="job.py:5 in main")
    late = SideOutput(window, "late")
    both = Union((late, judged))
    ends = [sink(window, parallelism=1), sink(both, "Late & Judged", slot_sharing_group="io", parallelism=1)]
    return stream_graph(ends, PlanSettings("rules <and> late rows", parallelism=2))


def iteration() -> StreamGraph:
    loop = Feedback(source("Numbers"), call_site="job.py:3 in main")
    body = step(loop, "Halve")
    loop.add_feedback_edge(body)
    return stream_graph([sink(body)], PlanSettings("iteration"))


PROGRAMS: dict[str, Callable[[], StreamGraph]] = {
    "socket_window_count": lambda: stream_graph([socket_window_count(3)], PlanSettings("socket window count")),
    "rolling_word_count": rolling_word_count,
    "three_steps_chained": lambda: three_steps(True),
    "three_steps_apart": lambda: three_steps(False),
    "rules_and_late_rows": rules_and_late_rows,
    "iteration": iteration,
}


def shown(graph: StreamGraph) -> str:
    """Everything that is printed about a program: its three graphs, its chains and the plan."""
    job = job_graph(graph)
    calls = [
        f"createChain({c.start}, {c.current}) chainable [{' '.join(map(str, c.chainable))}] "
        f"non-chainable [{' '.join(map(str, c.non_chainable))}] transitive [{' '.join(map(str, c.transitive))}] "
        f"{'JobVertex' if c.creates_vertex else 'StreamConfig'}"
        for c in chain_calls(graph)
    ]
    parts = [str(graph), "\n".join(calls), explain(job), str(execution_graph(job)), plan_json(graph)]
    return "\n\n".join(parts) + "\n"


@pytest.mark.spec("X34", "X37", "X38", "X39", "X41", "I01", "C30", "fields")
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_shown_as_its_golden_file_has_it(name: str) -> None:
    found, file = shown(PROGRAMS[name]()), GOLDEN / f"{name}.txt"
    if os.environ.get("RAYFLINK_WRITE_GOLDEN"):
        file.write_text(found, encoding="utf-8")
    assert found == file.read_text(encoding="utf-8")


@pytest.mark.spec("C30", "fields")
def test_the_plan_has_flinks_fields_with_sinks_last() -> None:
    mapped = step(source(), description="to upper case")
    plan = json.loads(plan_json(stream_graph([sink(mapped, "First"), step(key_by(mapped), "Count", parallelism=2)])))
    assert plan["nodes"][0] == {
        "id": 1,
        "type": "Source: Socket Stream",
        "pact": "Data Source",
        "contents": "Source: Socket Stream",
        "parallelism": 1,
    }
    assert [(node["type"], node["pact"]) for node in plan["nodes"][1:]] == [
        ("Map", "Operator"),
        ("Count", "Operator"),
        ("Sink: First", "Data Sink"),
    ]
    assert plan["nodes"][1]["contents"] == "to upper case"
    assert plan["nodes"][2]["predecessors"] == [{"id": 2, "ship_strategy": "HASH", "side": "second"}]


def test_the_explanation_names_every_edge_that_does_not_chain_and_why() -> None:
    text = explain(job_graph(rules_and_late_rows()))
    assert "HASH, ALL_TO_ALL, PIPELINED_BOUNDED\n       not chained: the edge is HASH, not FORWARD" in text
    assert "REBALANCE of side output 'late'" in text
    assert "Slots by sharing group: default 4, io 1" in text
    assert "(uid window)  job.py:2 in main" in text


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_drawing_is_xml_with_every_vertex_inside_and_no_two_on_one_place(name: str) -> None:
    job = job_graph(PROGRAMS[name]())
    root = ElementTree.fromstring(to_svg(job))
    namespace = "{http://www.w3.org/2000/svg}"
    boxes = [r for r in root.iter(f"{namespace}rect") if (r.get("class") or "").startswith("box")]
    assert len(boxes) == len(job.vertices)
    assert len([p for p in root.iter(f"{namespace}path") if p.get("class") == "edge"]) == len(job.edges)
    sides = [tuple(float(r.get(side, "")) for side in ("x", "y", "width", "height")) for r in boxes]
    for index, (x, y, width, height) in enumerate(sides):
        assert x >= 0 and y >= 0
        assert x + width <= float(root.get("width", "")) and y + height <= float(root.get("height", ""))
        for other_x, other_y, other_width, other_height in sides[:index]:
            apart = x >= other_x + other_width or other_x >= x + width
            assert apart or y >= other_y + other_height or other_y >= y + height
    titles = {title.text for title in root.iter(f"{namespace}title")}
    assert {vertex.name for vertex in job.vertices} <= titles


def test_the_drawing_needs_nothing_from_outside() -> None:
    drawn = to_svg(job_graph(rules_and_late_rows()))
    assert "href" not in drawn and "url(#tip)" in drawn and drawn.count("http") == 1
