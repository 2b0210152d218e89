"""Files whose lines are messages: change data capture in JSON, and `raw`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING

from rayflink.common.connector_base.malformed_records import MalformedRecords
from rayflink.common.connector_base.split_reader import SplitCursor
from rayflink.common.errors import described
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import ArrowBatch, Batch, Tagged
from rayflink.common.serialization import BulkWriter, BulkWriterFactory, DeserializationSchema, SerializationSchema
from rayflink.connectors.files.file_blocks import FileSplit, line_number
from rayflink.connectors.files.file_source import FileFormat, StreamFormat
from rayflink.connectors.formats.line_columns import LineColumnsCursor
from rayflink.connectors.formats.malformed_lines import MalformedLine, MalformedLines, malformed, search
from rayflink.user_types import UserRecord

from ...plan.changelog import Change
from ...plan.logical import Schema
from ..formats import Format
from .canal_json import CanalJson, MaxwellJson
from .contract import MessageFormat
from .debezium_json import DebeziumJson, OggJson
from .raw_messages import RawMessages

if TYPE_CHECKING:
    import pyarrow


class MessageFiles(Format):
    """A format of messages whose files have one message a line.

    Args:
        messages: the format of the lines.
    """

    def __init__(self, messages: MessageFormat) -> None:
        self._messages = messages
        self.options = messages.options
        self.changes = messages.changes

    def check(self, options: Mapping[str, object]) -> None:
        self._messages.check(options)

    def reads(self, schema: Schema, names: Sequence[str], options: Mapping[str, object]) -> FileFormat:
        return MessageLines(self._messages.decoder(schema, names, options), self.changes is Change.INSERT)

    def writes(self, schema: Schema, options: Mapping[str, object]) -> BulkWriterFactory:
        return MessageLineWriters(self._messages.encoder(schema, options))


@dataclass(frozen=True)
class MessageLines(StreamFormat):
    """Reads lines by a schema of messages, in batches.

    Args:
        decoder: of the lines.
        divisible: whether several readers may read parts of a file; not where its lines are changes, which one reader
            gives in their order.
        malformed: the policy for lines that cannot be read.
    """

    decoder: DeserializationSchema
    divisible: bool
    malformed: MalformedLines = MalformedLines()

    def with_malformed_records(self, policy: MalformedRecords) -> MessageLines:
        return replace(self, malformed=MalformedLines(policy))

    def counting(self, metrics: MetricGroup) -> MessageLines:
        return replace(self, decoder=self.decoder.counting(metrics), malformed=self.malformed.counting(metrics))

    def open_split(self, split: FileSplit) -> SplitCursor:
        return LineColumnsCursor(split, _Lines(self, split.path).columns)


class _Lines:
    """Makes columns of the lines of one file."""

    def __init__(self, form: MessageLines, path: str) -> None:
        self._form, self._path = form, path

    def columns(self, block: bytes, offset: int) -> tuple[pyarrow.RecordBatch, Tagged | None]:
        """Return whole lines, which begin at byte `offset`, as columns, and the malformed ones for a side output.

        Raises:
            ValueError: a line is malformed, and the policy is to fail; names file and line.
        """
        lines = block.removesuffix(b"\n").split(b"\n")
        if b"\r" in block:
            lines = [line.removesuffix(b"\r") for line in lines]
        try:
            return self._decoded(lines), None
        except (ValueError, ArithmeticError):
            failures = search(range(len(lines)), lambda part: self._decoded([lines[index] for index in part]))
            if not failures:
                raise
            if self._form.malformed.fails:
                first = min(failures)
                place = f"{self._path!r}, line {line_number(self._path, offset) + first}"
                raise ValueError(f"{place}: {described(failures[first])}") from failures[first]
        readable = [line for index, line in enumerate(lines) if index not in failures]
        unreadable: list[MalformedLine] = malformed(lines, failures)
        return self._decoded(readable), self._form.malformed.report(self._path, offset, unreadable)

    def _decoded(self, lines: Sequence[bytes]) -> pyarrow.RecordBatch:
        batch, _ = self._form.decoder.deserialize_batch(lines)
        assert isinstance(batch, ArrowBatch)
        return batch.data


@dataclass(frozen=True)
class MessageLineWriters(BulkWriterFactory):
    """Makes writers of files with one message a line.

    Args:
        encoder: of the lines.
    """

    encoder: SerializationSchema

    def create(self, file: IO[bytes]) -> BulkWriter:
        return _LineWriter(file, self.encoder)


class _LineWriter(BulkWriter):
    def __init__(self, file: IO[bytes], encoder: SerializationSchema) -> None:
        self._file, self._encoder = file, encoder

    def add_element(self, element: UserRecord) -> None:
        raise TypeError(f"found {element!r}; rows of a table are columns")

    def add_batch(self, batch: Batch) -> None:
        messages = [message or b"" for message in self._encoder.serialize_batch(batch)]
        self._file.write(b"".join(message + b"\n" for message in messages))

    def finish(self) -> None:
        """Every batch is in the file already."""


MESSAGE_FILES: dict[str, MessageFiles] = {
    messages.name: MessageFiles(messages)
    for messages in (RawMessages(), DebeziumJson(), CanalJson(), MaxwellJson(), OggJson())
}
"""The formats of messages that files may have, by name."""

__all__ = ["MESSAGE_FILES", "MessageFiles"]
