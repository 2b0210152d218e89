"""Counters, meters, histograms and groups report plain values under Flink's names."""

import logging
import math
import random
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common.errors import ConfigError
from rayflink.common.ids import ExecutionAttemptID, JobID, JobVertexID
from rayflink.common.metrics import metric_names
from rayflink.common.metrics.metric_group import Histogram, Meter, MetricGroup
from rayflink.common.metrics.metric_scopes import ScopeFormats
from rayflink.common.metrics.prometheus import samples
from rayflink.common.metrics.task_metric_group import TaskFacts, add_task_for_job


def test_a_group_reports_all_its_metrics_as_plain_values():
    root = MetricGroup()
    group = root.add_group("op").add_group("region", "eu")
    group.counter("n").inc(3)
    group.gauge("g", lambda: "value")
    group.meter("m").mark_event(2)
    group.distribution("d").update(7)
    report = root.snapshot()
    assert report["op.region.eu.n"] == 3 and report["op.region.eu.g"] == "value"
    assert report["op.region.eu.m.count"] == 2 and report["op.region.eu.d.max"] == 7
    assert group.get_scope_components() == ["op", "region", "eu"] and group.get_all_variables() == {"region": "eu"}


def test_a_counter_goes_up_and_down():
    counter = MetricGroup().counter("c")
    counter.inc()
    counter.inc(5)
    counter.dec(2)
    assert counter.get_count() == 4


def test_registering_again_gives_the_same_metric_and_the_newer_gauge():
    group = MetricGroup()
    assert group.counter("c") is group.counter("c") and group.add_group("g") is group.add_group("g")
    group.gauge("v", lambda: 1)
    group.gauge("v", lambda: 2)
    assert group.snapshot() == {"c": 0, "v": 2}


def test_a_name_taken_by_another_kind_is_logged_and_not_reported(caplog):
    group = MetricGroup("op")
    group.counter("x").inc()
    with caplog.at_level(logging.WARNING):
        group.meter("x").mark_event(9)
    assert group.snapshot() == {"x": 1} and caplog.records[0].metric == "op.x"


def test_a_gauge_that_raises_does_not_hide_the_others(caplog):
    group = MetricGroup()
    group.gauge("bad", lambda: 1 // 0)
    group.counter("good")
    assert group.snapshot() == group.snapshot() == {"good": 0}
    assert [record.getMessage() for record in caplog.records] == [
        "metric not reported: ZeroDivisionError('integer division or modulo by zero')"
    ]


def test_a_histogram_takes_numbers_and_one_that_cannot_be_summed_hides_no_other(caplog):
    group = MetricGroup()
    histogram = group.histogram("sizes")
    with pytest.raises(TypeError, match="a histogram takes numbers, found 'large'"):
        histogram.update("large")
    for value in (math.inf, -math.inf):
        histogram.update(value)
    group.counter("good")
    assert group.snapshot() == {"good": 0} and "metric not reported: ValueError" in caplog.text
    assert [sample.name for sample in samples(group)] == ["flink_sizes_count", "flink_good"]


def test_numbers_of_numpy_are_in_prometheus_and_integers_beyond_all_floats_are_not():
    group = MetricGroup()
    group.gauge("numpy", lambda: np.int64(7))
    group.gauge("beyond", lambda: 10**400)
    assert [(sample.name, sample.value) for sample in samples(group)] == [("flink_numpy", 7.0)]


def test_a_meter_gives_the_rate_over_its_span():
    meter = Meter(time_span_in_seconds=10)
    for second in range(61):
        meter.update(second * 1000)
        meter.mark_event(100 if second < 30 else 5)
    assert meter.get_rate() == 5.0 and meter.get_count() == 30 * 100 + 31 * 5
    meter.update(61_000)
    meter.update(61_000)
    assert meter.get_rate() == 5.0


def test_a_meter_updated_more_often_than_once_a_second_stays_bounded():
    meter = Meter(time_span_in_seconds=2)
    for tick in range(1000):
        meter.update(tick * 10)
        meter.mark_event()
    assert meter.get_rate() == pytest.approx(100) and len(meter._samples) <= 3


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60), st.integers(1, 20))
def test_a_histogram_describes_the_last_values(values, size):
    histogram = Histogram(size)
    for value in values:
        histogram.update(value)
    last, report = values[-size:], histogram.statistics()
    assert report["count"] == len(values) == histogram.get_count()
    assert (report["min"], report["max"]) == (min(last), max(last))
    assert report["mean"] == pytest.approx(statistics.fmean(last), abs=1e-6)
    if len(last) > 1:
        assert report["stddev"] == pytest.approx(statistics.stdev(last), rel=1e-6, abs=1e-3)
    assert report["min"] <= report["p50"] <= report["p75"] <= report["p99"] <= report["p999"] <= report["max"]
    assert report["p50"] == pytest.approx(statistics.median(last), abs=1e-6)


def test_quantiles_lie_between_neighbours_and_an_empty_histogram_has_none():
    histogram = Histogram(100)
    assert math.isnan(histogram.quantile(0.5)) and math.isnan(histogram.statistics()["mean"])
    for value in range(1, 101):
        histogram.update(value)
    assert histogram.quantile(0.5) == 50.5 and histogram.quantile(0.99) == pytest.approx(99.99)
    with pytest.raises(ValueError, match=r"in \(0, 1\], found 0"):
        histogram.quantile(0)


def test_sizes_and_spans_below_one_are_refused():
    for make in (lambda: Histogram(0), lambda: Meter(0), lambda: MetricGroup().counter("")):
        with pytest.raises(ValueError):
            make()


