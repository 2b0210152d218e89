"""The recorded answers are those that a cluster of Flink gives now."""

from __future__ import annotations

import json

import pytest

from benchmarks.runs.environments import Unavailable
from tests.cluster_rest.json_shapes import Shape, differences
from tests.cluster_rest.record_flink import ANSWERS, record_adaptive, record_default


@pytest.mark.timeout(300)
@pytest.mark.soak  # two clusters of Flink, each with two processes of Java
def test_flink_answers_as_it_was_recorded() -> None:
    try:
        answers = [*record_default(), *record_adaptive()]
    except Unavailable as reason:
        pytest.skip(f"there is no Flink here: {reason}")
    recorded = {answer["request"]: answer for answer in map(json.loads, ANSWERS.read_text("utf-8").splitlines())}
    assert [answer["request"] for answer in answers] == list(recorded)
    lines = []
    for answer in answers:
        before = recorded[answer["request"]]
        assert (answer["request"], answer["status"]) == (before["request"], before["status"])
        changes = differences(Shape.of(before["body"]), Shape.of(answer["body"]))
        lines += [f"{answer['request']} {line}" for line in changes if "empty" not in line]
    varying = ("/flamegraph", "/checkpoints", "/jars")
    assert [line for line in lines if not any(path in line for path in varying)] == []
