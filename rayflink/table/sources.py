"""Sources of tables as objects, as Flink 1.x had them; newer programs describe a table by `TableDescriptor`."""

from __future__ import annotations

from collections.abc import Iterable

from .errors import SqlError
from .schema import Schema, TableDescriptor
from .types import DataType


class TableSource:
    """A source as an object; `CsvTableSource` is the only kind."""

    descriptor: TableDescriptor
    """The same as a table of the connector 'filesystem'."""


class CsvTableSource(TableSource):
    """The rows of a CSV file, or of all files in a folder.

    >>> from rayflink.table.types import DataTypes
    >>> source = CsvTableSource("in.csv", ["a", "b"], [DataTypes.INT(), DataTypes.STRING()], field_delim="|")
    >>> source.descriptor.get_options()["csv.field-delimiter"]
    '|'

    Args:
        source_path: of the file or folder.
        field_names: of the columns, in their order.
        field_types: of the columns.
        field_delim: one character; None: a comma.
        line_delim: None or a line feed: no other is supported.
        quote_character: around strings; None: there is none.
        ignore_first_line: not supported.
        ignore_comments: "#": lines that begin so are left out; None: none are. No other is supported.
        lenient: values that cannot be read are NULL, and what is no row is left out, as `csv.ignore-parse-errors`
            says; else they fail the job. Flink 1.x left all of such a row out.
        empty_column_as_null: an empty text is NULL.

    Raises:
        SqlError: something of this is not supported, or there are more names than types, or fewer.
    """

    def __init__(
        self, source_path: str, field_names: Iterable[str], field_types: Iterable[DataType],
        field_delim: str | None = None, line_delim: str | None = None, quote_character: str | None = None,
        ignore_first_line: bool | None = None, ignore_comments: str | None = None, lenient: bool | None = None,
        empty_column_as_null: bool | None = None,
    ) -> None:  # fmt: skip
        if line_delim not in (None, "\n"):
            raise SqlError(f"CsvTableSource with line_delim={line_delim!r}", "end lines with a line feed")
        if ignore_first_line:
            raise SqlError("CsvTableSource with ignore_first_line", "remove the line of names from the file")
        if ignore_comments not in (None, "#"):
            raise SqlError(f"CsvTableSource with ignore_comments={ignore_comments!r}", "let comments begin with '#'")
        options = {"csv.field-delimiter": field_delim, "csv.quote-character": quote_character}
        chosen = {key: value for key, value in options.items() if value is not None}
        flags = {
            "csv.disable-quote-character": quote_character is None, "csv.allow-comments": ignore_comments,
            "csv.ignore-parse-errors": lenient,
        }  # fmt: skip
        chosen.update({key: "true" for key, is_set in flags.items() if is_set})
        if empty_column_as_null:
            chosen["csv.null-literal"] = ""
        self.descriptor = csv_table(source_path, field_names, field_types, chosen)
        """The same as a table of the connector 'filesystem'."""


def csv_table(
    path: str, field_names: Iterable[str], field_types: Iterable[DataType], options: dict[str, str]
) -> TableDescriptor:
    """Return a table of CSV files.

    Raises:
        SqlError: there are more names than types, or fewer.
    """
    names, types = list(field_names), list(field_types)
    if len(names) != len(types):
        raise SqlError(f"{len(names)} names for {len(types)} types", "give each column a name and a type")
    builder = TableDescriptor.for_connector("filesystem").format("csv").option("path", path)
    for key, value in options.items():
        builder = builder.option(key, value)
    return builder.schema(Schema.new_builder().from_fields(names, types).build()).build()


__all__ = ["CsvTableSource", "TableSource", "csv_table"]
