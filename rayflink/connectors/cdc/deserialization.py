"""Changes of tables as records of a stream."""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator

from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.records.arrow_rows import arrow_to_rows
from rayflink.common.records.batches import Batch, RowBatch
from rayflink.common.typeinfo import Types
from rayflink.common.types import Row, RowKind

from .table_changes import TableChanges

_MYSQL_OFFSET = (1 << 36) - 1
"""The bits of a position in the log of MySQL that are the offset in a file."""


class ChangeDeserializationSchema(ABC):
    """Makes records of changes; the `deserializer` of sources of change data capture."""

    @abstractmethod
    def deserialize_changes(self, changes: TableChanges) -> Batch:
        """Return the records for some changes of one table, in order."""

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type of the records; None: it is unknown."""
        return None


class RowChangesDeserializationSchema(ChangeDeserializationSchema):
    """Makes a `Row` with the columns' names of each change, and with its kind (`get_row_kind()`).

    A row deleted where the log lacks its values (see the replica identity of PostgreSQL) has None outside its key.

    Args:
        include_table: the row begins with the fields `database_name`, `schema_name`, `table_name` and `op_ts` (epoch
            milliseconds; 0 for rows of the snapshot), by which the tables of one stream differ.
    """

    def __init__(self, include_table: bool = False) -> None:
        self._include_table = include_table

    def deserialize_changes(self, changes: TableChanges) -> Batch:
        rows = arrow_to_rows(changes.rows)
        if not self._include_table:
            return RowBatch(list(rows))
        place = changes.database, changes.schema, changes.table
        moments = [0] * len(rows) if changes.op_ms is None else changes.op_ms.tolist()
        names = ["database_name", "schema_name", "table_name", "op_ts"]
        shape = Row(*names, *[name for name in changes.rows.schema.names[:] if not name.startswith("$")])
        full = []
        for row, moment in zip(rows, moments, strict=True):
            record = shape(*place, moment, *row)
            record.set_row_kind(row.get_row_kind())
            full.append(record)
        return RowBatch(full)


class JsonDebeziumDeserializationSchema(ChangeDeserializationSchema):
    """Makes a JSON string in Debezium's form of each change: `before`, `after`, `op`, `ts_ms` and `source`.

    `op` is `r` for a row of the snapshot, and `c`, `u` or `d` for a change. Numbers of type NUMERIC, dates and times
    are strings in the notation of SQL and ISO 8601, and bytes are in base64. `before` is null where the log lacks it.
    """

    def deserialize_changes(self, changes: TableChanges) -> Batch:
        return RowBatch([json.dumps(record, default=_plain, ensure_ascii=False) for record in _envelopes(changes)])

    def get_produced_type(self) -> TypeInformation | None:
        return Types.STRING()


def _envelopes(changes: TableChanges) -> Iterator[dict[str, object]]:
    now_ms = int(time.time() * 1000)
    before: dict[str, object] | None = None
    for index, row in enumerate(arrow_to_rows(changes.rows)):
        kind, values = row.get_row_kind(), row.as_dict()
        if kind is RowKind.UPDATE_BEFORE:
            before = values
            continue
        op = "r" if changes.is_snapshot else {RowKind.INSERT: "c", RowKind.DELETE: "d"}.get(kind, "u")
        moment = 0 if changes.op_ms is None else int(changes.op_ms[index])
        source: dict[str, object] = {
            "connector": changes.connector, "db": changes.database, "schema": changes.schema, "table": changes.table,
            "ts_ms": moment, "snapshot": str(changes.is_snapshot).lower(),
        }  # fmt: skip
        place = None if changes.positions is None else int(changes.positions[index])
        if changes.connector == "mysql":
            del source["schema"]
            source |= {"file": changes.log_file or None, "pos": None if place is None else place & _MYSQL_OFFSET}
        else:
            source["lsn"] = place
        old, new = (values, None) if kind is RowKind.DELETE else (before, values)
        yield {"before": old, "after": new, "source": source, "op": op, "ts_ms": now_ms}
        before = None


def _plain(value: object) -> object:
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value)


__all__ = ["ChangeDeserializationSchema", "JsonDebeziumDeserializationSchema", "RowChangesDeserializationSchema"]
