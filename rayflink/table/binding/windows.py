"""Windowing table functions, and the group windows of old."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from ..errors import SqlError
from ..parsing.dialect import Descriptor, Interval, NamedArgument, TableArgument
from ..parsing.statements import Tree
from ..plan.logical import Attribute, Relation, TimePart, Windowing, WindowKind, WindowTable, length_text
from ..plan.typed import Column, Place
from ..types import DataTypes, Root
from . import literals
from .expressions import place_of
from .scope import Scope

_LENGTHS = {
    WindowKind.TUMBLE: ("SIZE",),
    WindowKind.HOP: ("SLIDE", "SIZE"),
    WindowKind.CUMULATE: ("STEP", "SIZE"),
    WindowKind.SESSION: ("GAP",),
}
"""The lengths that each takes, in order; an offset may follow."""
_USAGE = {
    WindowKind.TUMBLE: "TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTE)",
    WindowKind.HOP: "HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '5' MINUTE, INTERVAL '10' MINUTE): slide, size",
    WindowKind.CUMULATE: "CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '2' MINUTE, INTERVAL '10' MINUTE): step, size",
    WindowKind.SESSION: "SESSION(TABLE t PARTITION BY a, DESCRIPTOR(ts), INTERVAL '5' MINUTE)",
}
_LONGEST_MS = 3_652_059 * 86_400_000
"""All days that dates have."""
_MOST_WINDOWS = 1_000_000
"""Into which a row is put."""
AUXILIARY = {"START": TimePart.WINDOW_START, "END": TimePart.WINDOW_END, "ROWTIME": TimePart.WINDOW_TIME,
             "PROCTIME": TimePart.PROCTIME}  # fmt: skip
"""The properties of a window that TUMBLE_START and the like return."""


@dataclass(frozen=True)
class TableCall:
    """A call of a windowing table function, with its arguments by their roles."""

    kind: WindowKind
    table: TableArgument
    column: str
    lengths: Mapping[str, int]
    place: Place | None


def table_call(tree: Tree) -> TableCall:
    """Return the arguments of a windowing table function.

    Raises:
        SqlError: they are not those that it takes.
    """
    place = place_of(tree)
    kind = WindowKind(str(tree.name).upper())
    names = ("DATA", "TIMECOL", *_LENGTHS[kind], "OFFSET")
    arguments: dict[str, Any] = {}
    for position, argument in enumerate(tree.expressions):
        is_named = isinstance(argument, NamedArgument)
        if not is_named and position >= len(names):
            raise _bad_arguments(kind, f"{len(tree.expressions)} arguments", place)
        name = str(argument.this).upper() if is_named else names[position]
        if name in arguments:
            raise _bad_arguments(kind, f"two arguments {name}", place)
        arguments[name] = argument.expression if is_named else argument
    unknown = [name for name in arguments if name not in names]
    missing = [name for name in names[:-1] if name not in arguments]
    if unknown or missing:
        problem = f"an argument {unknown[0]}" if unknown else f"no argument {missing[0]}"
        raise _bad_arguments(kind, problem, place)
    table, descriptor = arguments["DATA"], arguments["TIMECOL"]
    if isinstance(table, exp.Column) and len(table.parts) <= 3:  # DATA => t, without TABLE
        named = dict(zip(("this", "db", "catalog"), reversed(table.parts), strict=False))
        table = TableArgument(this=exp.Table(**named))
    if (
        not isinstance(table, TableArgument)
        or not isinstance(descriptor, Descriptor)
        or len(descriptor.expressions) != 1
    ):
        raise _bad_arguments(kind, "arguments of the wrong kinds", place)
    if order := table.args.get("order_by"):
        remedy = "leave it out: windows take rows by their times"
        raise SqlError("ORDER BY is not supported", remedy, "", place_of(order[0]) or place)
    lengths = {name: _length(arguments[name], kind, place) for name in names[2:] if name in arguments}
    return TableCall(kind, table, descriptor.expressions[0].name, lengths, place)


def _bad_arguments(kind: WindowKind, arguments: str, place: Place | None) -> SqlError:
    return SqlError(f"{kind.value} is called with {arguments}", f"write {_USAGE[kind]}", "", place)


def _length(tree: Tree, kind: WindowKind, place: Place | None) -> int:
    inner = tree
    while isinstance(inner, exp.Paren):
        inner = inner.this
    is_negative = isinstance(inner, exp.Neg)
    inner = inner.this if is_negative else inner
    if not isinstance(inner, Interval):
        raise _bad_arguments(kind, f"{tree.sql()} in place of an interval", place)
    interval = literals.interval(inner.this, inner.args["unit"], inner.args.get("to"), place)
    if interval.type.root is Root.INTERVAL_YEAR_MONTH:
        raise SqlError("a window has a length in months", "windows have a fixed length: give days or less", "", place)
    return -int(interval.value) if is_negative else int(interval.value)


def windowing_of(kind: WindowKind, lengths: Mapping[str, int], time: Column, attribute: Attribute,
                 place: Place | None, partition: Sequence[int] = ()) -> Windowing:  # fmt: skip
    """Return the windows of a time attribute.

    Raises:
        SqlError: the column is none, or the lengths do not go together.
    """
    if not attribute.is_time:
        problem = f"column {attribute.name!r} of type {attribute} is not a time attribute"
        remedy = "declare a WATERMARK FOR it in CREATE TABLE, or use a column AS PROCTIME()"
        raise SqlError(problem, remedy, "", place or time.place)
    size = lengths.get("SIZE", lengths.get("GAP", 0))
    slide = lengths.get("SLIDE", lengths.get("STEP", 0))
    for name, length in lengths.items():
        if length <= 0 and name != "OFFSET":
            raise SqlError(f"the {name} of {kind.value} is {length} ms", "give a length above 0", "", place)
        if abs(length) > _LONGEST_MS:
            problem = f"the {name} of {kind.value} is {length_text(length)}, longer than from year 1 to 9999"
            raise SqlError(problem, f"give {length_text(_LONGEST_MS)} at most", "", place)
    if slide and size // slide > _MOST_WINDOWS:
        problem = f"{kind.value} would put each row into up to {size // slide} windows"
        remedy = f"give a longer step or a shorter size, for {_MOST_WINDOWS} windows at most"
        raise SqlError(problem, remedy, "", place)
    if kind is WindowKind.CUMULATE and size % slide:
        problem = f"CUMULATE has a size of {size} ms and a step of {slide} ms"
        raise SqlError(problem, "make the size a multiple of the step", "", place)
    if kind is WindowKind.HOP and size < slide:
        problem = f"HOP has a size of {size} ms and a slide of {slide} ms"
        raise SqlError(problem, "make the size at least the slide", "", place)
    local = attribute.type.root is Root.TIMESTAMP_LTZ
    return Windowing(
        kind, size, slide, lengths.get("OFFSET", 0), time.index, attribute.is_event_time, tuple(partition), local
    )


def window_table(call: TableCall, input: Relation, scope: Scope) -> WindowTable:
    """Return the rows of a table with the bounds of their windows.

    Raises:
        SqlError: the time column is none.
    """
    time, fields = scope.find((call.column,), call.place)
    assert isinstance(time, Column) and not fields
    partition: list[int] = []
    for key in call.table.args.get("partition_by") or ():
        column, _ = scope.find(tuple(part.name for part in key.parts), place_of(key))
        assert isinstance(column, Column)
        partition.append(column.index)
    size, slide = call.lengths.get("SIZE", 0), call.lengths.get("SLIDE", 0)
    if slide > 0 and size % slide:
        problem = f"HOP has a size of {size} ms and a slide of {slide} ms"
        raise SqlError(problem, "make the size a multiple of the slide", "", call.place)
    if partition and call.kind is not WindowKind.SESSION:
        raise SqlError(f"{call.kind.value} does not take PARTITION BY", "only SESSION does", "", call.place)
    attribute = input.schema[time.index]
    windowing = windowing_of(call.kind, call.lengths, time, attribute, call.place, partition)
    columns = tuple(
        Attribute(column.name, column.type, None if index == time.index else column.part)
        for index, column in enumerate(input.schema)
    )
    return WindowTable((*columns, *bounds(windowing, attribute)), input, windowing, place=call.place)


def bounds(windowing: Windowing, time: Attribute) -> tuple[Attribute, Attribute, Attribute]:
    """Return the columns window_start, window_end and window_time: the bounds are TIMESTAMP(3) in any case."""
    stamp = DataTypes.TIMESTAMP(3, False)
    kind = DataTypes.TIMESTAMP_LTZ(3, False) if windowing.by_local_time else stamp
    part = TimePart.WINDOW_TIME if windowing.is_event_time else TimePart.PROCTIME
    return (
        Attribute("window_start", stamp, TimePart.WINDOW_START, windowing),
        Attribute("window_end", stamp, TimePart.WINDOW_END, windowing),
        Attribute("window_time", kind, part, windowing),
    )


def group_window(tree: Tree, scope: Scope, input: Relation) -> Windowing | None:
    """Return the windows of TUMBLE(ts, size) and the like in GROUP BY; None: it is another expression.

    Raises:
        SqlError: its arguments are not those that it takes.
    """
    if not isinstance(tree, exp.Anonymous) or str(tree.name).upper() not in ("TUMBLE", "HOP", "SESSION"):
        return None
    kind, place = WindowKind(str(tree.name).upper()), place_of(tree)
    names = _LENGTHS[kind]
    args = tree.expressions
    if len(args) != 1 + len(names) or not isinstance(args[0], exp.Column):
        remedy = f"write {kind.value}(ts, {', '.join(name.lower() for name in names)}) with intervals"
        raise SqlError(f"{kind.value} in GROUP BY has the wrong arguments", remedy, "", place)
    time, fields = scope.find(tuple(part.name for part in args[0].parts), place)
    if fields or not isinstance(time, Column):
        raise SqlError(f"{args[0].sql()} is not a column", "give the time attribute", "", place)
    lengths = {name: _length(argument, kind, place) for name, argument in zip(names, args[1:], strict=True)}
    return windowing_of(kind, lengths, time, input.schema[time.index], place)
