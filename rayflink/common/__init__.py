"""Types, times, options, functions and errors, with PyFlink's names; each is loaded on first use.

The modules here are PyFlink's paths, and a few values that every storey needs (`errors`, `ids`, `exports`). The
rooms have what stands behind them: `data_types`, `functions`, `options`, `records` (batches and rows), `metrics`,
`user_code`, `text_output` and `connector_base`, the contract of sources and sinks.

What runs a job, and what knows a channel, a file format or SQL, does not belong here.
"""
# ruff: noqa: I001 - the imports are a table of names

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.common.functions.accumulators import (
        Accumulator as Accumulator,
        AverageAccumulator as AverageAccumulator,
        DoubleCounter as DoubleCounter,
        Histogram as Histogram,
        IntCounter as IntCounter,
        ListAccumulator as ListAccumulator,
        Maximum as Maximum,
        Minimum as Minimum,
    )
    from rayflink.common.completable_future import CompletableFuture as CompletableFuture
    from rayflink.common.config_options import ConfigOption as ConfigOption, ConfigOptions as ConfigOptions
    from rayflink.common.configuration import Configuration as Configuration
    from rayflink.common.records.csv_rows import (
        CsvRowDeserializationSchema as CsvRowDeserializationSchema,
        CsvRowSerializationSchema as CsvRowSerializationSchema,
    )
    from rayflink.common.errors import (
        ConfigError as ConfigError,
        JobCancelled as JobCancelled,
        JobExecutionError as JobExecutionError,
        JobFailed as JobFailed,
        NotSerializable as NotSerializable,
        PlanError as PlanError,
        RayflinkError as RayflinkError,
        SuppressRestarts as SuppressRestarts,
        TypeMismatch as TypeMismatch,
    )
    from rayflink.common.execution_config import ExecutionConfig as ExecutionConfig
    from rayflink.common.execution_mode import ExecutionMode as ExecutionMode
    from rayflink.common.ids import JobID as JobID
    from rayflink.common.input_dependency_constraint import InputDependencyConstraint as InputDependencyConstraint
    from rayflink.common.records.json_rows import (
        JsonRowDeserializationSchema as JsonRowDeserializationSchema,
        JsonRowSerializationSchema as JsonRowSerializationSchema,
    )
    from rayflink.common.serialization import (
        BulkWriterFactory as BulkWriterFactory,
        ByteArraySchema as ByteArraySchema,
        DeserializationSchema as DeserializationSchema,
        Encoder as Encoder,
        RowFieldExtractorSchema as RowFieldExtractorSchema,
        SerializationSchema as SerializationSchema,
        SimpleStringSchema as SimpleStringSchema,
    )
    from rayflink.common.job_client import JobClient as JobClient
    from rayflink.common.job_execution_result import JobExecutionResult as JobExecutionResult
    from rayflink.common.job_status import JobStatus as JobStatus
    from rayflink.common.options.option_types import MemorySize as MemorySize
    from rayflink.common.options.registry import RuntimeMode as RuntimeMode
    from rayflink.common.output_tag import OutputTag as OutputTag
    from rayflink.common.restart_strategy import (
        RestartStrategies as RestartStrategies,
        RestartStrategyConfiguration as RestartStrategyConfiguration,
    )
    from rayflink.common.time import Duration as Duration, Instant as Instant, Time as Time
    from rayflink.common.serializer import TypeSerializer as TypeSerializer
    from rayflink.common.data_types.type_base import TypeInformation as TypeInformation
    from rayflink.common.typeinfo import (
        BasicArrayTypeInfo as BasicArrayTypeInfo,
        BasicType as BasicType,
        BasicTypeInfo as BasicTypeInfo,
        ListTypeInfo as ListTypeInfo,
        MapTypeInfo as MapTypeInfo,
        ObjectArrayTypeInfo as ObjectArrayTypeInfo,
        PickledBytesTypeInfo as PickledBytesTypeInfo,
        RowTypeInfo as RowTypeInfo,
        TupleTypeInfo as TupleTypeInfo,
        Types as Types,
    )
    from rayflink.common.types import Row as Row, RowKind as RowKind
    from rayflink.common.watermarks import (
        TimestampAssigner as TimestampAssigner,
        Watermark as Watermark,
        WatermarkGenerator as WatermarkGenerator,
        WatermarkOutput as WatermarkOutput,
        WatermarkStrategy as WatermarkStrategy,
    )
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.common.functions.accumulators": (
                "Accumulator AverageAccumulator DoubleCounter Histogram IntCounter ListAccumulator Maximum Minimum"
            ),
            "rayflink.common.completable_future": "CompletableFuture",
            "rayflink.common.config_options": "ConfigOption ConfigOptions",
            "rayflink.common.configuration": "Configuration",
            "rayflink.common.records.csv_rows": "CsvRowDeserializationSchema CsvRowSerializationSchema",
            "rayflink.common.errors": (
                "ConfigError JobCancelled JobExecutionError JobFailed NotSerializable PlanError RayflinkError "
                "SuppressRestarts TypeMismatch"
            ),
            "rayflink.common.execution_config": "ExecutionConfig",
            "rayflink.common.execution_mode": "ExecutionMode",
            "rayflink.common.ids": "JobID",
            "rayflink.common.input_dependency_constraint": "InputDependencyConstraint",
            "rayflink.common.job_client": "JobClient",
            "rayflink.common.job_execution_result": "JobExecutionResult",
            "rayflink.common.job_status": "JobStatus",
            "rayflink.common.records.json_rows": "JsonRowDeserializationSchema JsonRowSerializationSchema",
            "rayflink.common.serialization": (
                "BulkWriterFactory ByteArraySchema DeserializationSchema Encoder RowFieldExtractorSchema "
                "SerializationSchema SimpleStringSchema"
            ),
            "rayflink.common.serializer": "TypeSerializer",
            "rayflink.common.options.option_types": "MemorySize",
            "rayflink.common.options.registry": "RuntimeMode",
            "rayflink.common.output_tag": "OutputTag",
            "rayflink.common.restart_strategy": "RestartStrategies RestartStrategyConfiguration",
            "rayflink.common.time": "Duration Instant Time",
            "rayflink.common.data_types.type_base": "TypeInformation",
            "rayflink.common.typeinfo": (
                "BasicArrayTypeInfo BasicType BasicTypeInfo ListTypeInfo MapTypeInfo ObjectArrayTypeInfo "
                "PickledBytesTypeInfo RowTypeInfo TupleTypeInfo Types"
            ),
            "rayflink.common.types": "Row RowKind",
            "rayflink.common.watermarks": (
                "TimestampAssigner Watermark WatermarkGenerator WatermarkOutput WatermarkStrategy"
            ),
        },
    )
