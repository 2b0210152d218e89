"""Part files: a folder in which every subtask writes files of its own, visible only when they are whole."""

from __future__ import annotations

import csv
import io
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import IO, Any

from ..common.batches import ArrowBatch, Batch, rows_of
from ..common.sink import Committer, Sink, SinkWriter, WriterContext
from ..common.types import Row
from ..operators.base import shortened

ROLL_BYTES = 128 << 20


@dataclass(frozen=True)
class PendingFile:
    """A whole file that waits to be made visible."""

    hidden: str
    visible: str


class PartFormat(ABC):
    """Turns batches into bytes for one file after the other."""

    @abstractmethod
    def begin(self, file: IO[bytes]) -> None:
        """A new file is open."""

    @abstractmethod
    def write(self, batch: Batch) -> None:
        """Append records to the open file."""


class PartFileSink(Sink):
    """Writes `part-<subtask>-<n>` files into a folder.

    A file is hidden (its name begins with a dot) until it is whole: at a checkpoint, or at the end of a job without
    checkpoints. A cancelled or failed job leaves no half file that a reader of the folder would see. A file of the same
    name from an earlier run is replaced; others stay.

    Args:
        folder: made if it is not there.
        make_format: gives a new format, one a subtask.
        suffix: of the file names, with its dot.
        roll_bytes: a file that has reached this size is followed by the next.

    Raises:
        ValueError: `roll_bytes` is below 1.
    """

    name = "Sink: Files"

    def __init__(
        self,
        folder: str | os.PathLike[str],
        make_format: Callable[[], PartFormat],
        suffix: str = "",
        roll_bytes: int = ROLL_BYTES,
    ) -> None:
        if roll_bytes < 1:
            raise ValueError(f"roll_bytes must be >= 1, got {roll_bytes}")
        self._folder = os.path.abspath(os.fspath(folder))
        self._make_format, self._suffix, self._roll_bytes = make_format, suffix, roll_bytes

    def create_writer(self, ctx: WriterContext) -> SinkWriter:
        return _PartWriter(ctx, self._folder, self._make_format(), self._suffix, self._roll_bytes)

    def create_committer(self) -> Committer:
        return _Renamer()


class _Renamer(Committer):
    def commit(self, committables: Sequence[PendingFile]) -> None:
        for pending in committables:
            if os.path.exists(pending.hidden):
                os.replace(pending.hidden, pending.visible)
            elif not os.path.exists(pending.visible):
                raise FileNotFoundError(f"{pending.hidden!r} is gone before it became {pending.visible!r}")


class _PartWriter(SinkWriter):
    def __init__(self, ctx: WriterContext, folder: str, form: PartFormat, suffix: str, roll_bytes: int) -> None:
        self._folder, self._format, self._suffix, self._roll_bytes = folder, form, suffix, roll_bytes
        self._subtask, self._attempt = ctx.subtask, ctx.attempt
        self._number = max(ctx.restored, default=0)
        self._file: IO[bytes] | None = None
        self._hidden = ""
        self._whole: list[PendingFile] = []
        os.makedirs(folder, exist_ok=True)
        self._remove_leftovers()

    def _remove_leftovers(self) -> None:
        """Delete what earlier attempts of this subtask were writing when they failed."""
        with os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.name.startswith(f".part-{self._subtask}-") and ".inprogress." in entry.name:
                    os.remove(entry.path)

    def write(self, batch: Batch) -> None:
        if self._file is None:
            self._begin()
        assert self._file is not None
        self._format.write(batch)
        if self._file.tell() >= self._roll_bytes:
            self._end()

    def _begin(self) -> None:
        name = f".part-{self._subtask}-{self._number}{self._suffix}.inprogress.{self._attempt}"
        self._hidden = os.path.join(self._folder, name)
        self._file = open(self._hidden, "wb")
        self._format.begin(self._file)

    def _end(self) -> None:
        file, self._file = self._file, None
        if file is None:
            return
        file.flush()
        os.fsync(file.fileno())
        file.close()
        name = f"part-{self._subtask}-{self._number}{self._suffix}"
        pending = PendingFile(
            os.path.join(self._folder, f".{name}.pending.{self._attempt}"), os.path.join(self._folder, name)
        )
        os.replace(self._hidden, pending.hidden)
        self._whole.append(pending)
        self._number += 1

    def flush(self, end_of_input: bool) -> None:
        self._end()

    def prepare_commit(self) -> Sequence[PendingFile]:
        whole, self._whole = self._whole, []
        return whole

    def snapshot_state(self) -> int:
        return self._number

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()
            os.remove(self._hidden)
        for pending in self._whole:
            os.remove(pending.hidden)
        self._whole = []


