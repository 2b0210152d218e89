"""Files in an object store on Ray: written exactly once though a slot's process is killed, and read by two readers."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from rayflink.common import Encoder
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.connectors.files.rolling import RollingPolicy
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors.file_system import BucketAssigner, FileSink, FileSource, StreamFormat
from tests.connectors.object_stores.stores import BUCKET, s3_store

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]
RECORDS = 4000


def test_a_killed_slot_leaves_each_record_once_in_the_bucket_and_no_upload(tmp_path: Path) -> None:
    (tmp_path / "kill").touch()

    def kills_its_process_once(number: int) -> int:
        if number == RECORDS // 2 and (tmp_path / "kill").exists():
            (tmp_path / "kill").unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    with s3_store() as server:
        options: dict[str, Any] = {
            **server.options, "parallelism.default": 2, "execution.checkpointing.interval": "100 ms",
            "execution.checkpointing.dir": str(tmp_path / "checkpoints"), "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": 3, "restart-strategy.fixed-delay.delay": "100 ms",
        }  # fmt: skip
        env = StreamExecutionEnvironment(options)
        source = DataGeneratorSource(lambda n: n, RECORDS, records_per_second=1000)
        sink = FileSink.for_row_format(f"s3://{BUCKET}/out", Encoder.simple_string_encoder())
        sink = sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        sink = sink.with_rolling_policy(RollingPolicy.default_rolling_policy(2000)).build()
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        numbers.map(kills_its_process_once).sink_to(sink)
        env.execute()
        assert not (tmp_path / "kill").exists(), "nothing was killed, so the test shows nothing"
        shown = {key: data for key, data in server.objects("out/").items() if "/." not in key}
        assert sorted(int(line) for data in shown.values() for line in data.split()) == list(range(RECORDS))
        assert server.uploads() == []
        lines = FileSource.for_record_stream_format(StreamFormat.text_line_format(), f"s3://{BUCKET}/out").build()
        env = StreamExecutionEnvironment(options)
        read = env.from_source(lines, WatermarkStrategy.no_watermarks(), "lines").execute_and_collect()
        assert sorted(map(int, read)) == list(range(RECORDS))
