"""Records of fields as lines of CSV."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any

from rayflink.common.connector_base.sink import UnwritableRecord
from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.errors import shorten
from rayflink.common.records.batches import ArrowBatch, Batch, RowBatch
from rayflink.common.records.shortest_floats import shortest_floats
from rayflink.common.serialization import BulkWriter, BulkWriterFactory, Encoder
from rayflink.common.types import Row
from rayflink.user_types import UserRecord, UserValue

from ..files.buckets import BucketAssigner
from ..files.file_sink import FileSink, FileSinkSettings, OutputFileConfig
from ..files.rolling import PART_BYTES, RollingPolicy

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class CsvLines(BulkWriterFactory):
    """CSV by the rules of RFC 4180, with `\\n` as line end; None is written as nothing.

    Args:
        header: column names for the first line of each file; None: the names of the first record's fields, no header
            if those have none. It renames columns; they are the fields of the first record, in its order.
        delimiter: one character between values.
        type_info: of the records, None where it is unknown: numbers of 32 bits are written with the digits they have.
    """

    header: tuple[str, ...] | None = None
    delimiter: str = ","
    type_info: TypeInformation | None = None

    def for_type(self, type_info: TypeInformation | None) -> CsvLines:
        return replace(self, type_info=type_info)

    def create(self, file: IO[bytes]) -> BulkWriter:
        return _LinesWriter(file, self)


class _LinesWriter(BulkWriter):
    def __init__(self, file: IO[bytes], form: CsvLines) -> None:
        self._file, self._form = file, form
        self._shortest = shortest_floats(form.type_info)
        self._names: list[str] | None = None
        self._fresh = True

    def add_element(self, element: UserRecord) -> None:
        self.add_batch(RowBatch([element]))

    def add_batch(self, batch: Batch) -> None:
        if not len(batch):
            return
        records: Sequence[Any] = _columns_of(batch) if isinstance(batch, ArrowBatch) else batch.values
        if self._names is None:
            self._names = _names_of(records[0])
        if self._names:
            _ensure_known(records, self._names)
        header = self._form.header or self._names
        lines: list[Sequence[Any]] = [header] if self._fresh and header else []
        self._fresh = False
        if self._shortest is not None and not isinstance(batch, ArrowBatch):
            batch = RowBatch(list(map(self._shortest, batch.values)))
        lines += _fields_of(batch, self._names)
        self._file.write(_lines_of(lines, self._form.delimiter).encode("utf-8"))

    def finish(self) -> None:
        pass  # every batch is in the file already


def _lines_of(records: Sequence[Sequence[Any]], delimiter: str) -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(records)
    if "\r" not in text.getvalue():
        return text.getvalue()
    text = _LineFeeds()  # csv quotes only those line ends that it writes itself
    csv.writer(text, delimiter=delimiter, lineterminator="\r\n").writerows(records)
    return text.getvalue()


class _LineFeeds(io.StringIO):
    """Text that is written line by line, `\\n` in place of the `\\r\\n` at the end of each."""

    def write(self, line: str, /) -> int:
        return super().write(line.removesuffix("\r\n") + "\n")


def _columns_of(batch: ArrowBatch) -> Sequence[dict[str, Any]]:
    """Return the columns and their types in place of records."""
    return [dict(zip(batch.data.schema.names, batch.data.schema.types, strict=True))]


def _names_of(record: UserRecord) -> list[str] | None:
    """Return the names of a record's fields, if it has any."""
    names: Any = record if isinstance(record, dict) else getattr(record, "_fields", None)
    if isinstance(record, Row):
        names = record._names
    return None if names is None else list(names)


def _ensure_known(records: Sequence[Any], names: Sequence[str]) -> None:
    """Check that no field is left out for want of a column.

    Raises:
        UnwritableRecord: one is.
    """
    known = set(names)
    for record in records:
        own: Any = record._names if isinstance(record, Row) else record if isinstance(record, dict) else None
        if own and not known.issuperset(own):
            unknown = next(name for name in own if name not in known)
            problem = f"field {unknown!r} has no column, the file's are {', '.join(map(str, names))}"
            remedy = "give the first record all fields, or leave the field out in a map() before the sink"
            raise UnwritableRecord(shorten(record)) from ValueError(f"{problem}; {remedy}")


def _fields_of(batch: Batch, names: Sequence[str] | None) -> Iterable[Sequence[Any]]:
    """Return each record's fields, those with names in the order of `names`."""
    if isinstance(batch, ArrowBatch):
        columns = batch.data.columns if names is None else [batch.data.column(name) for name in names]
        return zip(*[_shown(column) for column in columns], strict=True)
    return [record_fields(value, names) for value in batch.values]


def _shown(column: pyarrow.Array) -> list[Any]:
    """Return the values of a column; of numbers of 32 bits those that their shortest decimals stand for."""
    import pyarrow

    if pyarrow.types.is_float32(column.type):
        column = column.cast(pyarrow.string()).cast(pyarrow.float64())
    values: list[Any] = column.to_pylist()
    return values


def record_fields(value: UserValue, names: Sequence[str] | None) -> Sequence[Any]:
    """Return the fields of one record, those with names in the order of `names`."""
    if isinstance(value, dict):
        return [value.get(name) for name in names or value]
    if isinstance(value, Row):
        return value._values if names is None or value._names is None else value.get_fields_by_names(list(names))
    return value if isinstance(value, (tuple, list)) else (value,)


def text_file_sink(folder: str | os.PathLike[str], encoding: str = "utf-8", roll_bytes: int = PART_BYTES) -> FileSink:
    """Return a sink of lines, the text of each record, in `part-<subtask>-<n>.txt`; a later job replaces files of its
    names.

    Raises:
        ValueError: `roll_bytes` is below 1.
    """
    return FileSink(folder, Encoder.simple_string_encoder(encoding), _in_one_folder(".txt", roll_bytes))


def csv_file_sink(
    folder: str | os.PathLike[str],
    header: Sequence[str] | None = None,
    delimiter: str = ",",
    roll_bytes: int = PART_BYTES,
) -> FileSink:
    """Return a sink that writes records of fields as `part-<subtask>-<n>.csv`; a later job replaces those of its names.

    Raises:
        ValueError: `roll_bytes` is below 1.
    """
    form = CsvLines(None if header is None else tuple(header), delimiter)
    return FileSink(folder, form, _in_one_folder(".csv", roll_bytes))


def _in_one_folder(suffix: str, roll_bytes: int) -> FileSinkSettings:
    names = OutputFileConfig("part", suffix)
    buckets = BucketAssigner.base_path_bucket_assigner()
    return FileSinkSettings(buckets, RollingPolicy(roll_bytes), names, names_bear_job=False)
