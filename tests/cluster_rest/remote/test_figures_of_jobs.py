"""What a cluster shows of jobs that run: hot keys before and after a rescaling, state, advice; and of them later."""

from __future__ import annotations

import json
import time
import urllib.request
from typing import Any

import pytest

from rayflink.common import JobClient, JobStatus
from rayflink.connectors.discard import DiscardingSink
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.state.keys.key_groups import key_group, subtask_of
from rayflink.state.keys.key_hash import key_hash

from .conftest import TOKEN, Clusters, eventually

pytestmark = pytest.mark.slow
MOST, HOT = 128, 1
"""Key groups of the jobs, and the key of three records in five."""
HOT_GROUP = key_group(key_hash(HOT), MOST)


def skewed(env: StreamExecutionEnvironment, more: str = "") -> JobClient:
    """Start a job that counts by keys, of which one is hot."""
    env.set_parallelism(2)
    env.set_max_parallelism(MOST)
    numbers = env.from_source(DataGeneratorSource(lambda n: n, None, 4_000), None, "numbers").uid("numbers")
    pairs = numbers.map(lambda n: (HOT if n % 5 < 3 else 100 + n % 50, 1)).name("Pairs")
    counts = pairs.key_by(lambda pair: pair[0]).sum(1).name("Count").uid("count")
    counts.sink_to(DiscardingSink())
    return env.execute_async(f"skewed {more}".strip())


def asked(clusters: Clusters, path: str) -> dict[str, Any]:
    """Return the answer of the REST interface."""
    request = urllib.request.Request(f"http://127.0.0.1:{clusters.port}{path}")
    request.add_header("Authorization", f"Bearer {TOKEN}")
    with urllib.request.urlopen(request, timeout=10) as answer:
        return dict(json.load(answer))


def counting(clusters: Clusters, job_id: str) -> dict[str, Any]:
    """Return the figures of the vertex that counts."""
    vertices = asked(clusters, f"/rayflink/jobs/{job_id}/live")["vertices"]
    return next(vertex for vertex in vertices if vertex["name"].startswith("Count"))


def hot_group(clusters: Clusters, job_id: str, parallelism: int) -> dict[str, Any]:
    """Wait until the job runs with a parallelism, and has a sample; return the hottest key group."""

    def found() -> Any:
        vertex = counting(clusters, job_id)
        hot = vertex["parallelism"] == parallelism and vertex["hot"]
        return hot and hot["sampled"] >= 200 and hot["key_groups"]

    groups = eventually(found, within_s=60)
    assert groups, counting(clusters, job_id)
    return dict(groups[0])


def seen_by(subtasks: int) -> dict[str, int]:
    return {"group": HOT_GROUP, "subtask": subtask_of(HOT_GROUP, subtasks, MOST)}


@pytest.mark.parametrize("names_keys", [False, True])
def test_the_hot_key_group_of_a_running_job_is_named_also_when_it_has_moved(
    clusters: Clusters, names_keys: bool
) -> None:
    client = skewed(clusters.environment({"rayflink.metrics.hot-keys": names_keys}))
    job_id = str(client.get_job_id())
    group = hot_group(clusters, job_id, 2)
    assert {name: group[name] for name in ("group", "subtask")} == seen_by(2) and 0.5 < group["share"] < 0.75
    keys = counting(clusters, job_id)["hot"]["keys"]
    assert [(key["key"], key["group"]) for key in keys[:1]] == ([(str(HOT), HOT_GROUP)] if names_keys else [])

    client.rescale({"Count": 3}).result()
    group = hot_group(clusters, job_id, 3)
    assert seen_by(3) != seen_by(2), "the group has moved"
    assert {name: group[name] for name in ("group", "subtask")} == seen_by(3) and 0.5 < group["share"] < 0.75
    client.cancel().result()


def test_archives_have_the_hot_key_groups_and_the_sizes_of_the_state(clusters: Clusters) -> None:
    client = skewed(clusters.environment({"execution.checkpointing.interval": "200 ms"}))
    job_id = str(client.get_job_id())
    hot = hot_group(clusters, job_id, 2)
    state = f"/rayflink/jobs/{job_id}/state"
    assert eventually(lambda: asked(clusters, state)["operators"], within_s=30)
    client.cancel().result()
    assert eventually(lambda: asked(clusters, f"/jobs/{job_id}")["state"] == "CANCELED", within_s=30)

    clusters.restart()  # the next dispatcher has nothing but what was written
    shown = hot_group(clusters, job_id, 2)
    assert {name: shown[name] for name in ("group", "subtask")} == seen_by(2)
    assert shown["share"] == pytest.approx(hot["share"], abs=0.1)
    operators = {operator["uid"]: operator for operator in asked(clusters, state)["operators"]}
    (counts,) = (each for each in operators["count"]["states"] if each["is_keyed"] and each["kind"] == "value")
    assert counts["entries"] == 1 + 20 and counts["bytes"] > 0
    assert len(counts["key_groups"]) > 10 and counts["largest_group"]["share"] < 0.5


def test_advice_is_given_and_the_job_stays_as_it_is(clusters: Clusters) -> None:
    env = clusters.environment({
        "job.autoscaler.enabled": "true",
        "job.autoscaler.scaling.enabled": "false",
        "autoscaler.standalone.control-loop.interval": "200 ms",
        "job.autoscaler.metrics.window": "2 s",
        "job.autoscaler.stabilization.interval": "200 ms",
    })  # fmt: skip

    def slow(number: int) -> int:
        time.sleep(0.01)
        return number

    numbers = env.from_source(DataGeneratorSource(lambda n: n, None, 400), None, "numbers")
    numbers.key_by(lambda number: number % 64).map(slow).name("Slow").sink_to(DiscardingSink())
    client = env.execute_async("advised")
    job_id = str(client.get_job_id())

    def advice() -> Any:
        return (client.status().get("autoscaler") or {}).get("decisions")

    decisions = eventually(advice, within_s=60)
    assert decisions and decisions[0]["outcome"] == "advice", client.status()
    (change,) = (change for name, change in decisions[0]["changes"].items() if name.startswith("Slow"))
    assert change.startswith("1 -> ") and "records/s and can do" in change
    shown = asked(clusters, f"/rayflink/jobs/{job_id}/live")
    assert shown["autoscaler"]["acts"] is False and shown["autoscaler"]["scalings"] == 0
    assert shown["autoscaler"]["decisions"][0] == decisions[0]
    assert "job.autoscaler.scaling.enabled is false" in shown["autoscaler"]["reason"]
    assert {vertex["parallelism"] for vertex in shown["vertices"]} == {1}
    assert client.get_job_status().result() is JobStatus.RUNNING
    client.cancel().result()
