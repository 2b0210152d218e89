"""Files on an object store keep their promise through crashes at every place, restores, and a store that is away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import count

import pytest

from rayflink.common import Encoder
from rayflink.common.time import Duration
from rayflink.connectors.files.rolling import RollingPolicy
from rayflink.datastream.connectors.base import Sink, Source
from rayflink.datastream.connectors.file_system import BucketAssigner, FileSink, FileSource, StreamFormat
from rayflink.testing import SinkSubject, SourceSubject, check_sink, check_source

from .stores import BUCKET, Server

pytestmark = pytest.mark.slow
FOLDERS = count()
SEEDS = pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 14))])


@contextmanager
def away(server: Server) -> Iterator[None]:
    """The store refuses all requests, longer than they are repeated."""
    server.fault = lambda method, path: (503, "SlowDown")
    try:
        yield
    finally:
        server.fault = None


@SEEDS
def test_the_file_sink_writes_each_record_once(s3: Server, seed: int) -> None:
    class Parts(SinkSubject):
        options = s3.options

        def __init__(self) -> None:
            self.folder = f"laws-{next(FOLDERS)}"

        def create_sink(self) -> Sink:
            form = FileSink.for_row_format(f"s3://{BUCKET}/{self.folder}", Encoder.simple_string_encoder())
            form = form.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
            return form.with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=100)).build()

        def read(self) -> Iterable[int]:
            parts = s3.objects(f"{self.folder}/part-")
            return [int(line) for data in parts.values() for line in data.split()]

        def outage(self) -> AbstractContextManager[None]:
            return away(s3)

    check_sink(Parts, seeds=[seed], records=120)


@SEEDS
def test_the_file_source_reads_each_record_once(s3: Server, seed: int) -> None:
    class Folder(SourceSubject):
        options = s3.options

        def __init__(self) -> None:
            self.folder, self.files = f"laws-{next(FOLDERS)}", 0

        def __getstate__(self) -> dict[str, object]:
            return {}  # a job needs `number` alone

        def create_source(self) -> Source:
            form = StreamFormat.text_line_format()
            builder = FileSource.for_record_stream_format(form, f"s3://{BUCKET}/{self.folder}")
            return builder.monitor_continuously(Duration.of_millis(20)).build()

        def write(self, numbers: Sequence[int]) -> None:
            self.files += 1
            s3.put(f"{self.folder}/{self.files}.txt", "".join(f"{number}\n" for number in numbers).encode())

        def outage(self) -> AbstractContextManager[None]:
            return away(s3)

    check_source(Folder, seeds=[seed], records=120)
