"""PyFlink's module paths hold the same objects as the packages that pass them on."""

from __future__ import annotations

from importlib import import_module

import pytest

HOMES = {
    "common.completable_future": "CompletableFuture",
    "common.execution_config": "ExecutionConfig",
    "common.execution_mode": "ExecutionMode",
    "common.input_dependency_constraint": "InputDependencyConstraint",
    "common.job_client": "JobClient",
    "common.job_execution_result": "JobExecutionResult",
    "common.job_id": "JobID",
    "common.job_status": "JobStatus",
    "common.watermark_strategy": "TimestampAssigner WatermarkStrategy",
    "datastream.connectors.base": "DeliveryGuarantee Sink Source",
    "datastream.data_stream": (
        "AllWindowedStream CachedDataStream CloseableIterator ConnectedStreams DataStream DataStreamSink KeyedStream "
        "WindowedStream"
    ),
    "datastream.execution_mode": "RuntimeExecutionMode",
    "datastream.output_tag": "OutputTag",
    "datastream.stream_execution_environment": "StreamExecutionEnvironment",
    "datastream.time_characteristic": "TimeCharacteristic",
    "datastream.time_domain": "TimeDomain",
    "datastream.timerservice": "TimerService",
    "metrics.metricbase": "Counter Distribution Meter Metric MetricGroup",
}


@pytest.mark.parametrize("path", HOMES)
def test_a_module_of_pyflink_holds_what_its_package_passes_on(path):
    module, package = import_module(f"rayflink.{path}"), import_module(f"rayflink.{path.rpartition('.')[0]}")
    assert {*HOMES[path].split()} <= {*module.__all__}
    for name in HOMES[path].split():
        assert getattr(module, name) is getattr(package, name)


def test_metrics_are_those_that_functions_register():
    metrics = import_module("rayflink.metrics")
    group = metrics.MetricGroup()
    assert isinstance(group.counter("n"), metrics.Counter) and isinstance(group.meter("m"), metrics.Meter)
    assert isinstance(group.distribution("d"), metrics.Distribution)
    assert all(issubclass(kind, metrics.Metric) for kind in (metrics.Counter, metrics.Meter, metrics.Distribution))


def test_the_version_is_that_of_the_package():
    assert import_module("rayflink.version").__version__ == import_module("rayflink").__version__


def test_constants_are_those_of_64_bits():
    constants = import_module("rayflink.common.constants")
    assert constants.MAX_LONG_VALUE == -constants.MIN_LONG_VALUE - 1 == 0x7FFFFFFFFFFFFFFF
    assert constants.DEFAULT_OUTPUT_TAG == ""
