"""A job that writes numbers into an object store, each once; run as a script, to be killed.

Arguments: options of the store as JSON, the address of the output, the folder of checkpoints, parallelism, how many
numbers, and a checkpoint to restore or "".
"""

from __future__ import annotations

import json
import sys

from rayflink.common import Encoder, WatermarkStrategy
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors.file_system import BucketAssigner, FileSink, RollingPolicy

RECORDS_PER_SECOND = 100_000
PART_FILE_BYTES = 12_000_000
"""Two whole parts of an upload and a rest."""


def line(number: int) -> str:
    """Return a line of 100 bytes."""
    return f"{number:099d}"


def main(store: str, output: str, checkpoints: str, parallelism: str, count: str, restored: str) -> None:
    options = {
        "execution.target": "local", "parallelism.default": parallelism, "execution.checkpointing.interval": "100 ms",
        "execution.checkpointing.dir": checkpoints, "execution.checkpointing.num-retained": "3", **json.loads(store),
    }  # fmt: skip
    if restored:
        options["execution.state-recovery.path"] = restored
    env = StreamExecutionEnvironment.get_execution_environment(options)
    source = DataGeneratorSource(line, int(count), records_per_second=RECORDS_PER_SECOND)
    sink = (
        FileSink.for_row_format(output, Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .with_rolling_policy(RollingPolicy.default_rolling_policy(PART_FILE_BYTES)).build()
    )  # fmt: skip
    env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers").sink_to(sink).uid("files")
    env.execute()
    print("finished", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
