"""Metrics under the names, labels and values that Flink's PrometheusReporter gives them."""

from __future__ import annotations

import math

import pytest

from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.metrics.metric_scopes import ScopeFormats
from rayflink.common.metrics.prometheus import samples
from rayflink.common.metrics.task_metric_group import TaskFacts, add_task_for_job

OPERATOR = "flink_taskmanager_job_task_operator_"


@pytest.fixture
def task():
    task = add_task_for_job(MetricGroup(), TaskFacts("a" * 32, "my job", "b" * 32, "c" * 32, "Map -> Out", 1, 0))
    task.identify(ScopeFormats.of({}), "n1", "n1:7")
    return task


def named(task, name, **how):
    return [(dict(sample.labels), sample.value) for sample in samples(task.group, **how) if sample.name == name]


def test_a_task_and_an_operator_have_the_labels_of_flinks_scope_variables(task):
    task.num_records_in.inc(3)
    task.operator("Map", "0af").num_records_out.inc(2)
    of_task = {
        "host": "n1", "tm_id": "n1:7", "job_id": "a" * 32, "job_name": "my_job", "task_id": "b" * 32,
        "task_name": "Map____Out", "task_attempt_id": "c" * 32, "task_attempt_num": "0", "subtask_index": "1",
    }  # fmt: skip
    assert named(task, "flink_taskmanager_job_task_numRecordsIn") == [(of_task, 3)]
    of_operator = {**of_task, "operator_id": "0af", "operator_name": "Map"}
    assert named(task, f"{OPERATOR}numRecordsOut") == [(of_operator, 2)]


def test_a_variable_is_a_label_and_not_part_of_the_name(task):
    task.operator("Map").group.add_group("mine").add_group("region", "eu west").counter("hits.all").inc()
    [(labels, value)] = named(task, f"{OPERATOR}mine_region_hits_all")
    assert (labels["region"], value) == ("eu_west", 1)
    [(labels, _)] = named(task, f"{OPERATOR}mine_region_hits_all", filter_label_values=False)
    assert (labels["region"], labels["task_name"]) == ("eu west", "Map -> Out")


def test_a_meter_is_its_rate_and_a_histogram_its_count_and_quantiles(task):
    group = task.operator("Map").group
    meter, sizes = group.meter("m"), group.distribution("sizes")
    meter.update(0)
    meter.mark_event(40)
    group.snapshot(2_000)
    assert named(task, f"{OPERATOR}m")[0][1] == 20.0
    assert named(task, f"{OPERATOR}sizes") == [], "without values there are no quantiles"
    for value in range(1, 101):
        sizes.update(value)
    assert named(task, f"{OPERATOR}sizes_count")[0][1] == 100
    quantiles = {labels["quantile"]: value for labels, value in named(task, f"{OPERATOR}sizes")}
    assert list(quantiles) == ["0.5", "0.75", "0.95", "0.98", "0.99", "0.999"] and quantiles["0.5"] == 50.5


@pytest.mark.parametrize("value, shown", [(True, [1.0]), (7, [7.0]), ("text", []), (None, []), (math.nan, [])])
def test_a_gauge_is_shown_where_it_is_a_number_now(task, value, shown):
    task.operator("Map").group.gauge("g", lambda: value)
    assert [sample for _, sample in named(task, f"{OPERATOR}g")] == shown


def test_a_gauge_that_raises_hides_no_other_metric(task):
    group = task.operator("Map").group
    group.gauge("bad", lambda: 1 // 0)
    group.counter("good")
    assert named(task, f"{OPERATOR}bad") == [] and len(named(task, f"{OPERATOR}good")) == 1


def test_the_status_of_a_process_has_no_labels_of_a_task(task):
    task.group.gauge("Status.Flink.Memory.Managed.Used", lambda: 5)
    shown = named(task, "flink_taskmanager_Status_Flink_Memory_Managed_Used")
    assert shown == [({"host": "n1", "tm_id": "n1:7"}, 5)]
