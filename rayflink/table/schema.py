"""The columns of a table, written in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rayflink.common.errors import InvalidTypesError

from .definitions import ColumnDefinition, TableDefinition
from .types import DataType

if TYPE_CHECKING:
    from .expression import Expression
    from .resolved_schema import ResolvedSchema

__all__ = ["FormatDescriptor", "Schema", "TableDescriptor"]


@dataclass(frozen=True)
class Schema:
    """Columns, a watermark and a key; made by `Schema.new_builder()`.

    >>> from rayflink.table.types import DataTypes
    >>> schema = Schema.new_builder().column("ts", DataTypes.TIMESTAMP(3)).watermark("ts", "ts - INTERVAL '1' SECOND")
    >>> [column.name for column in schema.build().columns]
    ['ts']
    """

    columns: tuple[ColumnDefinition, ...] = ()
    watermark: tuple[str, str] | None = None
    key: tuple[str, ...] = ()

    @staticmethod
    def new_builder() -> SchemaBuilder:
        """Return a builder without columns."""
        return SchemaBuilder()


class SchemaBuilder:
    """Builds a `Schema`; each call returns the builder."""

    def __init__(self) -> None:
        self._columns: list[ColumnDefinition] = []
        self._watermark: tuple[str, str] | None = None
        self._key: tuple[str, ...] = ()

    def column(self, column_name: str, data_type: DataType | str) -> SchemaBuilder:
        """Add a physical column; its type may be a string, such as "DECIMAL(10, 2)"."""
        return self._add(ColumnDefinition(column_name, _type(data_type)))

    def from_schema(self, unresolved_schema: Schema) -> SchemaBuilder:
        """Add the columns of another schema, and take its watermark and its key where it has them."""
        for column in unresolved_schema.columns:
            self._add(column)
        self._watermark = unresolved_schema.watermark or self._watermark
        self._key = unresolved_schema.key or self._key
        return self

    def from_resolved_schema(self, resolved_schema: ResolvedSchema) -> SchemaBuilder:
        """Add the columns of a resolved schema."""
        return self.from_fields(resolved_schema.get_column_names(), resolved_schema.get_column_data_types())

    def from_row_data_type(self, data_type: DataType) -> SchemaBuilder:
        """Add the fields of a ROW as columns."""
        return self.from_fields([field.name for field in data_type.fields], [field.type for field in data_type.fields])

    def from_fields(self, field_names: Sequence[str], field_data_types: Sequence[DataType | str]) -> SchemaBuilder:
        """Add physical columns.

        Raises:
            InvalidTypesError: there are more names than types, or fewer.
        """
        if len(field_names) != len(field_data_types):
            problem = f"{len(field_names)} names for {len(field_data_types)} types"
            raise InvalidTypesError(problem, "give each column a name and a type")
        for name, kind in zip(field_names, field_data_types, strict=True):
            self.column(name, kind)
        return self

    def column_by_expression(self, column_name: str, expr: str | Expression[Any]) -> SchemaBuilder:
        """Add a column computed from others, by an expression of SQL or of Python."""
        return self._add(ColumnDefinition(column_name, computed=_text(expr)))

    def column_by_metadata(
        self, column_name: str, data_type: DataType | str, metadata_key: str | None = None, is_virtual: bool = False
    ) -> SchemaBuilder:
        """Add a column that the connector knows beside the row."""
        key = metadata_key or column_name
        return self._add(ColumnDefinition(column_name, _type(data_type), metadata=key, is_virtual=is_virtual))

    def watermark(self, column_name: str, watermark_expr: str | Expression[Any]) -> SchemaBuilder:
        """Declare the time column, and its watermark by an expression of SQL or of Python."""
        self._watermark = column_name, _text(watermark_expr)
        return self

    def primary_key(self, *column_names: str) -> SchemaBuilder:
        """Declare the columns that identify rows; uniqueness is not enforced."""
        self._key = column_names
        return self

    def primary_key_named(self, constraint_name: str, *column_names: str) -> SchemaBuilder:
        """Declare the same; the name of the constraint has no use."""
        return self.primary_key(*column_names)

    def build(self) -> Schema:
        """Return the schema."""
        keyed = tuple(
            ColumnDefinition(column.name, column.type.not_null())
            if column.name in self._key and column.type is not None
            else column
            for column in self._columns
        )
        return Schema(keyed, self._watermark, self._key)

    def _add(self, column: ColumnDefinition) -> SchemaBuilder:
        if column.name in [other.name for other in self._columns]:
            raise InvalidTypesError(f"two columns are named {column.name!r}", "give it another name")
        self._columns.append(column)
        return self


Schema.Builder = SchemaBuilder  # type: ignore[attr-defined]


def _text(expression: str | Expression[Any]) -> str:
    if isinstance(expression, str):
        return expression
    from .dsl.rendering import text_of  # slow: it loads sqlglot

    return text_of(expression)


def _type(data_type: DataType | str) -> DataType:
    if isinstance(data_type, DataType):
        return data_type
    if not isinstance(data_type, str):
        raise InvalidTypesError(f"{data_type!r} is not a data type", "make one with DataTypes, or write it as a string")
    from .parsing.statement_parser import StatementParser  # slow: it loads sqlglot

    parsed: DataType = (parser := StatementParser(data_type)).whole(parser.parsed_type)
    return parsed


@dataclass(frozen=True)
class FormatDescriptor:
    """A format with its options; made by `FormatDescriptor.for_format(name)`."""

    format: str
    options: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def for_format(format: str) -> FormatDescriptorBuilder:
        """Return a builder of a format."""
        return FormatDescriptorBuilder(format)

    def get_format(self) -> str:
        """Return its name."""
        return self.format

    def get_options(self) -> dict[str, str]:
        """Return its options."""
        return dict(self.options)


class FormatDescriptorBuilder:
    """Builds a `FormatDescriptor`."""

    def __init__(self, format: str) -> None:
        self._format, self._options = format, dict[str, str]()

    def option(self, key: Any, value: Any) -> FormatDescriptorBuilder:
        """Set an option, whose key has no name of the format before it."""
        self._options[getattr(key, "key", key)] = str(value)
        return self

    def build(self) -> FormatDescriptor:
        """Return the format."""
        return FormatDescriptor(self._format, dict(self._options))


@dataclass(frozen=True)
class TableDescriptor:
    """A table of a connector; made by `TableDescriptor.for_connector(name)`."""

    definition: TableDefinition

    @staticmethod
    def for_connector(connector: str) -> TableDescriptorBuilder:
        """Return a builder of a table."""
        return TableDescriptorBuilder(connector)

    def get_schema(self) -> Schema:
        """Return its columns."""
        return Schema(self.definition.columns, self.definition.watermark, self.definition.primary_key)

    def get_options(self) -> dict[str, str]:
        """Return its options."""
        return dict(self.definition.options)

    def get_partition_keys(self) -> list[str]:
        """Return the columns by which it is divided."""
        return list(self.definition.partition_keys)

    def get_comment(self) -> str | None:
        """Return the comment; None: there is none."""
        return self.definition.comment


class TableDescriptorBuilder:
    """Builds a `TableDescriptor`; each call returns the builder."""

    def __init__(self, connector: str) -> None:
        self._options: dict[str, str] = {"connector": connector}
        self._schema, self._partition, self._comment = Schema(), (), None  # type: tuple[Any, Any, Any]

    def schema(self, schema: Schema) -> TableDescriptorBuilder:
        """Set the columns."""
        self._schema = schema
        return self

    def option(self, key: Any, value: Any) -> TableDescriptorBuilder:
        """Set an option of the connector."""
        self._options[getattr(key, "key", key)] = str(value)
        return self

    def format(self, format: str | FormatDescriptor, format_option: Any = None) -> TableDescriptorBuilder:
        """Set the format of the files or messages."""
        descriptor = format if isinstance(format, FormatDescriptor) else FormatDescriptor(format)
        self._options["format"] = descriptor.format
        self._options.update({f"{descriptor.format}.{key}": value for key, value in descriptor.options.items()})
        return self

    def partitioned_by(self, *partition_keys: str) -> TableDescriptorBuilder:
        """Set the columns by which the table is divided."""
        self._partition = partition_keys
        return self

    def comment(self, comment: str) -> TableDescriptorBuilder:
        """Set the comment."""
        self._comment = comment
        return self

    def build(self) -> TableDescriptor:
        """Return the table."""
        schema = self._schema
        return TableDescriptor(
            TableDefinition(
                schema.columns, schema.watermark, schema.key, self._partition, dict(self._options), self._comment
            )
        )


FormatDescriptor.Builder = FormatDescriptorBuilder  # type: ignore[attr-defined]
TableDescriptor.Builder = TableDescriptorBuilder  # type: ignore[attr-defined]
