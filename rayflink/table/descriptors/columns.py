"""Columns, by properties."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import SqlError
from ..table_schema import TableSchema
from ..types import DataType
from .descriptor import Descriptor
from .rowtime import Rowtime


class Schema(Descriptor):
    """Says which columns a table has; each call returns the same object.

    `from_origin_field`, `proctime` and `rowtime` say more of the column that was added last.

    >>> from rayflink.table.types import DataTypes
    >>> Schema().field("id", DataTypes.INT()).from_origin_field("number").to_properties()
    {'schema.0.name': 'id', 'schema.0.data-type': 'INT', 'schema.0.from': 'number'}

    Args:
        schema: names and types of all columns.
        fields: name of a column -> its type.
        rowtime: makes the last column the event time.
    """

    def __init__(
        self, schema: TableSchema | None = None, fields: Mapping[str, DataType | str] | None = None,
        rowtime: Rowtime | None = None,
    ) -> None:  # fmt: skip
        self._columns: dict[str, dict[str, str]] = {}
        if schema is not None:
            self.schema(schema)
        if fields is not None:
            self.fields(fields)
        if rowtime is not None:
            self.rowtime(rowtime)

    def schema(self, table_schema: TableSchema) -> Schema:
        """Replace all columns by those of a schema."""
        self._columns = {}
        return self.fields(dict(zip(table_schema.get_field_names(), table_schema.get_field_data_types(), strict=True)))

    def field(self, field_name: str, field_type: DataType | str) -> Schema:
        """Add a column; its type may be a string, such as "DECIMAL(10, 2)".

        Raises:
            SqlError: there is one of that name.
        """
        if field_name in self._columns:
            raise SqlError(f"two columns are named {field_name!r}", "give it another name")
        self._columns[field_name] = {"name": field_name, "data-type": _text_of(field_type)}
        return self

    def fields(self, fields: Mapping[str, DataType | str]) -> Schema:
        """Add columns, in their order.

        Raises:
            TypeError: it is no dict.
            SqlError: there is one of a name.
        """
        if not isinstance(fields, Mapping):
            remedy = "give {'id': DataTypes.INT()}, say"
            raise TypeError(f"the columns are a dict of names and types, found {fields!r}; {remedy}")
        for name, kind in fields.items():
            self.field(name, kind)
        return self

    def from_origin_field(self, origin_field_name: str) -> Schema:
        """Say under which name the connector knows the last column."""
        return self._say({"from": origin_field_name})

    def proctime(self) -> Schema:
        """Make the last column the processing time."""
        return self._say({"proctime": "true"})

    def rowtime(self, rowtime: Rowtime) -> Schema:
        """Make the last column the event time."""
        return self._say(rowtime.to_properties())

    def to_properties(self) -> dict[str, str]:
        return {
            f"schema.{place}.{key}": value
            for place, column in enumerate(self._columns.values())
            for key, value in column.items()
        }

    def _say(self, properties: Mapping[str, str]) -> Schema:
        if not self._columns:
            raise SqlError("there is no column of which something could be said", "add it first: field(name, type)")
        next(reversed(self._columns.values())).update(properties)
        return self


def _text_of(kind: DataType | str) -> str:
    """Return a type as properties have it: a STRING is a VARCHAR of the greatest length; older names have new ones."""
    text = str(kind)
    return (_OLDER if isinstance(kind, str) else _LONGEST).get(text, text)


_LONGEST = {"STRING": "VARCHAR(2147483647)", "BYTES": "VARBINARY(2147483647)"}
_OLDER = {"SQL_TIMESTAMP": "TIMESTAMP(3)", "SQL_TIME": "TIME(0)", "SQL_DATE": "DATE"}


__all__ = ["Schema"]
