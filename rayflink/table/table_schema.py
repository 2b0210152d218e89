"""Names and types of a table's columns."""

from __future__ import annotations

from collections.abc import Sequence

from .types import DataType, DataTypes


class TableSchema:
    """Names and types of columns, in order.

    >>> TableSchema(["id"], [DataTypes.BIGINT()])
    root
     |-- id: BIGINT
    <BLANKLINE>

    Raises:
        ValueError: there are more names than types, or fewer.
    """

    def __init__(self, field_names: Sequence[str] | None = None, data_types: Sequence[DataType] | None = None) -> None:
        self._names, self._types = list(field_names or ()), list(data_types or ())
        if len(self._names) != len(self._types):
            raise ValueError(
                f"{len(self._names)} names for {len(self._types)} types; give each column a name and a type"
            )

    def copy(self) -> TableSchema:
        """Return a copy."""
        return TableSchema(self._names, self._types)

    def get_field_data_types(self) -> list[DataType]:
        """Return the types."""
        return list(self._types)

    def get_field_data_type(self, field: int | str) -> DataType | None:
        """Return the type of a column by its number from 0 or its name; None: there is none.

        Raises:
            TypeError: it is neither.
        """
        if not isinstance(field, (int, str)):
            raise TypeError(f"a column is a number or a name, found {field!r}; give get_field_data_type(0), say")
        index = field if isinstance(field, int) else self._names.index(field) if field in self._names else -1
        return self._types[index] if 0 <= index < len(self._types) else None

    def get_field_count(self) -> int:
        """Return the number of columns."""
        return len(self._names)

    def get_field_names(self) -> list[str]:
        """Return the names."""
        return list(self._names)

    def get_field_name(self, field_index: int) -> str | None:
        """Name of a column by its number from 0; None: there is none."""
        return self._names[field_index] if 0 <= field_index < len(self._names) else None

    def to_row_data_type(self) -> DataType:
        """Return the columns as the fields of a ROW, which is not null."""
        fields = [DataTypes.FIELD(*pair) for pair in zip(self._names, self._types, strict=True)]
        return DataTypes.ROW(fields, nullable=False)

    def __repr__(self) -> str:
        pairs = zip(self._names, self._types, strict=True)
        return "\n".join(["root", *(f" |-- {name}: {kind}" for name, kind in pairs), ""])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableSchema) and (self._names, self._types) == (other._names, other._types)

    def __hash__(self) -> int:
        return hash((tuple(self._names), tuple(self._types)))

    @classmethod
    def builder(cls) -> TableSchemaBuilder:
        """Return a builder without columns."""
        return TableSchemaBuilder()


class TableSchemaBuilder:
    """Builds a `TableSchema`; each call returns the builder."""

    def __init__(self) -> None:
        self._fields: list[tuple[str, DataType]] = []

    def field(self, name: str, data_type: DataType) -> TableSchemaBuilder:
        """Return a further column."""
        self._fields.append((name, data_type))
        return self

    def build(self) -> TableSchema:
        """Return the schema."""
        return TableSchema([name for name, _ in self._fields], [kind for _, kind in self._fields])


TableSchema.Builder = TableSchemaBuilder  # type: ignore[attr-defined]

__all__ = ["TableSchema"]
