"""Messages of one partition of Kafka as rows of a table, by columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from rayflink.common.errors import shorten
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import ArrowBatch, Batch
from rayflink.common.records.row_kinds import kinds_of, with_kinds
from rayflink.common.serialization import DeserializationSchema
from rayflink.common.types import RowKind
from rayflink.connectors.kafka.kafka_records import KafkaRecord, KafkaRecordDeserializationSchema, KafkaRecords
from rayflink.user_types import UserRecord

from ...plan.logical import Attribute, Schema
from .kafka_metadata import headers_column, times_column
from .message_columns import Projection

if TYPE_CHECKING:
    import pyarrow
    from numpy.typing import NDArray


class RowDecoder(KafkaRecordDeserializationSchema):
    """Decodes messages to the columns of a table that a query reads.

    Messages without a value have no row, unless they delete the row of their key.

    Args:
        wanted: the columns to decode, and where they are.
        schema: the same columns with their types.
        key: decodes the key columns of `wanted`; None: there are none.
        value: decodes the value columns of `wanted`, then the metadata columns of the value, and may add row kinds.
        upserts: a message replaces the row of its key, and without a value deletes it.
        zone: the session's time zone.
    """

    def __init__(
        self,
        wanted: Projection,
        schema: Schema,
        key: DeserializationSchema | None,
        value: DeserializationSchema,
        upserts: bool = False,
        zone: str = "UTC",
    ) -> None:
        self._wanted, self._schema, self._upserts, self._zone = wanted, schema, upserts, zone
        self.skips_tombstones = not upserts
        self._key, self._value = key, value

    def deserialize(self, record: KafkaRecord) -> UserRecord:
        raise NotImplementedError("rows of a table are decoded by batches")

    def counting(self, metrics: MetricGroup) -> RowDecoder:
        """Return this decoder, extended to count what the formats leave out themselves."""
        key = None if self._key is None else self._key.counting(metrics)
        value = self._value.counting(metrics)
        return RowDecoder(self._wanted, self._schema, key, value, self._upserts, self._zone)

    def deserialize_batch(self, records: KafkaRecords) -> tuple[Batch, Sequence[int] | None]:
        """Return the rows and, for each, the index of its message; None: there is one row a message.

        Raises:
            ValueError: a message is malformed.
        """
        import pyarrow

        values = records.values()
        present = None
        if None in values:
            present = np.flatnonzero([value is not None for value in values])
        data, origins = self._values(values, present)
        count, kinds = data.num_rows, kinds_of(data)
        columns_by_name = dict(zip((*self._wanted.value, *self._wanted.value_metadata), data.columns, strict=False))
        deleted = np.zeros(count, np.bool_)
        if self._upserts:
            kinds = np.full(count, RowKind.UPDATE_AFTER.value, np.int8)
            if present is not None:
                columns_by_name, origins, deleted = _with_deletions(columns_by_name, origins, present, len(values))
                kinds = np.where(deleted, RowKind.DELETE.value, RowKind.UPDATE_AFTER.value).astype(np.int8)
        count = len(deleted)
        where = None if origins is None else pyarrow.array(origins)
        for name, column in self._keys(records).items():
            from_key = column if where is None else column.take(where)
            columns_by_name[name] = _chosen(from_key, columns_by_name.get(name), deleted)
        for name, key in self._wanted.metadata.items():
            column = _METADATA[key](records, self._column(name), self._zone)
            columns_by_name[name] = column if where is None else column.take(where)
        batch = self._batch(columns_by_name, count)
        if kinds is not None:
            batch = with_kinds(batch, kinds)
        return ArrowBatch(batch), None if origins is None else origins.tolist()

    def _values(
        self, values: Sequence[bytes | None], present: NDArray[np.int64] | None
    ) -> tuple[pyarrow.RecordBatch, NDArray[np.int64] | None]:
        """Return the rows in the values that are there, and the message of each; None: one row a message."""
        import pyarrow

        some: Sequence[bytes | None] = values if present is None else [values[index] for index in present.tolist()]
        if not len(some):
            nothing = [pyarrow.array([], self._column(name).type.to_arrow()) for name in self._wanted.value]
            return pyarrow.RecordBatch.from_arrays(nothing, list(self._wanted.value)), np.array([], np.int64)
        batch, indices = self._value.deserialize_batch(cast(Sequence[bytes], some))
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; formats of tables decode to columns"
        if indices is None:
            return batch.data, present
        positions = np.asarray(indices, np.int64)
        return batch.data, positions if present is None else present[positions]

    def _keys(self, records: KafkaRecords) -> Mapping[str, pyarrow.Array]:
        """Return the key columns, a value a message; NULL where a message has no key."""
        import pyarrow

        if self._key is None:
            return {}
        names, keys = self._wanted.key, records.keys()
        present = [index for index, key in enumerate(keys) if key is not None]
        if self._upserts and len(present) < len(keys):
            raise ValueError("the message has no key, by which it replaces a row")
        if not present:
            return {name: pyarrow.nulls(len(keys), self._column(name).type.to_arrow()) for name in names}
        batch, indices = self._key.deserialize_batch([key for key in keys if key is not None])
        assert isinstance(batch, ArrowBatch)
        if indices is None and len(present) == len(keys):
            return dict(zip(names, batch.data.columns, strict=True))
        rows = range(batch.data.num_rows) if indices is None else indices
        places: list[int | None] = [None] * len(keys)
        for row, index in enumerate(rows):
            places[present[index]] = row
        if self._upserts and None in places:
            shown = shorten(keys[places.index(None)], 60)
            raise ValueError(f"the key {shown} has no row, and a message replaces the row of its key")
        taken = pyarrow.array(places, pyarrow.int64())
        return {name: column.take(taken) for name, column in zip(names, batch.data.columns, strict=True)}

    def _column(self, name: str) -> Attribute:
        return next(column for column in self._schema if column.name == name)

    def _batch(self, columns_by_name: Mapping[str, pyarrow.Array], count: int) -> pyarrow.RecordBatch:
        import pyarrow

        fields = [pyarrow.field(column.name, column.type.to_arrow()) for column in self._schema]
        columns = [columns_by_name[field.name] for field in fields]
        columns = [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip(columns, fields, strict=True)
        ]
        if not columns:  # COUNT(*) over nothing but rows
            return pyarrow.RecordBatch.from_struct_array(pyarrow.array([{}] * count, pyarrow.struct([])))
        return pyarrow.RecordBatch.from_arrays(columns, schema=pyarrow.schema(fields))


def _with_deletions(
    columns_by_name: Mapping[str, pyarrow.Array],
    origins: NDArray[np.int64] | None,
    present: NDArray[np.int64],
    messages: int,
) -> tuple[dict[str, pyarrow.Array], NDArray[np.int64], NDArray[np.bool_]]:
    """Return columns with rows of NULLs for messages without a value, the message of each row, and which they are."""
    import pyarrow

    origins = present if origins is None else origins
    absent = np.setdiff1d(np.arange(messages), present)
    merged = np.concatenate([origins, absent])
    order = np.argsort(merged, kind="stable")
    where = pyarrow.array(order)
    columns = {
        name: pyarrow.concat_arrays([column, pyarrow.nulls(len(absent), column.type)]).take(where)
        for name, column in columns_by_name.items()
    }
    return columns, merged[order], order >= len(origins)


def _chosen(from_key: pyarrow.Array, from_value: pyarrow.Array | None, deleted: NDArray[np.bool_]) -> pyarrow.Array:
    """Return a column of the key; one that the value has, too, is the value's in rows that are not deleted."""
    import pyarrow
    from pyarrow import compute

    if from_value is None:
        return from_key
    if not deleted.any():
        return from_value
    return compute.if_else(pyarrow.array(deleted), from_key.cast(from_value.type), from_value)


