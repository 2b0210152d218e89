"""Jobs that read and write files, and of sources in plain Python: run in process and on Ray."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from rayflink.common import Duration, Encoder, Row, Types, WatermarkStrategy
from rayflink.connectors.generator import NumberSequenceSource
from rayflink.connectors.hybrid_source import HybridSource
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors.file_system import BucketAssigner, FileSink, FileSource, StreamFormat
from rayflink.datastream.formats.json import JsonLinesFormat, json_lines_encoder
from rayflink.datastream.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat

OF = Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.INT()])
HERE = BucketAssigner.base_path_bucket_assigner()
NO_TIME = WatermarkStrategy.no_watermarks()


def through_files(options: dict[str, Any], folder: Path) -> list[Row]:
    """Text in, JSON lines out and in, Parquet out and in: the rows at the end, in order."""
    (folder / "in").mkdir()
    for part in range(3):
        words = "".join(f"w{number} {number}\r\n" for number in range(part * 50, part * 50 + 50))
        (folder / "in" / f"{part}.txt").write_text(words)
    env = StreamExecutionEnvironment(options)
    lines = _read(env, FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(folder / "in")))
    rows = lines.map(lambda line: Row(line.split()[0], int(line.split()[1])), OF)
    json_lines = FileSink.for_row_format(str(folder / "json"), json_lines_encoder(OF))
    rows.sink_to(json_lines.with_bucket_assigner(HERE).build())
    env.execute()
    rows = _read(env, FileSource.for_record_stream_format(JsonLinesFormat(OF), str(folder / "json")))
    parquet = FileSink.for_bulk_format(str(folder / "parquet"), ParquetBulkWriters.for_row_type(OF))
    rows.sink_to(parquet.with_bucket_assigner(HERE).build())
    env.execute()
    form = ParquetColumnarRowInputFormat(OF)
    back = _read(env, FileSource.for_bulk_file_format(form, str(folder / "parquet")))
    return sorted(back.execute_and_collect(), key=lambda row: row.n)


def _read(env: StreamExecutionEnvironment, builder: Any) -> Any:
    return env.from_source(builder.build(), NO_TIME, "files")


ROWS = [Row(word=f"w{number}", n=number) for number in range(150)]


def watched(options: dict[str, Any], folder: Path) -> tuple[list[str], list[str]]:
    """What comes from a watched folder, first from a file that is there and then from one that appears."""
    folder = folder / "watched"
    folder.mkdir()
    (folder / "a").write_text("a1\na2\n")
    env = StreamExecutionEnvironment(options)
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(folder))
    lines = _read(env, source.monitor_continuously(Duration.of_millis(20)))
    with lines.execute_and_collect() as drawn:
        first = [next(drawn), next(drawn)]
        with open(folder / "a", "a") as file:
            file.write("a3\n")
        (folder / ".b").write_text("b1\n")
        os.replace(folder / ".b", folder / "b")
        return first, [next(drawn)]


def plain_python(options: dict[str, Any]) -> tuple[list[int], list[int]]:
    """An async generator, and two sources one after the other."""

    async def ticks() -> AsyncIterator[int]:
        numbers: asyncio.Queue[int] = asyncio.Queue(1)
        sending = asyncio.ensure_future(_send(numbers))
        for _ in range(5):
            yield await numbers.get()
        await sending

    env = StreamExecutionEnvironment(options)
    both = HybridSource.builder(NumberSequenceSource(1, 5)).add_source(NumberSequenceSource(6, 9)).build()
    return list(env.add_source(ticks).execute_and_collect()), sorted(
        env.from_source(both, NO_TIME, "both").execute_and_collect()
    )


async def _send(numbers: asyncio.Queue[int]) -> None:
    for number in range(5):
        await numbers.put(number)


def failing_midway(options: dict[str, Any]) -> None:
    """An async generator that raises."""

    async def broken() -> AsyncIterator[int]:
        yield 1
        raise LookupError("no more")

    list(StreamExecutionEnvironment(options).add_source(broken, "ticks").execute_and_collect())


def streaming_file_sink(options: dict[str, Any], folder: Path) -> list[str]:
    """A file sink given to add_sink; the lines it wrote."""
    env = StreamExecutionEnvironment(options)
    sink = FileSink.for_row_format(str(folder / "typed"), Encoder.simple_string_encoder()).build()
    env.from_collection([("a", 1)], Types.TUPLE([Types.STRING(), Types.INT()])).add_sink(sink)
    env.execute()
    return [path.read_text() for path in (folder / "typed").rglob("part-*")]
