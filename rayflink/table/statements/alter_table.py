"""ALTER TABLE: other columns, another key, another watermark."""

from __future__ import annotations

from dataclasses import replace

from ..definitions import ColumnDefinition, TableDefinition
from ..errors import SqlError, nearest
from ..parsing.statements import AlterColumns, CreateTable
from .resolution import definition, key_column


def altered(table: TableDefinition, statement: AlterColumns, text: str) -> TableDefinition:
    """Return the table as it is afterwards.

    Raises:
        SqlError: a column is not there, or is there already.
    """
    names = [column.name for column in table.columns]
    if statement.action == "DROP PRIMARY KEY":
        return replace(table, primary_key=())
    if statement.action == "DROP WATERMARK":
        return replace(table, watermark=None)
    if statement.action == "RENAME":
        old, new = statement.names
        _known(old, names, statement, text)
        if new in names:
            raise SqlError(f"there is a column {new!r} already", "give it another name", text, statement.place)
        _unused(old, {"WATERMARK": table.watermark[:1] if table.watermark else (),
                      "PARTITIONED BY": table.partition_keys}, statement, text)  # fmt: skip
        return replace(
            table,
            columns=tuple(replace(column, name=new if column.name == old else column.name) for column in table.columns),
            primary_key=tuple(new if name == old else name for name in table.primary_key),
        )
    if statement.action == "DROP":
        for name in statement.names:
            _known(name, names, statement, text)
            _unused(name, {"PRIMARY KEY": table.primary_key, "PARTITIONED BY": table.partition_keys,
                           "WATERMARK": table.watermark[:1] if table.watermark else ()}, statement, text)  # fmt: skip
        return replace(table, columns=tuple(column for column in table.columns if column.name not in statement.names))
    columns = list(table.columns)
    for column in definition(CreateTable((), statement.columns, None, (), place=statement.place), text).columns:
        columns = _placed(columns, column, statement, text)
    key = statement.primary_key or table.primary_key
    changed = replace(table, columns=tuple(key_column(column, key) for column in columns), primary_key=key)
    if statement.watermark is None:
        return changed
    written: str = statement.watermark.expression.meta["text"]
    return replace(changed, watermark=(".".join(statement.watermark.column), written))


def _placed(
    columns: list[ColumnDefinition], column: ColumnDefinition, statement: AlterColumns, text: str
) -> list[ColumnDefinition]:
    names = [other.name for other in columns]
    position = statement.positions.get(column.name)
    if statement.action == "ADD":
        if column.name in names:
            raise SqlError(f"there is a column {column.name!r} already", "MODIFY it", text, statement.place)
        index = len(columns)
    else:
        _known(column.name, names, statement, text)
        index = names.index(column.name)
        columns = columns[:index] + columns[index + 1 :]
        names.remove(column.name)
    if position == "FIRST":
        index = 0
    elif position is not None:
        _known(position, names, statement, text)
        index = names.index(position) + 1
    return [*columns[:index], column, *columns[index:]]


def _unused(name: str, uses: dict[str, tuple[str, ...]], statement: AlterColumns, text: str) -> None:
    for clause, columns in uses.items():
        if name in columns:
            remedy = "keep the column" if clause == "PARTITIONED BY" else f"ALTER TABLE ... DROP {clause} first"
            raise SqlError(f"column {name!r} is one of {clause}", remedy, text, statement.place)


def _known(name: str, names: list[str], statement: AlterColumns, text: str) -> None:
    if name not in names:
        problem = f"there is no column {name!r}{nearest(name, names)}"
        raise SqlError(problem, f"the columns are {', '.join(names)}", text, statement.place)