def _same(value: object, count: int, column: Attribute) -> pyarrow.Array:
    import pyarrow

    return pyarrow.repeat(pyarrow.scalar(value, column.type.to_arrow()), count)


def _numbers(values: Sequence[int | None], column: Attribute) -> pyarrow.Array:
    import pyarrow

    return pyarrow.array(values, pyarrow.int64()).cast(column.type.to_arrow())


def _strings(values: Sequence[str], column: Attribute) -> pyarrow.Array:
    import pyarrow

    return pyarrow.array(values, column.type.to_arrow())


_METADATA: dict[str, Callable[[KafkaRecords, Attribute, str], pyarrow.Array]] = {
    "topic": lambda records, column, zone: _same(records.topic, len(records), column),
    "partition": lambda records, column, zone: _same(records.partition, len(records), column),
    "offset": lambda records, column, zone: _numbers(records.offsets(), column),
    "timestamp": lambda records, column, zone: times_column(records.timestamps(), column, zone),
    "timestamp-type": lambda records, column, zone: _strings(records.timestamp_types(), column),
    "headers": lambda records, column, zone: headers_column(records.headers(), column),
    "leader-epoch": lambda records, column, zone: _numbers(records.leader_epochs(), column),
}
"""Key of metadata -> the column of it."""

__all__ = ["RowDecoder"]
