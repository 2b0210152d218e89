"""What a job's coordinator remembers of the splits that enumerators assign."""

from __future__ import annotations

from pathlib import Path

from rayflink.actors.job.enumeration import Enumerators
from rayflink.actors.messages.commands import EnumeratorAnswered
from rayflink.common.time import Duration
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.connectors.collection import CollectSink
from rayflink.connectors.files.file_source import FileSource, StreamFormat
from rayflink.datastream import StreamExecutionEnvironment


def test_a_watched_folder_is_listed_beside_the_decisions_and_its_readers_wait(tmp_path: Path) -> None:
    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path))
    watching = builder.monitor_continuously(Duration.of_seconds(1)).build()
    env = StreamExecutionEnvironment.get_execution_environment({})
    env.from_source(watching, WatermarkStrategy.no_watermarks(), "folder").sink_to(CollectSink())
    (vertex,) = env.get_job_graph().vertices
    enumerators, source = Enumerators(env.get_job_graph()), vertex.head.operator_id
    first = enumerators.request(vertex, source, 0)
    (listing,) = first.calls
    assert not first.assigned and not enumerators.request(vertex, source, 0).calls
    assert not enumerators.answer(EnumeratorAnswered(listing.number, listing.work(), None), now_ms=0).assigned
    (tmp_path / "new.txt").write_text("line\n")
    assert enumerators.next_call_ms == 1000
    (again,) = enumerators.calls_due(1000)
    ((_, assigned),) = enumerators.answer(EnumeratorAnswered(again.number, again.work(), None), 1000).assigned
    assert [split.path for split in assigned.splits] == [str(tmp_path / "new.txt")]
    enumerators.take_back(source, 0)
    ((_, anew),) = enumerators.request(vertex, source, 0).assigned
    assert anew.splits == assigned.splits
