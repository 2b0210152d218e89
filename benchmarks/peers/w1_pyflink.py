# mypy: disable-error-code="import-not-found, misc"
"""W1 on PyFlink in thread mode: `FileSource`, `flat_map`, `key_by`, `reduce`, Flink's own discarding sink."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyflink.common import Configuration, Types, WatermarkStrategy
from pyflink.datastream import FlatMapFunction, StreamExecutionEnvironment
from pyflink.datastream.connectors.base import Sink
from pyflink.datastream.connectors.file_system import FileSource, StreamFormat
from pyflink.java_gateway import get_gateway


class _Split(FlatMapFunction):
    """Splits a line; leaves a note of its first line's time and its words, as it runs inside the JVM."""

    def __init__(self, notes: str) -> None:
        self.notes, self.first, self.words = notes, 0.0, 0

    def flat_map(self, line: str) -> Iterator[tuple[str, int]]:
        if not self.first:
            self.first = time.time()
        words = line.split()
        self.words += len(words)
        for word in words:
            yield word, 1

    def close(self) -> None:
        if self.words:
            Path(self.notes, uuid4().hex).write_text(f"{self.first} {self.words}")


def run(data_path: str, parallelism: int = 2, mode: str = "thread") -> dict[str, Any]:
    """Count the words of `data_path` at `parallelism`, with `python.execution-mode` set to `mode`."""
    entered = time.time()
    configuration = Configuration()
    configuration.set_string("python.execution-mode", mode)
    configuration.set_string("python.executable", sys.executable)
    configuration.set_string("python.client.executable", sys.executable)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(parallelism)
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), data_path).build()
    discard = get_gateway().jvm.org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink()
    with tempfile.TemporaryDirectory() as notes:
        lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines")
        words = lines.flat_map(_Split(notes), Types.TUPLE([Types.STRING(), Types.INT()]))
        counts = words.key_by(lambda pair: pair[0], Types.STRING()).reduce(lambda a, b: (a[0], a[1] + b[1]))
        counts.sink_to(Sink(discard))
        env.execute("w1")
        done = time.time()
        noted = [note.read_text().split() for note in Path(notes).iterdir()]
    return {
        "rows": sum(int(rows) for _, rows in noted),
        "seconds_total": done - entered,
        "seconds_startup": min(float(first) for first, _ in noted) - entered,
    }
