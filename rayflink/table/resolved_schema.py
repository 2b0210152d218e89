"""Columns of a table whose types are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .types import DataType, DataTypes


@dataclass(frozen=True)
class Column:
    """A column that is there; what computes one is in `Schema`."""

    name: str
    data_type: DataType
    comment: str | None = None

    @staticmethod
    def physical(name: str, data_type: DataType) -> Column:
        """Return a column of the rows."""
        return Column(name, data_type)

    def with_comment(self, comment: str | None) -> Column:
        """Return the same with another comment."""
        return replace(self, comment=comment)

    def is_physical(self) -> bool:
        """Return whether it is a column of the rows: it is."""
        return True

    def is_persisted(self) -> bool:
        """Return whether it is written: it is."""
        return True

    def get_data_type(self) -> DataType:
        """Return its type."""
        return self.data_type

    def get_name(self) -> str:
        """Return its name."""
        return self.name

    def get_comment(self) -> str | None:
        """Return its comment; None: there is none."""
        return self.comment

    def as_summary_string(self) -> str:
        """Return a readable description."""
        return f"`{self.name}` {self.data_type}"

    def copy(self, new_type: DataType) -> Column:
        """Return the column with another type."""
        return replace(self, data_type=new_type)

    def rename(self, new_name: str) -> Column:
        """Return the column under another name."""
        return replace(self, name=new_name)

    def __str__(self) -> str:
        return self.as_summary_string()


@dataclass(frozen=True, init=False)
class ResolvedSchema:
    """Columns, in order.

    >>> print(ResolvedSchema.physical(["id"], [DataTypes.BIGINT()]))
    (
      `id` BIGINT
    )
    """

    columns: tuple[Column, ...]

    def __init__(self, columns: Sequence[Column] = ()) -> None:
        object.__setattr__(self, "columns", tuple(columns))

    @staticmethod
    def of(columns: Sequence[Column]) -> ResolvedSchema:
        """Return a schema of these columns."""
        return ResolvedSchema(columns)

    @staticmethod
    def physical(column_names: Sequence[str], column_data_types: Sequence[DataType]) -> ResolvedSchema:
        """Return a schema of columns with these names and types."""
        return ResolvedSchema([Column(*pair) for pair in zip(column_names, column_data_types, strict=True)])

    def get_column_count(self) -> int:
        """Return the number of columns."""
        return len(self.columns)

    def get_columns(self) -> list[Column]:
        """Return the columns."""
        return list(self.columns)

    def get_column_names(self) -> list[str]:
        """Return the names."""
        return [column.name for column in self.columns]

    def get_column_data_types(self) -> list[DataType]:
        """Return the types."""
        return [column.data_type for column in self.columns]

    def get_column(self, column_index_or_name: int | str) -> Column | None:
        """Return a column by its number from 0 or its name; None: there is none."""
        if isinstance(column_index_or_name, str):
            return next((column for column in self.columns if column.name == column_index_or_name), None)
        return self.columns[column_index_or_name] if 0 <= column_index_or_name < len(self.columns) else None

    def to_physical_row_data_type(self) -> DataType:
        """Return the columns as the fields of a ROW."""
        return DataTypes.ROW([DataTypes.FIELD(column.name, column.data_type) for column in self.columns])

    to_source_row_data_type = to_sink_row_data_type = to_physical_row_data_type

    def __str__(self) -> str:
        return "(\n" + ",\n".join(f"  {column}" for column in self.columns) + "\n)"


__all__ = ["Column", "ResolvedSchema"]
