"""Columns, watermarks and keys of a table whose types are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from .definitions import quoted
from .types import DataType, DataTypes

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "Column",
    "ComputedColumn",
    "Constraint",
    "MetadataColumn",
    "PhysicalColumn",
    "ResolvedExpression",
    "ResolvedSchema",
    "UniqueConstraint",
    "WatermarkSpec",
]


@dataclass(frozen=True)
class ResolvedExpression:
    """An expression whose type is known.

    Args:
        summary: as SQL writes it.
        data_type: of its values.
    """

    summary: str
    data_type: DataType

    def get_output_data_type(self) -> DataType:
        """Return the type of its values."""
        return self.data_type

    def as_summary_string(self) -> str:
        """Return it as SQL writes it."""
        return self.summary

    def as_serializable_string(self) -> str:
        """Return it as SQL writes it, to be stored."""
        return self.summary

    def __str__(self) -> str:
        return self.summary


@dataclass(frozen=True)
class Column:
    """A column of a table: physical, computed or metadata."""

    name: str
    data_type: DataType
    comment: str | None = None

    @staticmethod
    def physical(name: str, data_type: DataType) -> PhysicalColumn:
        """Return a column that the system outside stores."""
        return PhysicalColumn(name, data_type)

    @staticmethod
    def computed(name: str, resolved_expression: ResolvedExpression) -> ComputedColumn:
        """Return a column that is computed from others.

        Args:
            name: of the column.
            resolved_expression: of which it is.
        """
        return ComputedColumn(name, resolved_expression.get_output_data_type(), None, resolved_expression)

    @staticmethod
    def metadata(name: str, data_type: DataType, metadata_key: str | None, is_virtual: bool) -> MetadataColumn:
        """Return a column that the connector knows beside the row.

        Args:
            name: of the column.
            data_type: of its values.
            metadata_key: of the connector; None: the name.
            is_virtual: it is read, and not written.
        """
        return MetadataColumn(name, data_type, None, metadata_key, is_virtual)

    def with_comment(self, comment: str | None) -> Self:
        """Return the same with another comment."""
        return replace(self, comment=comment)

    def is_physical(self) -> bool:
        """Return whether the system outside stores it as a column."""
        return True

    def is_persisted(self) -> bool:
        """Return whether INSERT writes it."""
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

    def explain_extras(self) -> str | None:
        """Return what else is to be said of it, as SQL writes it; None: nothing."""
        return None

    def as_summary_string(self) -> str:
        """Return a readable description."""
        extras = self.explain_extras()
        return f"{quoted(self.name)} {self.data_type}" + ("" if extras is None else f" {extras}")

    def copy(self, new_type: DataType) -> Self:
        """Return the column with another type."""
        return replace(self, data_type=new_type)

    def rename(self, new_name: str) -> Self:
        """Return the column under another name."""
        return replace(self, name=new_name)

    def __str__(self) -> str:
        return self.as_summary_string()


@dataclass(frozen=True)
class PhysicalColumn(Column):
    """A column that the system outside stores."""


@dataclass(frozen=True)
class ComputedColumn(Column):
    """A column that is computed from others.

    Args:
        expression: of which it is.
    """

    expression: ResolvedExpression = ResolvedExpression("", DataTypes.NULL())

    def is_physical(self) -> bool:
        return False

    def is_persisted(self) -> bool:
        return False

    def get_expression(self) -> ResolvedExpression:
        """Return the expression."""
        return self.expression

    def explain_extras(self) -> str | None:
        return f"AS {self.expression.as_summary_string()}"


@dataclass(frozen=True)
class MetadataColumn(Column):
    """A column that the connector knows beside the row.

    Args:
        metadata_key: of the connector; None: the name.
        virtual: it is read, and not written.
    """

    metadata_key: str | None = None
    virtual: bool = False

    def is_virtual(self) -> bool:
        """Return whether it is read, and not written."""
        return self.virtual

    def get_metadata_key(self) -> str | None:
        """Return the key of the connector; None: it is the name."""
        return self.metadata_key

    def is_physical(self) -> bool:
        return False

    def is_persisted(self) -> bool:
        return not self.virtual

    def explain_extras(self) -> str | None:
        source = "" if self.metadata_key is None else f" FROM '{self.metadata_key}'"
        return f"METADATA{source}{' VIRTUAL' if self.virtual else ''}"


@dataclass(frozen=True)
class WatermarkSpec:
    """The time column of a table, and the expression of its watermark; made by `WatermarkSpec.of`."""

    rowtime_attribute: str
    watermark_expression: ResolvedExpression

    @staticmethod
    def of(rowtime_attribute: str, watermark_expression: ResolvedExpression) -> WatermarkSpec:
        """Return the watermark of a time column.

        Args:
            rowtime_attribute: name of the column.
            watermark_expression: of its watermark.
        """
        return WatermarkSpec(rowtime_attribute, watermark_expression)

    def get_rowtime_attribute(self) -> str:
        """Return the name of the time column."""
        return self.rowtime_attribute

    def get_watermark_expression(self) -> ResolvedExpression:
        """Return the expression."""
        return self.watermark_expression

    def as_summary_string(self) -> str:
        """Return a readable description."""
        expression = self.watermark_expression
        kind = expression.get_output_data_type()
        return f"WATERMARK FOR {quoted(self.rowtime_attribute)}: {kind} AS {expression.as_summary_string()}"

    def __str__(self) -> str:
        return self.as_summary_string()


class Constraint:
    """A rule that the rows of a table keep."""

    class ConstraintType(Enum):
        """The kinds of rules."""

        PRIMARY_KEY = 0
        UNIQUE_KEY = 1

    def get_name(self) -> str:
        """Return its name."""
        raise NotImplementedError

    def is_enforced(self) -> bool:
        """Return whether rows are checked by it."""
        raise NotImplementedError

    def get_type(self) -> ConstraintType:
        """Return its kind."""
        raise NotImplementedError

    def as_summary_string(self) -> str:
        """Return a readable description."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.as_summary_string()


