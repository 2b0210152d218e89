"""ALTER TABLE: other columns, another key, another watermark."""

from __future__ import annotations

from dataclasses import replace

from ..definitions import ColumnDefinition, TableDefinition
from ..errors import SqlError, nearest
from ..parsing.statements import AlterColumns, CreateTable
from .resolution import definition


def altered(table: TableDefinition, statement: AlterColumns, text: str) -> TableDefinition:
    """Return the table as it is afterwards.

    Raises:
        SqlError: a column is not there, or is there already.
    """
    names = [one.name for one in table.columns]
    if statement.action == "DROP PRIMARY KEY":
        return replace(table, primary_key=())
    if statement.action == "DROP WATERMARK":
        return replace(table, watermark=None)
    if statement.action == "RENAME":
        old, new = statement.names
        _known(old, names, statement, text)
        if new in names:
            raise SqlError(f"there is a column {new!r} already", "give it another name", text, statement.place)
        return replace(
            table, columns=tuple(replace(one, name=new if one.name == old else one.name) for one in table.columns)
        )
    if statement.action == "DROP":
        for name in statement.names:
            _known(name, names, statement, text)
        return replace(table, columns=tuple(one for one in table.columns if one.name not in statement.names))
    made = definition(CreateTable((), statement.columns, None, (), place=statement.place), text)
    columns = list(table.columns)
    for one in made.columns:
        columns = _placed(columns, one, statement, text)
    key = statement.primary_key or table.primary_key
    changed = replace(table, columns=tuple(columns), primary_key=key)
    if statement.watermark is None:
        return changed
    written: str = statement.watermark.expression.meta["text"]
    return replace(changed, watermark=(".".join(statement.watermark.column), written))


def _placed(
    columns: list[ColumnDefinition], one: ColumnDefinition, statement: AlterColumns, text: str
) -> list[ColumnDefinition]:
    names = [column.name for column in columns]
    position = statement.positions.get(one.name)
    if statement.action == "ADD":
        if one.name in names:
            raise SqlError(f"there is a column {one.name!r} already", "MODIFY it", text, statement.place)
        at = len(columns)
    else:
        _known(one.name, names, statement, text)
        at = names.index(one.name)
        columns = columns[:at] + columns[at + 1 :]
        names.remove(one.name)
    if position == "FIRST":
        at = 0
    elif position is not None:
        _known(position, names, statement, text)
        at = names.index(position) + 1
    return [*columns[:at], one, *columns[at:]]


def _known(name: str, names: list[str], statement: AlterColumns, text: str) -> None:
    if name not in names:
        problem = f"there is no column {name!r}{nearest(name, names)}"
        raise SqlError(problem, f"the columns are {', '.join(names)}", text, statement.place)
