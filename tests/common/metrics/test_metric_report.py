"""Metrics of functions, from where they are counted to the result of the job."""

from __future__ import annotations

import doctest
from typing import Any

from rayflink.common.functions.function_classes import MapFunction
from rayflink.common.metrics import metric_report
from rayflink.common.metrics.metric_report import user_metrics
from rayflink.datastream import StreamExecutionEnvironment


class Measured(MapFunction):
    def open(self, runtime_context: Any) -> None:
        group = runtime_context.get_metrics_group()
        self.seen = group.counter("seen")
        self.big = group.add_group("size", "big").counter("n")
        self.rate = group.meter("rate", 10)
        self.sizes = group.distribution("sizes")
        self.last = 0
        group.gauge("last", lambda: self.last)

    def map(self, value: int) -> int:
        self.seen.inc()
        self.rate.mark_event()
        self.sizes.update(value)
        self.last = value
        if value >= 8:
            self.big.inc()
        return value


def run() -> Any:
    config = {"execution.target": "local", "metrics.scope.operator": "<job_name>.<operator_name>.<subtask_index>"}
    env = StreamExecutionEnvironment(config)
    env.from_collection(list(range(10))).rebalance().map(Measured()).name("Measured").set_parallelism(2).add_sink(
        lambda value: None
    ).set_parallelism(2)
    return env.execute("sizes")


def test_the_result_has_the_last_values_of_all_metrics_by_identifier() -> None:
    metrics = run().metrics
    seen = [metrics[f"sizes.Measured.{subtask}.seen"] for subtask in (0, 1)]
    assert seen == [5, 5]
    assert sum(metrics[f"sizes.Measured.{subtask}.size.big.n"] for subtask in (0, 1)) == 2
    assert {metrics[f"sizes.Measured.{subtask}.last"] for subtask in (0, 1)} == {8, 9}
    assert metrics["sizes.Measured.0.rate.count"] == 5 and metrics["sizes.Measured.0.sizes.count"] == 5
    [bytes_in] = [metrics[name] for name in metrics if name.endswith(".0.numBytesIn") and "Measured" in name]
    assert bytes_in > 0


def test_metrics_of_functions_are_summed_over_subtasks() -> None:
    rows = {(operator, name): numbers for operator, name, *numbers in user_metrics(run().vertices)}
    assert rows["Measured", "seen"] == [10, 5, 5]
    assert rows["Measured", "size.big.n"] == [2, 0, 2] or rows["Measured", "size.big.n"] == [2, 1, 1]
    assert not any(name.startswith("num") for _, name in rows)


def test_what_is_no_number_is_shown_by_its_first_value() -> None:
    def subtask(value: Any) -> dict[str, Any]:
        return {"metrics": {"operators": [{"id": "a", "name": "Map", "metrics": {"version": value}}]}}

    assert user_metrics([{"subtasks": [subtask("v1"), subtask("v2")]}]) == [("Map", "version", "v1", None, None)]


def test_operators_of_one_name_are_told_apart_by_their_ids() -> None:
    operators = [{"id": number * 8, "name": name, "metrics": {"rows": 1}} for number, name in
                 (("a1", "Sink"), ("b2", "Sink"), ("c3", "Map"))]  # fmt: skip
    subtask = {"metrics": {"operators": operators}}
    found = [operator for operator, *_ in user_metrics([{"subtasks": [subtask, subtask]}])]
    assert found == ["Sink a1a1a1a1", "Sink b2b2b2b2", "Map"]


def test_the_example_of_the_docstring_runs() -> None:
    assert doctest.testmod(metric_report).failed == 0
