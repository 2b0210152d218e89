"""What a job's coordinator remembers of the splits that enumerators assign."""

from __future__ import annotations

from pathlib import Path

from rayflink.actors.job.enumeration import Enumerators
from rayflink.common.time import Duration
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.connectors.collection import CollectSink
from rayflink.connectors.files.file_source import FileSource, StreamFormat
from rayflink.datastream import StreamExecutionEnvironment


def test_a_reader_that_begins_anew_backs_off_from_the_shortest_pause_again(tmp_path: Path) -> None:
    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path))
    watching = builder.monitor_continuously(Duration.of_seconds(1)).build()
    env = StreamExecutionEnvironment.get_execution_environment({})
    env.from_source(watching, WatermarkStrategy.no_watermarks(), "folder").sink_to(CollectSink())
    (vertex,) = env.get_job_graph().vertices
    enumerators, source = Enumerators(env.get_job_graph()), vertex.head.operator_id
    for _ in range(3):
        enumerators.request(vertex, source, 0)
    (tmp_path / "new.txt").write_text("line\n")
    enumerators.take_back(source, 0)
    ((_, assigned),) = enumerators.request(vertex, source, 0).assigned
    assert [split.path for split in assigned.splits] == [str(tmp_path / "new.txt")]
