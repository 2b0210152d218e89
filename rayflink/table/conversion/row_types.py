"""The type of the records that the rows of a table become on a stream."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rayflink.common.data_types.composite_types import RowTypeInfo
from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.typeinfo import Types

from ..types import DataType, Root, RowField

if TYPE_CHECKING:
    import pyarrow

_PLAIN = {
    Root.BOOLEAN: Types.BOOLEAN, Root.TINYINT: Types.BYTE, Root.SMALLINT: Types.SHORT, Root.INT: Types.INT,
    Root.BIGINT: Types.LONG, Root.FLOAT: Types.FLOAT, Root.DOUBLE: Types.DOUBLE, Root.CHAR: Types.STRING,
    Root.VARCHAR: Types.STRING, Root.DECIMAL: Types.BIG_DEC, Root.DATE: Types.SQL_DATE, Root.TIME: Types.SQL_TIME,
    Root.TIMESTAMP: Types.SQL_TIMESTAMP,
}  # fmt: skip


class TableRows(RowTypeInfo):
    """Rows of a table: its columns with their types, and which of them is the event time that the stream has.

    Streams have fewer types than tables, so a field of another type is of any. Records are not held to it.

    Args:
        columns: of the table.
        time: number of the column that is the records' event time, with the stream's watermarks about it; None: none.
    """

    is_declared = False

    def __init__(self, columns: Sequence[RowField], time: int | None = None) -> None:
        self.columns, self.time = tuple(columns), time
        super().__init__(
            [_field_type(column.type) for column in self.columns], [column.name for column in self.columns]
        )

    def of_other_times(self) -> TypeInformation:
        return self if self.time is None else TableRows(self.columns)

    def arrow_schema(self) -> pyarrow.Schema:
        import pyarrow

        return pyarrow.schema([column.type.to_arrow_field(column.name) for column in self.columns])

    def text_of(self, row: Any) -> str:
        """Format a row as Java's Row prints itself: `+I[ann, 2026-01-01T08:00]`."""
        text: str = self._text(row)
        return text

    @cached_property
    def _text(self) -> Any:
        from .row_format import JavaFormat, RowFormat  # slow: it loads numpy

        return RowFormat([column.type for column in self.columns], JavaFormat())

    def _parameters(self) -> tuple[Any, ...]:
        return (self.columns, self.time)

    def __reduce__(self) -> tuple[Any, ...]:
        return TableRows, (self.columns, self.time)

    def __repr__(self) -> str:
        return f"TableRows({', '.join(map(str, self.columns))})"


def _field_type(kind: DataType) -> TypeInformation:
    factory = _PLAIN.get(kind.root)
    type_info: TypeInformation = Types.PICKLED_BYTE_ARRAY() if factory is None else factory()
    return type_info


__all__ = ["TableRows"]
