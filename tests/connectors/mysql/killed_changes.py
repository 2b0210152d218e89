"""A job that captures the changes of table `t` into files, exactly once; run as a script, to be killed.

Arguments: port of the server, folders of the output and the checkpoints, parallelism, and a checkpoint to restore, or
"".
"""

from __future__ import annotations

import sys

from rayflink.common import Duration, Encoder, WatermarkStrategy
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors.file_system import BucketAssigner, FileSink, RollingPolicy
from rayflink.datastream.connectors.mysql_cdc import JsonDebeziumDeserializationSchema, MySqlSource


def main(port: str, output: str, checkpoints: str, parallelism: str, restored: str) -> None:
    options = {
        "execution.target": "local", "parallelism.default": parallelism, "execution.checkpointing.interval": "100 ms",
        "execution.checkpointing.dir": checkpoints, "execution.checkpointing.num-retained": "3",
    }  # fmt: skip
    if restored:
        options["execution.state-recovery.path"] = restored
    env = StreamExecutionEnvironment.get_execution_environment(options)
    source = (
        MySqlSource.builder()
        .hostname("127.0.0.1").port(int(port)).username("rayflink").password("secret").table_list("shop.t")
        .deserializer(JsonDebeziumDeserializationSchema()).split_size(60)
        .heartbeat_interval(Duration.of_millis(200)).build()
    )  # fmt: skip
    sink = (
        FileSink.for_row_format(output, Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy()).build()
    )  # fmt: skip
    changes = env.from_source(source, WatermarkStrategy.no_watermarks(), "changes").uid("changes")
    changes.sink_to(sink).set_parallelism(1).uid("files")
    env.execute()


if __name__ == "__main__":
    main(*sys.argv[1:])
