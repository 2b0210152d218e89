"""The columns of a table, written in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rayflink.common.configuration import shown_value
from rayflink.common.errors import InvalidTypesError

from .definitions import ColumnDefinition, TableDefinition, quote_string, quoted
from .types import DataType

if TYPE_CHECKING:
    from rayflink.common.config_options import ConfigOption

    from .expression import Expression
    from .resolved_schema import ResolvedSchema

__all__ = ["FormatDescriptor", "Schema", "TableDescriptor"]


@dataclass(frozen=True)
class Schema:
    """Columns, a watermark and a key; made by `Schema.new_builder()`.

    >>> from rayflink.table.types import DataTypes
    >>> schema = Schema.new_builder().column("ts", DataTypes.TIMESTAMP(3)).watermark("ts", "ts - INTERVAL '1' SECOND")
    >>> print(schema.build())
    (
      `ts` TIMESTAMP(3),
      WATERMARK FOR `ts` AS [ts - INTERVAL '1' SECOND]
    )

    Args:
        key_name: what the key's constraint is called; "": as its columns are.
        written: name of a column -> its type, where that was given as a string.
    """

    columns: tuple[ColumnDefinition, ...] = ()
    watermark: tuple[str, str] | None = None
    key: tuple[str, ...] = ()
    key_name: str = ""
    written: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    def __str__(self) -> str:
        """Return the columns as Flink's Schema prints them: expressions and types given as strings in brackets."""
        lines = [self._line(column) for column in self.columns]
        if self.watermark is not None:
            lines.append(f"WATERMARK FOR {quoted(self.watermark[0])} AS [{self.watermark[1]}]")
        if self.key:
            name = self.key_name or f"PK_{'_'.join(self.key)}"
            key = ", ".join(map(quoted, self.key))
            lines.append(f"CONSTRAINT {quoted(name)} PRIMARY KEY ({key}) NOT ENFORCED")
        return "(\n" + ",\n".join(f"  {line}" for line in lines) + "\n)"

    def _line(self, column: ColumnDefinition) -> str:
        if column.computed is not None:
            return str(replace(column, computed=f"[{column.computed}]"))
        text = self.written.get(column.name)
        if text is None:
            return str(column)
        return str(column).replace(f"{quoted(column.name)} {column.type}", f"{quoted(column.name)} [{text}]", 1)

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
        self._key_name = ""
        self._written: dict[str, str] = {}

    def column(self, column_name: str, data_type: DataType | str) -> SchemaBuilder:
        """Add a physical column; its type may be a text, such as "DECIMAL(10, 2)"."""
        return self._add(ColumnDefinition(column_name, self._type(column_name, data_type)))

    def from_schema(self, unresolved_schema: Schema) -> SchemaBuilder:
        """Add the columns of another schema, and take its watermark and its key where it has them."""
        for column in unresolved_schema.columns:
            self._add(column)
        self._watermark = unresolved_schema.watermark or self._watermark
        self._written.update(unresolved_schema.written)
        if unresolved_schema.key:
            self._key, self._key_name = unresolved_schema.key, unresolved_schema.key_name
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
        kind = self._type(column_name, data_type)
        return self._add(ColumnDefinition(column_name, kind, metadata=key, is_virtual=is_virtual))

    def watermark(self, column_name: str, watermark_expr: str | Expression[Any]) -> SchemaBuilder:
        """Declare the time column, and its watermark by an expression of SQL or of Python."""
        self._watermark = column_name, _text(watermark_expr)
        return self

    def primary_key(self, *column_names: str) -> SchemaBuilder:
        """Declare the columns that identify rows; uniqueness is not enforced."""
        self._key, self._key_name = column_names, ""
        return self

    def primary_key_named(self, constraint_name: str, *column_names: str) -> SchemaBuilder:
        """Declare the same, under a name that has no use but to be shown."""
        self._key, self._key_name = column_names, constraint_name
        return self

    def build(self) -> Schema:
        """Return the schema."""
        keyed = tuple(
            ColumnDefinition(column.name, column.type.not_null())
            if column.name in self._key and column.type is not None
            else column
            for column in self._columns
        )
        return Schema(keyed, self._watermark, self._key, self._key_name, dict(self._written))

    def _type(self, column_name: str, data_type: DataType | str) -> DataType:
        if isinstance(data_type, str):
            self._written[column_name] = data_type
        return _type(data_type)

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


