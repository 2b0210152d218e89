"""CREATE TABLE AS and REPLACE TABLE AS: the columns of the table, which the statement and its query give."""

from __future__ import annotations

from dataclasses import replace

from ..errors import SqlError, nearest
from ..parsing.statements import ColumnOf, CreateTable
from ..plan.logical import Schema


def merged_columns(statement: CreateTable, schema: Schema, text: str) -> tuple[ColumnOf, ...]:
    """Return the columns of a table that a query fills.

    Names without types put the query's columns in another order. Columns with types, computed and metadata columns
    that the query does not give come first; one that it gives stays where it is there, with the type that is written.

    Args:
        schema: of the query.
        text: of the statement, for errors.

    Raises:
        SqlError: a name is none of the query's, or a column cannot be filled.
    """
    of_query = {field.name: ColumnOf(field.name, field.type, place=statement.place) for field in schema}
    columns = tuple(of_query[field.name] for field in schema)
    if not statement.columns:
        return columns
    if all(column.is_name for column in statement.columns):
        return _reordered(statement, of_query, text)
    for column in statement.columns:
        _ensure_fillable(column, of_query, text)
    written = {column.name: column for column in statement.columns}
    extra = tuple(column for column in statement.columns if column.name not in of_query)
    return (*extra, *(written.get(column.name, column) for column in columns))


def _reordered(statement: CreateTable, of_query: dict[str, ColumnOf], text: str) -> tuple[ColumnOf, ...]:
    for column in statement.columns:
        if column.name not in of_query:
            problem = f"the query gives no column {column.name!r}{nearest(column.name, list(of_query))}"
            remedy = f"it gives {', '.join(of_query)}; write a type for another column"
            raise SqlError(problem, remedy, text, column.place)
    names = [column.name for column in statement.columns]
    if missing := [name for name in of_query if name not in names]:
        problem = f"the names leave out {', '.join(missing)}, which the query gives"
        raise SqlError(problem, "name all columns of the query, or leave it out there", text, statement.place)
    return tuple(replace(of_query[column.name], place=column.place) for column in statement.columns)


def _ensure_fillable(column: ColumnOf, of_query: dict[str, ColumnOf], text: str) -> None:
    """Refuse a column that the rows of the query cannot fill."""
    if column.is_name:
        problem = f"column {column.name!r} has no type, and others have"
        raise SqlError(problem, "write types for all, or names alone to order them", text, column.place)
    if column.name in of_query and (column.computed is not None or column.is_virtual):
        kind = "computed" if column.computed is not None else "a virtual metadata column"
        problem = f"the query gives column {column.name!r}, which is {kind}"
        raise SqlError(problem, "give one of them another name", text, column.place)
    if column.type is None or column.is_virtual or column.name in of_query:
        return
    if column.is_key or not column.type.is_nullable:
        problem = f"the query gives nothing for column {column.name!r}, which is {column.type}"
        raise SqlError(problem, "select a value for it, or leave NOT NULL out", text, column.place)


__all__ = ["merged_columns"]