@pytest.fixture
def facts():
    source = random.Random(1).randbytes
    return TaskFacts(JobID.new(source), "job", JobVertexID.new(source), ExecutionAttemptID.new(source), "map", 2, 1)


@pytest.mark.spec("U06", "C35", "metrics")
def test_a_task_has_a_group_below_its_job_that_closes_with_the_task(facts):
    root = MetricGroup()
    task = add_task_for_job(root, facts)
    task.num_records_in.inc(4)
    prefix = f"{facts.job_id}.{facts.attempt_id}."
    assert root.snapshot()[prefix + "numRecordsIn"] == 4
    assert task.variables()["<subtask_index>"] == "2" and task.variables()["<task_attempt_num>"] == "1"
    assert set(task.variables().values()) == {
        facts.job_id, "job", facts.vertex_id, facts.attempt_id, "map", "2", "1", "localhost", "local",
    }  # fmt: skip
    task.operator("map").group.add_group("mine")
    task.close()
    task.group.counter("late").inc()
    assert root.snapshot() == {}


def test_a_task_counts_records_bytes_and_buffers_and_its_operators_watermarks(facts):
    task = add_task_for_job(MetricGroup(), facts)
    operator = task.operator("window")
    operator.num_late_records_dropped.inc(2)
    operator.watermarks(lambda: 10, lambda: 9)
    report = task.group.snapshot()
    for unit in ("Records", "Bytes", "Buffers"):
        assert report[f"num{unit}In"] == report[f"num{unit}Out"] == 0
    assert report["window.numLateRecordsDropped"] == 2
    assert (report["window.currentInputWatermark"], report["window.currentOutputWatermark"]) == (10, 9)


@pytest.mark.parametrize("detailed", [False, True])
def test_queue_lengths_are_reported_under_network_only_when_detailed_metrics_are_on(facts, detailed):
    task = add_task_for_job(MetricGroup(), facts, detailed)
    values = {"Input.inputQueueLength": 3, "Input.inPoolUsage": 0.5, "Output.outputQueueLength": 4}
    task.network_buffers({name: lambda value=value: value for name, value in values.items()})
    report = task.group.snapshot()
    assert report["Shuffle.Netty.Input.Buffers.inPoolUsage"] == 0.5
    assert report["Shuffle.Netty.Output.Buffers.outputQueueLength"] == 4
    queues = {name: value for name, value in report.items() if name.startswith("Network")}
    assert queues == ({"Network.Input.inputQueueLength": 3, "Network.Output.outputQueueLength": 4} if detailed else {})


def test_rates_of_the_counters_are_reported_as_one_number(facts):
    task = add_task_for_job(MetricGroup(), facts)
    operator = task.operator("map")
    for second in range(11):
        task.num_bytes_out.count = 1_000 * second
        operator.num_records_in.count = 50 * second
        report = {**task.group.snapshot(second * 1000), **operator.group.snapshot(second * 1000)}
    assert (report["numBytesOutPerSecond"], report["numRecordsInPerSecond"]) == (1000.0, 50.0)
    assert "numBytesOutPerSecond.count" not in report


@pytest.mark.spec("U06")
def test_a_metric_is_identified_by_the_scope_of_its_task_and_operator(facts):
    task = add_task_for_job(MetricGroup(), facts)
    mine = task.operator("map op", "0af").group.add_group("region", "eu")
    task.identify(ScopeFormats.of({}), "n1", "tm7")
    assert task.group.get_metric_identifier("n") == "n1.taskmanager.tm7.job.map.2.n"
    assert mine.get_metric_identifier("n") == "n1.taskmanager.tm7.job.map op.2.region.eu.n"
    assert mine.get_logical_scope() == ("taskmanager", "job", "task", "operator", "region")
    assert task.operator("later", "1bf").group.get_metric_identifier("n") == "n1.taskmanager.tm7.job.later.2.n"
    variables = mine.get_all_variables()
    assert (variables["<operator_id>"], variables["<host>"], variables["region"]) == ("0af", "n1", "eu")


def test_scope_formats_are_the_users_with_a_star_for_the_scope_above(facts):
    formats = ScopeFormats.of({
        "metrics.scope.tm-job": "<tm_id>.<job_name>", "metrics.scope.task": "*.<task_name>",
        "metrics.scope.operator": "*.ops.<operator_name>", "metrics.scope.delimiter": "/",
    })  # fmt: skip
    task = add_task_for_job(MetricGroup(), facts)
    operator = task.operator("map op").group
    task.identify(formats, "n1", "tm7")
    assert operator.add_group("mine").get_metric_identifier("n") == "tm7/job/map/ops/map op/mine/n"
    assert formats.bound("<job_name>.x", {}) == "null/x"


def test_the_older_names_of_scopes_are_read_and_an_unknown_variable_is_refused():
    assert ScopeFormats.of({"metrics.scope.jm.job": "x.<job_name>"}).jm_job == "x.<job_name>"
    for key, form in (("task", "<operator_name>"), ("jm", "*.x"), ("tm", ""), ("operator", "<job>")):
        with pytest.raises(ConfigError, match=rf"metrics\.scope\.{key}.*variables among"):
            ScopeFormats.of({f"metrics.scope.{key}": form})


def test_metric_names_are_flinks():
    assert (metric_names.BUSY_TIME, metric_names.IDLE_TIME) == ("busyTimeMsPerSecond", "idleTimeMsPerSecond")
    assert metric_names.BACK_PRESSURED_TIME == "backPressuredTimeMsPerSecond"