class TextFormat(PartFormat):
    """One line a record.

    Args:
        encoding: of the text.
        to_text: gives the text of a record.
    """

    def __init__(self, encoding: str = "utf-8", to_text: Callable[[Any], str] = str) -> None:
        self._encoding, self._to_text = encoding, to_text

    def begin(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, batch: Batch) -> None:
        records = list(rows_of(batch))
        lines = list(map(self._to_text, records))
        if len(lines) != len(records):  # to map, a StopIteration from within is the end of the records
            raise RuntimeError(f"the text of {shortened(records[len(lines)])} ended in a StopIteration; catch it there")
        self._file.write(("\n".join(lines) + "\n").encode(self._encoding))


class CsvFormat(PartFormat):
    """CSV by the rules of RFC 4180, with `\\n` as line end; None is written as nothing.

    Args:
        header: column names for the first line of each file; None: the names of the first record's fields, no header
            if those have none. It renames columns; their order is that of the first record.
        delimiter: one character between values.
    """

    def __init__(self, header: Sequence[str] | None = None, delimiter: str = ",") -> None:
        self._header = None if header is None else list(header)
        self._delimiter = delimiter
        self._names: list[str] | None = None

    def begin(self, file: IO[bytes]) -> None:
        self._file = file
        self._fresh = True

    def write(self, batch: Batch) -> None:
        if not len(batch):
            return
        if self._names is None:
            self._names = _names_of(batch)
        text = io.StringIO()
        writer = csv.writer(text, delimiter=self._delimiter, lineterminator="\n")
        header = self._header or self._names
        if self._fresh and header:
            writer.writerow(header)
        self._fresh = False
        writer.writerows(_fields_of(batch, self._names))
        self._file.write(text.getvalue().encode("utf-8"))


def _names_of(batch: Batch) -> list[str] | None:
    """The field names of the first record, if it has any."""
    if isinstance(batch, ArrowBatch):
        return list(batch.data.schema.names)
    first = batch.values[0]
    if isinstance(first, dict):
        return list(first)
    names = first._names if isinstance(first, Row) else getattr(first, "_fields", None)
    return None if names is None else list(names)


def _fields_of(batch: Batch, names: Sequence[str] | None) -> Iterable[Sequence[Any]]:
    """Each record's fields, those with names in the order of `names`."""
    if isinstance(batch, ArrowBatch):
        columns = batch.data.columns if names is None else [batch.data.column(name) for name in names]
        return zip(*[column.to_pylist() for column in columns], strict=True)
    return [_record_fields(value, names) for value in batch.values]


def _record_fields(value: Any, names: Sequence[str] | None) -> Sequence[Any]:
    if isinstance(value, dict):
        return [value.get(name) for name in names or value]
    if isinstance(value, Row):
        return value._values if names is None or value._names is None else value.get_fields_by_names(names)
    return value if isinstance(value, (tuple, list)) else (value,)


def text_file_sink(
    folder: str | os.PathLike[str], encoding: str = "utf-8", roll_bytes: int = ROLL_BYTES
) -> PartFileSink:
    """A sink that writes `str(record)` as a line of `part-<subtask>-<n>.txt`."""
    return PartFileSink(folder, _TextFormats(encoding), ".txt", roll_bytes)


def csv_file_sink(
    folder: str | os.PathLike[str],
    header: Sequence[str] | None = None,
    delimiter: str = ",",
    roll_bytes: int = ROLL_BYTES,
) -> PartFileSink:
    """A sink that writes records of fields as `part-<subtask>-<n>.csv`."""
    return PartFileSink(folder, _CsvFormats(None if header is None else tuple(header), delimiter), ".csv", roll_bytes)


@dataclass(frozen=True)
class _TextFormats:
    encoding: str

    def __call__(self) -> PartFormat:
        return TextFormat(self.encoding)


@dataclass(frozen=True)
class _CsvFormats:
    header: tuple[str, ...] | None
    delimiter: str

    def __call__(self) -> PartFormat:
        return CsvFormat(self.header, self.delimiter)
