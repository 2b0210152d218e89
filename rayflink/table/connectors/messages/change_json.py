"""The common base of the formats of change data capture in JSON: options, and the decoding of envelopes by columns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rayflink.common.errors import shorten
from rayflink.common.metrics.metric_group import Counter, MetricGroup
from rayflink.common.metrics.metric_names import NUM_RECORDS_IN_ERRORS
from rayflink.common.records.batches import ArrowBatch, Batch
from rayflink.common.records.row_kinds import kinds_of, without_kinds
from rayflink.common.serialization import DeserializationSchema, SerializationSchema
from rayflink.common.types import RowKind

from ...errors import SqlError, nearest
from ...plan.changelog import Change
from ...plan.logical import Schema
from ...types import DataType, DataTypes
from ..contract import Option
from ..formats import Json, column_named, refuse_maps
from .change_rows import change_batch, unfold
from .column_schemas import ColumnDecoder, ColumnEncoder
from .contract import MessageFormat
from .json_messages import JsonDecoder, JsonEncoder, JsonMessages

if TYPE_CHECKING:
    import pyarrow

    from .change_rows import Operations, Positions

_SHARED = ("ignore-parse-errors", "timestamp-format.standard", "map-null-key.mode", "map-null-key.literal",
           "encode.decimal-as-plain-number", "encode.ignore-null-fields")  # fmt: skip


@dataclass(frozen=True)
class Wanted:
    """The columns that a decoder is to give.

    Args:
        columns: in order.
        metadata: name of a column -> the key of its metadata; the others are in the rows.
        options: those of the format.
    """

    columns: Schema
    metadata: Mapping[str, str]
    options: Mapping[str, object]

    @property
    def iso(self) -> bool:
        """Return whether times are written as 2020-01-02T03:04:05, instead of with a blank."""
        return self.options["timestamp-format.standard"] == "ISO-8601"

    @property
    def skips(self) -> bool:
        """Return whether malformed messages are left out, and values of other types become NULL."""
        return bool(self.options["ignore-parse-errors"])

    @property
    def names(self) -> list[str]:
        """Return the names of the columns in the rows."""
        return [column.name for column in self.columns if column.name not in self.metadata]

    @property
    def keys(self) -> set[str]:
        """Return the keys of the metadata."""
        return set(self.metadata.values())

    def row_type(self) -> DataType:
        """Return the type of the rows in the messages."""
        kinds = [(column.name, column.type.nullable()) for column in self.columns if column.name not in self.metadata]
        return DataTypes.ROW([DataTypes.FIELD(*pair) for pair in kinds] or [DataTypes.FIELD("$none", DataTypes.INT())])


class Changes(NamedTuple):
    """The rows in the envelopes of a batch, before they are put in order.

    Args:
        before: columns of the rows before.
        after: columns of the rows after.
        operations: int8[m], what is done to each row.
        origins: int64[m], the envelope that each row is in.
    """

    before: Sequence[pyarrow.Array]
    after: Sequence[pyarrow.Array]
    operations: Operations
    origins: Positions


class BadEnvelopes(ValueError):
    """Some envelopes of a batch are malformed.

    Args:
        positions: of these in the batch.
        reason: what is wrong with the first.
    """

    def __init__(self, positions: Sequence[int], reason: str) -> None:
        super().__init__(positions, reason)
        self.positions, self.reason = positions, reason

    def __str__(self) -> str:
        return self.reason


class ChangeJsonDecoder(ColumnDecoder):
    """Decodes envelopes to rows with kinds; a format says what is in them.

    Messages without bytes are tombstones and have no rows.
    """

    def __init__(self, wanted: Wanted, errors: Counter | None = None) -> None:
        self._wanted, self._errors = wanted, errors
        self._json: JsonDecoder | None = None

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_json": None, "_errors": None}

    @abstractmethod
    def envelope(self) -> Schema:
        """Return the fields of the envelopes that are to be parsed."""

    @abstractmethod
    def changes(self, data: pyarrow.RecordBatch, messages: Sequence[bytes]) -> Changes:
        """Return the rows in envelopes.

        Args:
            data: the fields of `envelope`, a row a message.
            messages: the bytes of the same.

        Raises:
            BadEnvelopes: some are malformed.
        """

    @abstractmethod
    def metadata(self, key: str, data: pyarrow.RecordBatch) -> pyarrow.Array:
        """Return a column of metadata, a value for each envelope."""

    def wanted_messages(self, messages: Sequence[bytes]) -> Sequence[int] | None:
        """Return the positions of the messages that are of this table; None: of all."""
        return None

    def counting(self, metrics: MetricGroup) -> DeserializationSchema:
        if not self._wanted.skips:
            return self
        return type(self)(self._wanted, metrics.counter(NUM_RECORDS_IN_ERRORS))

    def deserialize_batch(self, messages: Sequence[bytes]) -> tuple[Batch, Sequence[int] | None]:
        import numpy
        import pyarrow

        positions = numpy.arange(len(messages))
        if not all(messages):
            positions = numpy.array([index for index, message in enumerate(messages) if message], numpy.int64)
        data, positions = self._parsed(messages, positions)
        valid_messages = messages
        if len(positions) < len(messages):
            valid_messages = [messages[index] for index in positions.tolist()]
        while True:
            try:
                changes = self.changes(data, valid_messages)
                break
            except BadEnvelopes as error:
                if not self._wanted.skips:
                    shown = shorten(valid_messages[error.positions[0]].decode("utf-8", "replace"), 200)
                    remedy = "correct the producer, or set the format's option 'ignore-parse-errors' = 'true'"
                    raise ValueError(f"{shown}: {error.reason}; {remedy}") from error
                self._count(len(error.positions))
                good = numpy.delete(numpy.arange(len(positions)), error.positions)
                data, positions = data.take(pyarrow.array(good)), positions[good]
                valid_messages = [valid_messages[index] for index in good.tolist()]
        batch, origins = self._rows(data, changes)
        return ArrowBatch(batch), positions[origins].tolist()

    def parsed(self, messages: Sequence[bytes]) -> tuple[Batch, Sequence[int] | None]:
        """Return the envelopes in messages without line ends, and the message of each; None: there is one in each.

        Raises:
            ValueError: a message is malformed.
        """
        if self._json is None:
            self._json = JsonDecoder(self.envelope(), self._wanted.iso, False, self._wanted.skips, self._errors)
        return self._json.deserialize_batch(messages)

    def _parsed(self, messages: Sequence[bytes], positions: Positions) -> tuple[pyarrow.RecordBatch, Positions]:
        """Return the envelopes, and the position of the message of each."""
        import numpy

        picked = [messages[index].replace(b"\n", b" ") for index in positions.tolist()]
        try:
            batch, indices = self.parsed(picked)
        except ValueError:
            of_table = self.wanted_messages(picked)
            if of_table is None or len(of_table) == len(picked):
                raise
            return self._parsed(messages, positions[numpy.array(of_table, numpy.int64)])
        assert isinstance(batch, ArrowBatch)
        return batch.data, positions if indices is None else positions[numpy.array(indices, numpy.int64)]

    def _rows(self, data: pyarrow.RecordBatch, changes: Changes) -> tuple[pyarrow.RecordBatch, Positions]:
        import pyarrow

        columns, kinds, rows = unfold(changes.before, changes.after, changes.operations)
        origins = changes.origins[rows]
        columns_by_name = dict(zip(self._wanted.names, columns, strict=True))
        where = pyarrow.array(origins)
        for name, key in self._wanted.metadata.items():
            columns_by_name[name] = self.metadata(key, data).take(where)
        wanted = self._wanted.columns
        names, types = [column.name for column in wanted], [column.type.to_arrow() for column in wanted]
        return change_batch(names, [columns_by_name[name] for name in names], types, kinds), origins

    def _count(self, malformed: int) -> None:
        if self._errors is not None:
            self._errors.inc(malformed)


def refuse_unknown(data: pyarrow.Array, unknown: Sequence[int], field_name: str, known: Sequence[str]) -> None:
    """Check that every envelope names an operation.

    Raises:
        BadEnvelopes: some do not.
    """
    if unknown:
        operation = data[unknown[0]].as_py()
        shown = "missing" if operation is None else repr(operation)
        raise BadEnvelopes(unknown, f"{field_name!r} is {shown}, one of {', '.join(known)} is wanted")


def refuse_missing(rows: pyarrow.Array, is_needed: object, reason: str) -> None:
    """Check that the rows that operations need are there.

    Args:
        is_needed: bool[n], whether the operation of an envelope needs the row.

    Raises:
        BadEnvelopes: some are null.
    """
    import numpy

    missing = numpy.flatnonzero(rows.is_null().to_numpy(zero_copy_only=False) & is_needed)
    if len(missing):
        raise BadEnvelopes(missing.tolist(), reason)


class ChangeEncoder(ColumnEncoder):
    """Encodes rows with kinds as envelopes: insertions and rows after an update as one, the others as deletions.

    Args:
        schema: of the rows.
        rows: writes them.
        insertion: the strings before and after an inserted row.
        deletion: the same of a deleted one.
    """

    def __init__(
        self, schema: Schema, rows: JsonEncoder, insertion: tuple[str, str], deletion: tuple[str, str]
    ) -> None:
        super().__init__(schema)
        self._of_rows, self._insertion, self._deletion = rows, insertion, deletion

    def messages_of(self, data: pyarrow.RecordBatch) -> Sequence[bytes | None]:
        import pyarrow
        from pyarrow import compute

        kinds = kinds_of(data)
        rows = self._of_rows.strings_of(without_kinds(data))
        if kinds is None:
            strings = compute.binary_join_element_wise(self._insertion[0], rows, self._insertion[1], "")
        else:
            inserts = (kinds == RowKind.INSERT.value) | (kinds == RowKind.UPDATE_AFTER.value)
            is_insert = pyarrow.array(inserts)
            ends = [compute.if_else(is_insert, *pair) for pair in zip(self._insertion, self._deletion, strict=True)]
            strings = compute.binary_join_element_wise(ends[0], rows, ends[1], "")
        messages: list[bytes | None] = strings.cast(pyarrow.binary()).to_pylist()
        return messages


class ChangeJson(MessageFormat):
    """A format of change data capture in JSON; a subclass names the decoder and the two envelopes that it writes."""

    changes = Change.ALL
    options: Mapping[str, Option] = {name: Json.options[name] for name in _SHARED}
    decoder_class: type[ChangeJsonDecoder]
    insertion: tuple[str, str]
    """What is written before and after an inserted row."""
    deletion: tuple[str, str]

    def decoder(self, schema: Schema, names: Sequence[str], options: Mapping[str, object]) -> DeserializationSchema:
        return self.decoder_with_metadata(schema, names, options, {})

    def decoder_with_metadata(
        self, schema: Schema, names: Sequence[str], options: Mapping[str, object], metadata: Mapping[str, str]
    ) -> DeserializationSchema:
        return self.decoder_class(self.wanted(schema, names, options, metadata))

    def wanted(
        self, schema: Schema, names: Sequence[str], options: Mapping[str, object], metadata: Mapping[str, str]
    ) -> Wanted:
        """Return the columns to decode.

        Raises:
            SqlError: JSON cannot represent one, or there is no such metadata.
        """
        check_metadata(self, metadata)
        refuse_maps(tuple(column for column in schema if column.name not in metadata))
        return Wanted(
            tuple(column_named(schema, name) for name in names),
            {name: key for name, key in metadata.items() if name in names},
            options,
        )

    def encoder(self, schema: Schema, options: Mapping[str, object]) -> SerializationSchema:
        ignores = bool(options["encode.ignore-null-fields"])
        rows = JsonMessages().encoder(schema, options)
        ends = (self.insertion, self.deletion)
        if ignores:
            ends = tuple(tuple(_without_nulls(end) for end in pair) for pair in ends)  # type: ignore[assignment]
        return ChangeEncoder(schema, rows, *ends)


def check_metadata(form: MessageFormat, metadata: Mapping[str, str]) -> None:
    """Check that a format has metadata.

    Raises:
        SqlError: it has not.
    """
    for name, key in metadata.items():
        if key not in form.metadata:
            problem = f"column {name!r} is metadata {key!r}, which {form.name!r} does not have"
            raise SqlError(problem + nearest(key, form.metadata), f"its metadata are {', '.join(form.metadata)}")


def _without_nulls(end: str) -> str:
    return end.replace('"before":null,', "").replace(',"after":null', "")


def milliseconds(column: pyarrow.Array) -> pyarrow.Array:
    """Return numbers of milliseconds since 1970 as instants."""
    import pyarrow

    return column.cast(pyarrow.int64()).cast(pyarrow.timestamp("ms", "UTC"))


__all__ = [
    "BadEnvelopes", "ChangeEncoder", "ChangeJson", "ChangeJsonDecoder", "Changes", "Wanted",
    "check_metadata", "milliseconds", "refuse_missing", "refuse_unknown",
]  # fmt: skip
