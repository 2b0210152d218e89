"""PyFlink's CSV schema: columns, their types and what the characters mean; reads and writes files by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any

from rayflink.common.data_types.composite_types import ListTypeInfo, RowTypeInfo
from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.records.arrow_types import ArrowTyped, to_arrow_type, type_info_of
from rayflink.common.records.batches import Batch, RowBatch, rows_of
from rayflink.common.records.csv_marks import CsvMarks
from rayflink.common.records.csv_rows import field_of
from rayflink.common.serialization import BulkWriter, RowDataBulkWriterFactory
from rayflink.common.typeinfo import Types
from rayflink.user_types import UserRecord

from .csv_dialect import CsvDialect
from .csv_files import CsvFormat
from .csv_writing import record_fields

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class CsvSchema:
    """Columns of CSV files; made by `CsvSchema.builder()`.

    Args:
        row_type: names and types.
        marks: what the characters mean.
        separators: column -> text between its elements, where it is not that of `marks`.
        header: what the first line is: see `CsvFormat`.
        columns: names and Arrow types.
    """

    row_type: RowTypeInfo
    marks: CsvMarks
    separators: Mapping[str, str]
    header: str
    columns: pyarrow.Schema

    @staticmethod
    def builder() -> CsvSchemaBuilder:
        """Return a builder without columns."""
        return CsvSchemaBuilder()

    def get_type_info(self) -> RowTypeInfo:
        """Return the type of the records: `Types.ROW_NAMED` of the columns."""
        return self.row_type

    def size(self) -> int:
        """Return the number of columns."""
        return len(self.row_type.get_field_names())

    def __len__(self) -> int:
        return self.size()

    def separator_of(self, name: str) -> str:
        """Return the string between the elements of a column."""
        return self.separators.get(name, self.marks.elements)


class CsvSchemaBuilder:
    """Collects columns, and what the characters mean."""

    def __init__(self) -> None:
        self._fields: list[tuple[str, TypeInformation, pyarrow.DataType]] = []
        self._marks = CsvMarks()
        self._separators: dict[str, str] = {}
        self._skips = self._is_strict = self._has_header = False

    def build(self) -> CsvSchema:
        """Return the schema.

        Raises:
            ValueError: there are no columns, or two of one name.
        """
        import pyarrow

        names = [name for name, _, _ in self._fields]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"columns with different names are wanted, found {names}; call add_..._column(name)")
        header = "skipped" if self._skips else "none"
        if self._has_header:
            header = "same" if self._is_strict else "unread"
        row_type = Types.ROW_NAMED(names, [kind for _, kind, _ in self._fields])
        columns = pyarrow.schema([(name, arrow) for name, _, arrow in self._fields])
        return CsvSchema(row_type, self._marks, dict(self._separators), header, columns)

    def add_array_column(
        self, name: str, separator: str = ";", element_type: TypeInformation | ArrowTyped | None = None
    ) -> CsvSchemaBuilder:
        """Add a column of lists.

        Args:
            name: of the column.
            separator: text between the elements.
            element_type: their basic type, of `Types` or `DataTypes`; None: strings.

        Raises:
            InvalidTypesError: CSV has no form of it.
        """
        import pyarrow

        kind = Types.STRING() if element_type is None else element_type
        self._separators[name] = separator
        self._fields.append((name, Types.LIST(type_info_of(kind)), pyarrow.list_(to_arrow_type(kind))))
        return self

    def add_boolean_column(self, name: str) -> CsvSchemaBuilder:
        """Add a column of `true` or `false`."""
        return self._column(name, Types.BOOLEAN())

    def add_number_column(self, name: str, number_type: TypeInformation | ArrowTyped | None = None) -> CsvSchemaBuilder:
        """Add a column of numbers.

        Args:
            name: of the column.
            number_type: of `Types` or `DataTypes`: BIGINT where none is given. `DataTypes.DECIMAL(10, 2)` has that many
                digits; `Types.BIG_DEC()` has 38, 18 of them behind the point.

        Raises:
            InvalidTypesError: CSV has no form of it.
        """
        return self._column(name, Types.LONG() if number_type is None else number_type)

    def add_string_column(self, name: str) -> CsvSchemaBuilder:
        """Add a column of strings."""
        return self._column(name, Types.STRING())

    def add_columns_from(self, schema: CsvSchema) -> CsvSchemaBuilder:
        """Add the columns of another schema."""
        self._fields += zip(schema.columns.names, schema.row_type.get_field_types(), schema.columns.types, strict=True)
        self._separators.update(schema.separators)
        return self

    def clear_columns(self) -> CsvSchemaBuilder:
        """Forget all columns."""
        self._fields.clear()
        self._separators.clear()
        return self

    def set_allow_comments(self, allow: bool = True) -> CsvSchemaBuilder:
        """Skip lines that begin with `#`."""
        return self._with(comments=allow)

    def set_any_property_name(self, name: str) -> CsvSchemaBuilder:
        """Refuse columns of any name: every column has a name and a type.

        Raises:
            ValueError: always.
        """
        raise ValueError(f"columns beyond those named ({name!r} for any other) are not read; add a column for each")

    def disable_array_element_separator(self) -> CsvSchemaBuilder:
        """Read lists as one element, the whole string."""
        return self._with(elements="")

    def remove_array_element_separator(self, index: int) -> CsvSchemaBuilder:
        """Read the list at this position as one element, the whole string."""
        self._separators[self._fields[index][0]] = ""
        return self

    def set_array_element_separator(self, separator: str) -> CsvSchemaBuilder:
        """Set the string between the elements of lists that have none of their own."""
        return self._with(elements=separator)

    def set_column_separator(self, char: str) -> CsvSchemaBuilder:
        """Set the one character between columns."""
        return self._with(delimiter=_single(char, "Column separator"))

    def disable_escape_char(self) -> CsvSchemaBuilder:
        """Use no escape character; the default."""
        return self._with(escape=None)

    def set_escape_char(self, char: str) -> CsvSchemaBuilder:
        """Set the one character that escapes the next."""
        return self._with(escape=_single(char, "Escape char"))

    def set_line_separator(self, separator: str) -> CsvSchemaBuilder:
        """Set the string after lines that are written; read lines end with `\\n` or `\\r\\n`."""
        return self._with(line_end=separator)

    def set_null_value(self, null_value: str) -> CsvSchemaBuilder:
        """Set the string for None; by default the empty string."""
        return self._with(null=null_value)

    def disable_quote_char(self) -> CsvSchemaBuilder:
        """Use no quotes around values."""
        return self._with(quote=None)

    def set_quote_char(self, char: str) -> CsvSchemaBuilder:
        """Set the one quote character around values."""
        return self._with(quote=_single(char, "Quote char"))

    def set_skip_first_data_row(self, skip: bool = True) -> CsvSchemaBuilder:
        """Skip the first line of data: it is no record."""
        self._skips = skip
        return self

    def set_strict_headers(self, strict: bool = True) -> CsvSchemaBuilder:
        """Require a header that names the columns of the schema in its order."""
        self._is_strict = strict
        return self

    def set_use_header(self, use: bool = True) -> CsvSchemaBuilder:
        """Begin files with a line of names, which is written; without strict headers it is passed over when read."""
        self._has_header = use
        return self

    def size(self) -> int:
        """Return the number of columns so far."""
        return len(self._fields)

    def __len__(self) -> int:
        return self.size()

    def _column(self, name: str, kind: TypeInformation | ArrowTyped) -> CsvSchemaBuilder:
        self._fields.append((name, type_info_of(kind), to_arrow_type(kind)))
        return self

    def _with(self, **chosen: Any) -> CsvSchemaBuilder:
        self._marks = replace(self._marks, **chosen)
        return self


@dataclass(frozen=True)
class CsvReaderFormat(CsvFormat):
    """CSV files by a schema, as columns which row functions see as `Row` objects.

    Values may hold line ends within quotes, so each file is read by one reader; `CsvFileSource` divides files.
    """

    row_type: RowTypeInfo | None = None
    """The type of the records."""

    @property
    def produced_type(self) -> TypeInformation | None:
        return self.row_type

    @staticmethod
    def for_schema(schema: CsvSchema) -> CsvReaderFormat:
        """Return a format of the schema's columns."""
        marks = schema.marks
        lists = {name: schema.separator_of(name) for name in _lists_of(schema)}
        dialect = CsvDialect(
            marks.delimiter, (marks.null,), marks.quote is not None, marks.quote, marks.escape, marks.comments, lists
        )
        return CsvReaderFormat(schema.columns, dialect, schema.header, row_type=schema.row_type)