def _key_of(option: ConfigOption[Any] | str) -> str:
    return option if isinstance(option, str) else option.key


def _text_of(option: ConfigOption[Any] | str, value: object) -> str:
    """Return the value of an option as DDL writes it: `true`, not `True`.

    Raises:
        ConfigError: the option does not take it.
    """
    if not isinstance(option, str):
        return option.type.write(option.read(value))
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class FormatDescriptor:
    """A format with its options; made by `FormatDescriptor.for_format(name)`."""

    format: str
    options: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def for_format(format: str) -> FormatDescriptorBuilder:
        """Return a builder of a format."""
        return FormatDescriptorBuilder(format)

    def __str__(self) -> str:
        """Return its name and its options, as Flink's descriptor prints itself: `csv[{null-literal=-}]`."""
        return f"{self.format}[{{{', '.join(f'{key}={value}' for key, value in self.options.items())}}}]"

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

    def option(self, key: ConfigOption[Any] | str, value: object) -> FormatDescriptorBuilder:
        """Set an option, whose key has no name of the format before it."""
        self._options[_key_of(key)] = _text_of(key, value)
        return self

    def build(self) -> FormatDescriptor:
        """Return the format."""
        return FormatDescriptor(self._format, dict(self._options))


@dataclass(frozen=True)
class TableDescriptor:
    """A table of a connector; made by `TableDescriptor.for_connector(name)`."""

    definition: TableDefinition
    schema: Schema | None = None

    @staticmethod
    def for_connector(connector: str) -> TableDescriptorBuilder:
        """Return a builder of a table."""
        return TableDescriptorBuilder(connector)

    def __str__(self) -> str:
        """Return what follows the name in a CREATE TABLE, with the columns as `Schema` prints them."""
        lines = [str(self.schema)] if self.schema is not None else []
        if self.definition.comment is not None:
            lines.append(f"COMMENT {quote_string(self.definition.comment)}")
        if self.definition.partition_keys:
            lines.append(f"PARTITIONED BY ({', '.join(map(quoted, self.definition.partition_keys))})")
        options = [
            f"  {quote_string(key)} = {quote_string(shown_value(key, value))}"
            for key, value in self.definition.options.items()
        ]
        return "\n".join([*lines, "WITH (", ",\n".join(options), ")"])

    def get_schema(self) -> Schema | None:
        """Return its columns; None: it was given none."""
        return self.schema

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
        self._schema: Schema | None = None
        self._partition: tuple[str, ...] = ()
        self._comment: str | None = None

    def schema(self, schema: Schema) -> TableDescriptorBuilder:
        """Set the columns."""
        self._schema = schema
        return self

    def option(self, key: ConfigOption[Any] | str, value: object) -> TableDescriptorBuilder:
        """Set an option of the connector."""
        self._options[_key_of(key)] = _text_of(key, value)
        return self

    def format(
        self, format: str | FormatDescriptor, format_option: ConfigOption[str] | str | None = None
    ) -> TableDescriptorBuilder:
        """Set the format of its files or messages.

        Args:
            format_option: the option that says it, for a connector with several: `key.format`, say; None: `format`.

        Raises:
            InvalidTypesError: the option is neither `format` nor ends with `.format`.
        """
        descriptor = format if isinstance(format, FormatDescriptor) else FormatDescriptor(format)
        option = _key_of(format_option) if format_option is not None else "format"
        if option != "format" and not option.endswith(".format"):
            problem = f"{option!r} is no option for a format"
            raise InvalidTypesError(problem, "give 'format', or one that ends with '.format'")
        prefix = option.removesuffix("format") + descriptor.format
        self._options[option] = descriptor.format
        self._options.update({f"{prefix}.{key}": value for key, value in descriptor.options.items()})
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
        schema = self._schema or Schema()
        definition = TableDefinition(
            schema.columns, schema.watermark, schema.key, self._partition, dict(self._options), self._comment
        )
        return TableDescriptor(definition, self._schema)


FormatDescriptor.Builder = FormatDescriptorBuilder  # type: ignore[attr-defined]
TableDescriptor.Builder = TableDescriptorBuilder  # type: ignore[attr-defined]
