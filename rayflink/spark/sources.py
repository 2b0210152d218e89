"""A DataFrame as a `Source`, where `env.from_spark` does not do: as the history in front of a live source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rayflink.common.configuration import Configuration
from rayflink.common.connector_base.source import Source
from rayflink.common.options.option_sources import given_options, under_program
from rayflink.connectors.frames.spark_frames import source_of
from rayflink.launch import frame_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def spark_source(
    df: DataFrame, path: str | None = None, configuration: Configuration | Mapping[str, Any] | None = None
) -> Source:
    """Return the rows of a DataFrame, which Spark computes now, as a bounded source; see `env.from_spark`.

    >>> history = spark_source(spark.read.parquet("orders").orderBy("at"))     # doctest: +SKIP
    >>> HybridSource.builder(history).add_source(live_from(position)).build()   # doctest: +SKIP

    Args:
        df: a `pyspark.sql.DataFrame`.
        path: a new folder that Spark and all nodes see, for Parquet files; None: the object store.
        configuration: the options of the environment that will read it, where it has any of its own.

    Raises:
        TypeMismatch: it is no DataFrame, or Arrow has no type for one of its columns.
        SparkFailed: Spark could not compute it.
    """
    program_options = (
        configuration if isinstance(configuration, Configuration) else Configuration.from_dict(configuration or {})
    )
    return source_of(df, path, lambda: frame_store(under_program(given_options(), program_options)))


__all__ = ["spark_source"]
