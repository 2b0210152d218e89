"""ALTER TABLE: other columns, another key, another watermark."""

from __future__ import annotations

from dataclasses import replace

from ..definitions import ColumnDefinition, TableDefinition
from ..errors import SqlError, nearest
from ..parsing.statements import AlterColumns, CreateTable
from .resolution import definition


def altered(table: TableDefinition, said: AlterColumns, text: str) -> TableDefinition:
    """The table as it is afterwards.

    Raises:
        SqlError: a column is not there, or is there already.
    """
    names = [one.name for one in table.columns]
    if said.action == "DROP PRIMARY KEY":
        return replace(table, primary_key=())
    if said.action == "DROP WATERMARK":
        return replace(table, watermark=None)
    if said.action == "RENAME":
        old, new = said.names
        _known(old, names, said, text)
        if new in names:
            raise SqlError(f"there is a column {new!r} already", "give it another name", text, said.place)
        return replace(
            table, columns=tuple(replace(one, name=new if one.name == old else one.name) for one in table.columns)
        )
    if said.action == "DROP":
        for name in said.names:
            _known(name, names, said, text)
        return replace(table, columns=tuple(one for one in table.columns if one.name not in said.names))
    made = definition(CreateTable((), said.columns, None, (), place=said.place), text)
    columns = list(table.columns)
    for one in made.columns:
        columns = _placed(columns, one, said, text)
    key = said.primary_key or table.primary_key
    changed = replace(table, columns=tuple(columns), primary_key=key)
    if said.watermark is None:
        return changed
    written: str = said.watermark.expression.meta["text"]
    return replace(changed, watermark=(".".join(said.watermark.column), written))


def _placed(
    columns: list[ColumnDefinition], one: ColumnDefinition, said: AlterColumns, text: str
) -> list[ColumnDefinition]:
    names = [column.name for column in columns]
    position = said.positions.get(one.name)
    if said.action == "ADD":
        if one.name in names:
            raise SqlError(f"there is a column {one.name!r} already", "MODIFY it", text, said.place)
        at = len(columns)
    else:
        _known(one.name, names, said, text)
        at = names.index(one.name)
        columns = columns[:at] + columns[at + 1 :]
        names.remove(one.name)
    if position == "FIRST":
        at = 0
    elif position is not None:
        _known(position, names, said, text)
        at = names.index(position) + 1
    return [*columns[:at], one, *columns[at:]]


def _known(name: str, names: list[str], said: AlterColumns, text: str) -> None:
    if name not in names:
        problem = f"there is no column {name!r}{nearest(name, names)}"
        raise SqlError(problem, f"the columns are {', '.join(names)}", text, said.place)
