"""The partition that holds back the watermark is named, in a job's status and on the terminal."""

from __future__ import annotations

import doctest
from typing import Any

from rayflink.actors.local.in_process import InProcessCluster
from rayflink.common.metrics import watermark_lag as module
from rayflink.common.metrics.job_report import html_table
from rayflink.common.metrics.watermark_lag import HeldBack, held_back
from rayflink.common.records.batches import MAX_TIMESTAMP
from rayflink.common.time import Duration
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.connectors.collection import CollectSink
from rayflink.connectors.hybrid_source import HybridSource
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.state.clock import ManualClock
from rayflink.testing import Pause, ScriptedSource, rec


def subtask(number: int, mark: int | None, state: str = "RUNNING", **metrics: Any) -> dict[str, Any]:
    operator = {"name": "in", "currentOutputWatermark": mark, "metrics": metrics}
    return {"subtask": number, "state": state, "metrics": {"operators": [operator]}}


def status(*subtasks: Any) -> dict[str, Any]:
    return {"vertices": [{"subtasks": list(subtasks)}]}


def split(name: str, mark: int | None, idle: bool = False) -> dict[str, Any]:
    return {f"split.{name}.watermark.currentWatermark": mark, f"split.{name}.watermark.isIdle": idle}


def test_a_split_is_named_among_all_subtasks_without_idle_and_ended_ones() -> None:
    first = subtask(0, 5, **split("a.b", 9_000), **split("idle", 1, idle=True))
    second = subtask(1, 5, **split("c", 4_000), **split("end", MAX_TIMESTAMP))
    assert held_back(status(first, second)) == HeldBack("c", "in", 1, 4_000, 5_000)
    assert held_back(status(first, subtask(1, 0, state="FINISHED", **split("c", 4_000)))) is None, "one is left"


def test_without_splits_it_is_a_subtask_that_makes_watermarks() -> None:
    marks = status(subtask(0, 9_000, isIdle=False), subtask(1, 2_000, isIdle=False), subtask(2, 0, isIdle=True))
    assert held_back(status(*marks["vertices"][0]["subtasks"], subtask(3, 0))) == HeldBack("", "in", 1, 2_000, 7_000)


def test_one_without_a_watermark_is_the_slowest_and_equals_hold_nobody_back() -> None:
    silent = held_back(status(subtask(0, 9_000, isIdle=False), subtask(1, None, isIdle=False)))
    assert silent == HeldBack("", "in", 1, None, None)
    assert str(silent) == "watermark held back by 'in' (subtask 1), which has none yet"
    assert held_back(status(subtask(0, 7, isIdle=False), subtask(1, 7, isIdle=False))) is None
    assert held_back(status()) is None
    assert held_back(status({"subtask": 0, "state": "RUNNING", "metrics": {}})) is None


def test_a_running_job_names_it_in_its_status() -> None:
    env = StreamExecutionEnvironment.get_execution_environment({})
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(0))
    scripts = ([rec(1, 60_000), Pause(3_000)], [rec(1, 20_000), Pause(3_000)])
    env.set_parallelism(2)
    env.from_source(HybridSource([ScriptedSource(*scripts)]), strategy, "in").sink_to(CollectSink("out"))
    clock = ManualClock(1_000)
    cluster = InProcessCluster(env.get_job_graph("job"), clock, lambda ms: clock.advance(max(1, int(ms))))
    told: set[str] = set()

    def look() -> None:
        told.add(str(held_back(cluster.job.report.describe())))

    cluster.run(look)
    wanted = "watermark held back by split 'script 1' of 'Source: in' (subtask 1) at 1970-01-01 00:00:19, 40.0 s behind"
    assert [line for line in told if line.startswith(wanted)], told


def test_a_notebook_shows_it_below_the_vertices() -> None:
    vertex = {"name": "in", "parallelism": 1, "numRecordsIn": 1, "numRecordsOut": 0, "states": {}}
    job = {"name": "j", "jid": "0", "state": "RUNNING"}
    shown = subtask(0, 5, **split("<a>", 9_000), **split("c", 4_000))
    shown["metrics"]["operators"][0] |= {"numRecordsOut": 0, "currentInputWatermark": None}
    told = html_table({**job, "vertices": [{**vertex, "subtasks": [{**shown, "timestamps": {}}]}]})
    assert "watermark held back by split &#x27;c&#x27; of &#x27;in&#x27;" in told.splitlines()[-2]


def test_the_example_of_the_docstring_runs() -> None:
    assert doctest.testmod(module).failed == 0