@dataclass(frozen=True)
class UniqueConstraint(Constraint):
    """Columns whose values differ from row to row; made by `UniqueConstraint.primary_key`. It is not enforced."""

    name: str
    columns: tuple[str, ...]

    @staticmethod
    def primary_key(name: str, columns: Sequence[str]) -> UniqueConstraint:
        """Return a primary key of columns."""
        return UniqueConstraint(name, tuple(columns))

    def get_name(self) -> str:
        return self.name

    def is_enforced(self) -> bool:
        return False

    def get_type(self) -> Constraint.ConstraintType:
        return Constraint.ConstraintType.PRIMARY_KEY

    def get_columns(self) -> list[str]:
        """Return the names of its columns."""
        return list(self.columns)

    def get_type_string(self) -> str:
        """Return "PRIMARY KEY"."""
        return "PRIMARY KEY"

    def as_summary_string(self) -> str:
        columns = ", ".join(map(quoted, self.columns))
        return f"CONSTRAINT {quoted(self.name)} {self.get_type_string()} ({columns}) NOT ENFORCED"

    __str__ = Constraint.__str__


@dataclass(frozen=True, init=False)
class ResolvedSchema:
    """Columns in order, with watermarks and the primary key of a table that has them.

    >>> print(ResolvedSchema.physical(["id"], [DataTypes.BIGINT()]))
    (
      `id` BIGINT
    )
    """

    columns: tuple[Column, ...]
    watermark_specs: tuple[WatermarkSpec, ...]
    primary_key: UniqueConstraint | None

    def __init__(
        self, columns: Sequence[Column] = (), watermark_specs: Sequence[WatermarkSpec] = (),
        primary_key: UniqueConstraint | None = None,
    ) -> None:  # fmt: skip
        object.__setattr__(self, "columns", tuple(columns))
        object.__setattr__(self, "watermark_specs", tuple(watermark_specs))
        object.__setattr__(self, "primary_key", primary_key)

    @staticmethod
    def of(columns: Sequence[Column]) -> ResolvedSchema:
        """Return a schema of these columns."""
        return ResolvedSchema(columns)

    @staticmethod
    def physical(column_names: Sequence[str], column_data_types: Sequence[DataType]) -> ResolvedSchema:
        """Return a schema of physical columns with these names and types."""
        return ResolvedSchema([PhysicalColumn(*pair) for pair in zip(column_names, column_data_types, strict=True)])

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

    def get_watermark_specs(self) -> list[WatermarkSpec]:
        """Return the watermarks."""
        return list(self.watermark_specs)

    def get_primary_key(self) -> UniqueConstraint | None:
        """Return the primary key; None: there is none."""
        return self.primary_key

    def get_primary_key_indexes(self) -> list[int]:
        """Return the numbers of the columns of the primary key, from 0; []: there is none."""
        names = self.get_column_names()
        return [] if self.primary_key is None else [names.index(name) for name in self.primary_key.columns]

    def to_source_row_data_type(self) -> DataType:
        """Return the columns that a source gives: all but those that are computed."""
        return _row([column for column in self.columns if not isinstance(column, ComputedColumn)])

    def to_physical_row_data_type(self) -> DataType:
        """Return the columns that the system outside stores."""
        return _row([column for column in self.columns if column.is_physical()])

    def to_sink_row_data_type(self) -> DataType:
        """Return the columns that INSERT writes."""
        return _row([column for column in self.columns if column.is_persisted()])

    def __str__(self) -> str:
        parts = [*self.columns, *self.watermark_specs, *([] if self.primary_key is None else [self.primary_key])]
        return "(\n" + ",\n".join(f"  {part}" for part in parts) + "\n)"


def _row(columns: Sequence[Column]) -> DataType:
    return DataTypes.ROW([DataTypes.FIELD(column.name, column.data_type) for column in columns])
