"""PySpark beside streams: Spark on the same Ray cluster through RayDP. See docs/spark.md.

`ray_session` starts and ends a session, `java` and `packages` find what it needs, `interrupts` ends it by Ctrl-C.
The `state_*` modules read and write savepoints as DataFrames. DataFrames enter and leave; how they become streams is
in `rayflink.connectors.frames`, and `env.from_spark` is in `rayflink.datastream`. Only `ray_session` imports Ray,
and nothing here runs a stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.connectors.frames.spark_frames import SparkFailed as SparkFailed
    from rayflink.spark.errors import SparkCannotStart as SparkCannotStart
    from rayflink.spark.ray_session import spark_session as spark_session
    from rayflink.spark.sources import spark_source as spark_source
    from rayflink.spark.state_reading import read_state as read_state
    from rayflink.spark.state_rows import DuplicateRowError as DuplicateRowError
    from rayflink.spark.state_writing import SparkSavepoint as SparkSavepoint
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.connectors.frames.spark_frames": "SparkFailed",
            "rayflink.spark.errors": "SparkCannotStart",
            "rayflink.spark.ray_session": "spark_session",
            "rayflink.spark.sources": "spark_source",
            "rayflink.spark.state_reading": "read_state",
            "rayflink.spark.state_rows": "DuplicateRowError",
            "rayflink.spark.state_writing": "SparkSavepoint",
        },
    )