class CsvBulkWriters:
    """Makes writers of CSV files."""

    @staticmethod
    def for_schema(schema: CsvSchema) -> RowDataBulkWriterFactory:
        """Return a factory for rows of a schema; files begin with a header where the schema uses one."""
        return _CsvFactory(schema)


class _CsvFactory(RowDataBulkWriterFactory):
    def __init__(self, schema: CsvSchema) -> None:
        super().__init__(schema.row_type)
        self._schema = schema

    def create(self, file: IO[bytes]) -> BulkWriter:
        return _CsvWriter(file, self._schema)


class _CsvWriter(BulkWriter):
    def __init__(self, file: IO[bytes], schema: CsvSchema) -> None:
        import pyarrow

        self._file = file
        self._names = schema.row_type.get_field_names()
        self._type = schema.row_type
        self._marks = [replace(schema.marks, elements=schema.separator_of(name)) for name in self._names]
        self._kinds = list(zip(schema.row_type.get_field_types(), self._marks, strict=True))
        self._decimals = [index for index, field in enumerate(schema.columns) if pyarrow.types.is_decimal(field.type)]
        self._columns = schema.columns
        if schema.header in ("same", "unread"):
            file.write(schema.marks.line_of(map(schema.marks.quoted, self._names)).encode("utf-8"))

    def add_element(self, element: UserRecord) -> None:
        self.add_batch(RowBatch([element]))

    def add_batch(self, batch: Batch) -> None:
        lines = []
        for record in rows_of(batch):
            row = self._type.convert(record_fields(record, self._names), "record to write as CSV")
            self._ensure_digits(row)
            fields = (field_of(value, *kind, strips_zeros=True) for value, kind in zip(row, self._kinds, strict=True))
            lines.append(self._marks[0].line_of(fields))
        self._file.write("".join(lines).encode("utf-8"))

    def _ensure_digits(self, row: UserRecord) -> None:
        """Check that decimals have no more digits than their columns.

        Raises:
            ValueError: one has.
        """
        import pyarrow

        for index in self._decimals:
            try:
                pyarrow.scalar(row[index], self._columns.types[index])
            except pyarrow.ArrowInvalid as error:
                problem = (
                    f"field {self._names[index]}: {row[index]} does not fit {self._columns.types[index]} ({error})"
                )
                raise ValueError(f"{problem}; round it in a map() before, or declare more digits") from error

    def finish(self) -> None:
        pass  # every batch is in the file already


def _lists_of(schema: CsvSchema) -> list[str]:
    pairs = zip(schema.row_type.get_field_names(), schema.row_type.get_field_types(), strict=True)
    return [name for name, kind in pairs if isinstance(kind, ListTypeInfo)]


def _single(char: str, called: str) -> str:
    if len(char) != 1:
        raise ValueError(f"{called} must be a single char, found {char}")
    return char


__all__ = ["CsvBulkWriters", "CsvReaderFormat", "CsvSchema", "CsvSchemaBuilder"]
