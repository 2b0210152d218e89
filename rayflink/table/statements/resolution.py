"""Resolves a table's definition to the relation that reads it, and checks a definition when it is made."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..binding.expressions import ExpressionBinder
from ..binding.scope import Scope
from ..connectors.connector_registry import connector
from ..connectors.contract import Connected
from ..connectors.legacy_options import current_options
from ..definitions import ColumnDefinition, Path, TableDefinition
from ..errors import SqlError, nearest
from ..parsing.statement_parser import parse_expression
from ..parsing.statements import ColumnOf, CreateTable
from ..plan.logical import Attribute, Project, Relation, Scan, TimePart, WatermarkAssigner
from ..plan.typed import Expr, Literal, Place


def definition(statement: CreateTable, text: str, inherited: Sequence[str] = ()) -> TableDefinition:
    """Return a table as CREATE TABLE defines it.

    Args:
        inherited: names of columns of the table that it is LIKE.

    Raises:
        SqlError: two columns have one name, or a key or watermark names none.
    """
    columns = tuple(_column(column, text) for column in statement.columns)
    names = [column.name for column in columns]
    for index, column in enumerate(statement.columns):
        if column.name in names[:index]:
            raise SqlError(f"a second column {column.name!r}", "give it another name", text, column.place)
    names += [name for name in inherited if name not in names]
    for key in (*statement.primary_key, *statement.partition_keys):
        if key not in names:
            problem = f"there is no column {key!r}{nearest(key, names)}"
            raise SqlError(problem, f"the columns are {', '.join(names)}", text, statement.place)
    watermark = None
    if statement.watermark is not None:
        time = ".".join(statement.watermark.column)
        if time not in names:
            problem = f"WATERMARK FOR {time!r}, which is no column{nearest(time, names)}"
            raise SqlError(problem, f"the columns are {', '.join(names)}", text, statement.watermark.place)
        watermark = time, _text_of(statement.watermark.expression, text)
    columns = tuple(key_column(column, statement.primary_key) for column in columns)
    return TableDefinition(
        columns, watermark, statement.primary_key, statement.partition_keys, dict(statement.options), statement.comment
    )


def key_column(column: ColumnDefinition, key: tuple[str, ...]) -> ColumnDefinition:
    """Return a column as it is in a table with a primary key, whose columns are never NULL."""
    if column.name not in key or column.type is None:
        return column
    return ColumnDefinition(
        column.name, column.type.not_null(), None, column.metadata, column.is_virtual, column.comment
    )


def _column(statement: ColumnOf, text: str) -> ColumnDefinition:
    computed = None if statement.computed is None else _text_of(statement.computed, text)
    metadata = None if statement.metadata is None else statement.metadata or statement.name
    return ColumnDefinition(statement.name, statement.type, computed, metadata, statement.is_virtual, statement.comment)


def _text_of(tree: Any, text: str) -> str:
    """Return the part of the text that a tree was read from."""
    source: str = tree.meta["text"]
    return source


def relation(path: Path, table: TableDefinition, source: Any) -> Relation:
    """Reads a table: its columns, computed ones, and its watermark.

    Args:
        source: what gives the physical and metadata columns; see `sources.TableSource`.

    Raises:
        SqlError: an expression of the table's definition means nothing.
    """
    stored = [column for column in table.columns if column.computed is None]
    schema = tuple(Attribute(column.name, column.type) for column in stored if column.type is not None)
    plan: Relation = Scan(schema, path, source, tuple(table.primary_key), definition=table)
    if len(stored) < len(table.columns):
        plan = _with_computed(plan, table)
    if table.watermark is None:
        return plan
    name, written = table.watermark
    index = plan.names.index(name)
    time = plan.schema[index]
    if not time.type.is_timestamp or time.type.precision > 3:
        problem = f"the time column {name!r} of {'.'.join(path)} is of type {time.type}"
        raise SqlError(problem, "wanted is TIMESTAMP(3) or TIMESTAMP_LTZ(3); CAST it in a computed column")
    expression = _of_source(written, path, table, time) or _bound(written, plan)
    if not expression.type.is_timestamp:
        raise SqlError(f"the watermark {written} is of type {expression.type}", "wanted is that of its time column")
    attributes = tuple(
        Attribute(attribute.name, attribute.type, TimePart.ROWTIME if number == index else attribute.part)
        for number, attribute in enumerate(plan.schema)
    )
    return WatermarkAssigner(attributes, plan, index, expression)


def _of_source(written: str, path: Path, table: TableDefinition, time: Attribute) -> Expr | None:
    """Return the expression that stands for SOURCE_WATERMARK(); None: another expression is written.

    Raises:
        SqlError: the source has none of its own.
    """
    if not re.fullmatch(r"SOURCE_WATERMARK\(\s*\)", written.strip(), re.IGNORECASE):
        return None
    if table.connected is None:
        remedy = "write an expression, such as ts - INTERVAL '5' SECOND"
        raise SqlError(f"{'.'.join(path)} has no watermarks of its own", remedy)
    return Literal(time.type, None)


def _with_computed(scan: Relation, table: TableDefinition) -> Relation:
    exprs: list[Expr] = []
    schema: list[Attribute] = []
    for column in table.columns:
        if column.computed is None:
            reference = scan.column(scan.names.index(column.name))
            exprs.append(reference)
            schema.append(scan.schema[reference.index])
            continue
        expr = _bound(column.computed, scan)
        is_now = str(expr) == "PROCTIME()"
        exprs.append(expr)
        schema.append(Attribute(column.name, expr.type, TimePart.PROCTIME if is_now else None))
    return Project(tuple(schema), scan, tuple(exprs))


def _bound(written: str, over: Relation) -> Expr:
    try:
        return ExpressionBinder(Scope.of("", over.schema)).bind(parse_expression(written))
    except SqlError as error:
        raise error.at(written) from error


def connected(path: Path, table: TableDefinition, reads: bool, zone: str = "UTC") -> Connected:
    """Return what a connector learns of a table that is read or written.

    Args:
        zone: the session's time zone.

    Raises:
        SqlError: it has a metadata column that the connector does not know.
    """
    table_connector = connector(path, table)
    options, formats = table_connector.parsed(".".join(path), current_options(table.options, ".".join(path)))
    wanted = [column for column in table.columns if (column.computed is None if reads else column.is_written)]
    schema = tuple(Attribute(column.name, column.type) for column in wanted if column.type is not None)
    metadata = {index: column.metadata for index, column in enumerate(wanted) if column.metadata is not None}
    keys = table_connector.known_metadata(options)
    if metadata and not keys.issuperset(metadata.values()):
        known = ", ".join(sorted(keys)) or "none"
        problem = f"{'.'.join(path)} has a METADATA column, which connector {table_connector.name!r} does not know"
        raise SqlError(problem, f"it knows {known}")
    name, keys_of_rows = ".".join(path), tuple(table.primary_key)
    return Connected(name, schema, options, formats, table.partition_keys, metadata, keys_of_rows, zone)


def checked_columns(names: list[str], known: list[str], place: Place | None, text: str) -> None:
    """Check whether all names are columns.

    Raises:
        SqlError: one is none.
    """
    for name in names:
        if name not in known:
            problem = f"there is no column {name!r}{nearest(name, known)}"
            raise SqlError(problem, f"the columns are {', '.join(known)}", text, place)
