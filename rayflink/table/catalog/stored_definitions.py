"""Objects of catalogs as JSON, which other processes and later versions read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from rayflink.common.errors import assert_never

from ..definitions import ColumnDefinition, TableDefinition, ViewDefinition
from ..parsing.statement_parser import parse_type
from ..schema import Schema
from .catalog_objects import CatalogBaseTable, CatalogDatabase, CatalogFunction, CatalogModel, Definition
from .described import Described
from .exceptions import CatalogException
from .partitions import CatalogPartition
from .table_statistics import CatalogColumnStatistics, CatalogTableStatistics

__all__ = ["StoredObject", "decode", "encode"]

Fields: TypeAlias = Mapping[str, Any]
"""What JSON has of an object."""
StoredObject: TypeAlias = (
    CatalogDatabase
    | CatalogBaseTable
    | CatalogFunction
    | CatalogModel
    | CatalogPartition
    | CatalogTableStatistics
    | CatalogColumnStatistics
)
"""An object of a catalog."""
VERSION = 1
"""Of the form. A version that is higher was written by a later version of rayflink."""


def encode(value: StoredObject) -> str:
    """Return an object of a catalog as JSON.

    >>> encode(CatalogDatabase({"owner": "sales"}))
    '{"kind": "database", "properties": {"owner": "sales"}, "version": 1}'

    Raises:
        CatalogException: it is bound to this program: a table over a stream or rows in memory, a view of a `Table`.
    """
    kind, all_fields = _kind_and_fields(value)
    fields = {name: field for name, field in all_fields.items() if field not in (None, "", [], {}, False)}
    return json.dumps({**fields, "kind": kind, "version": VERSION}, sort_keys=True, ensure_ascii=False)


def decode(text: str) -> StoredObject:
    """Return the object that `encode` wrote.

    Raises:
        CatalogException: it was written by a later version, or is damaged.
    """
    try:
        fields = json.loads(text)
        version, kind = int(fields["version"]), str(fields["kind"])
    except (ValueError, TypeError, KeyError) as error:
        raise _damaged(error) from error
    if version > VERSION or kind not in _READERS:
        problem = f"a stored object of kind {kind!r} has the version {version}, and {VERSION} is the newest known"
        raise CatalogException(problem, "use the version of rayflink that wrote it, or a later one")
    try:
        return _READERS[kind](fields)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise _damaged(error) from error


def _damaged(error: Exception) -> CatalogException:
    return CatalogException(f"a stored object cannot be read: {error!r}", "restore the catalog's storage")


def _columns(columns: Sequence[ColumnDefinition]) -> list[Fields]:
    return [
        {
            key: value
            for key, value in (
                ("name", column.name), ("type", None if column.type is None else str(column.type)),
                ("computed", column.computed), ("metadata", column.metadata), ("virtual", column.is_virtual),
                ("comment", column.comment),
            )
            if value not in (None, False)
        }
        for column in columns
    ]  # fmt: skip


def _column(fields: Fields) -> ColumnDefinition:
    written = fields.get("type")
    return ColumnDefinition(
        fields["name"], None if written is None else parse_type(written), fields.get("computed"),
        fields.get("metadata"), fields.get("virtual", False), fields.get("comment"),
    )  # fmt: skip


def _all_columns(columns: Sequence[Fields]) -> tuple[ColumnDefinition, ...]:
    return tuple(map(_column, columns))


def _table_fields(table: CatalogBaseTable) -> Fields:
    definition = table.definition
    if isinstance(definition, ViewDefinition):
        if definition.relation is not None:
            problem = "a view of a Table, which is a plan in this program, cannot be stored"
            raise CatalogException(problem, "create it by CREATE VIEW, or with create_temporary_view()")
        return {
            "view": True, "query": definition.text, "original": definition.original,
            "names": list(definition.columns), "selected": list(definition.selected), "home": list(definition.home),
            "columns": _columns(definition.types), "options": dict(definition.options), "comment": definition.comment,
        }  # fmt: skip
    if definition.connected is not None:
        problem = "a table over a stream or over rows of this program cannot be stored"
        raise CatalogException(problem, "write the rows to a table with a connector, or name it as a temporary view")
    return {
        "columns": _columns(definition.columns), "watermark": definition.watermark and list(definition.watermark),
        "primary_key": list(definition.primary_key), "partition_keys": list(definition.partition_keys),
        "options": dict(definition.options), "comment": definition.comment,
    }  # fmt: skip


def _table(fields: Fields) -> CatalogBaseTable:
    columns, options = _all_columns(fields.get("columns", ())), dict(fields.get("options", {}))
    if not all(isinstance(text, str) for text in [*options, *options.values(), *(column.name for column in columns)]):
        raise TypeError(f"found names or options of {fields!r:.200} that are no strings")
    definition: Definition
    if fields.get("view"):
        home = fields.get("home") or ("", "")
        definition = ViewDefinition(
            fields["query"], tuple(fields.get("names", ())), fields.get("comment"),
            selected=tuple(fields.get("selected", ())), home=(home[0], home[1]),
            original=fields.get("original", ""), types=columns, options=options,
        )  # fmt: skip
    else:
        watermark = fields.get("watermark")
        definition = TableDefinition(
            columns, None if watermark is None else (watermark[0], watermark[1]),
            tuple(fields.get("primary_key", ())), tuple(fields.get("partition_keys", ())), options,
            fields.get("comment"),
        )  # fmt: skip
    return CatalogBaseTable(definition)


def _described(value: Described) -> Fields:
    return {"properties": value.get_properties(), "comment": value.get_description()}


def _model(fields: Fields) -> CatalogModel:
    input_schema, output_schema = (Schema(_all_columns(fields.get(name, ()))) for name in ("input", "output"))
    return CatalogModel(input_schema, output_schema, fields.get("options", {}), fields.get("comment"))


def _kind_and_fields(value: StoredObject) -> tuple[str, Fields]:
    match value:
        case CatalogBaseTable():
            return "table", _table_fields(value)
        case CatalogDatabase():
            return "database", _described(value)
        case CatalogPartition():
            return "partition", _described(value)
        case CatalogFunction():
            language, options = value.get_function_language(), value.get_options()
            return "function", {"class": value.get_class_name(), "language": language, "options": options}
        case CatalogModel():
            return "model", {
                "input": _columns(value.get_input_schema().columns),
                "output": _columns(value.get_output_schema().columns),
                "options": value.get_options(), "comment": value.get_comment(),
            }  # fmt: skip
        case CatalogTableStatistics():
            return "table_statistics", {
                "rows": value.row_count, "files": value.field_count, "bytes": value.total_size,
                "raw_bytes": value.raw_data_size, "properties": value.get_properties(),
            }  # fmt: skip
        case CatalogColumnStatistics():
            columns = value.get_column_statistics_data()
            return "column_statistics", {"columns": columns, "properties": value.get_properties()}
        case _:
            assert_never(value)


_READERS: dict[str, Callable[[Fields], StoredObject]] = {
    "database": lambda fields: CatalogDatabase(fields.get("properties", {}), fields.get("comment")),
    "table": _table,
    "function": lambda fields: CatalogFunction(fields["class"], fields["language"], fields.get("options")),
    "model": _model,
    "partition": lambda fields: CatalogPartition(fields.get("properties", {}), fields.get("comment")),
    "table_statistics": lambda fields: CatalogTableStatistics(
        fields.get("rows", 0), fields.get("files", 0), fields.get("bytes", 0), fields.get("raw_bytes", 0),
        fields.get("properties", {}),
    ),  # fmt: skip
    "column_statistics": lambda fields: CatalogColumnStatistics(
        fields.get("columns", {}), fields.get("properties", {})
    ),
}
"""Kind -> the object of its fields."""
