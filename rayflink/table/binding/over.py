"""Functions with OVER in SELECT and QUALIFY: columns that are computed before what is selected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from sqlglot import exp

from ..errors import SqlError
from ..parsing.program_nodes import Applied
from ..parsing.statements import Tree
from ..plan.aggregate_call import AggregateCall
from ..plan.logical import Attribute, Relation
from ..plan.over import ALL_ROWS, NEIGHBORS, RANKS, UNTIL_ROW, WITHOUT_FRAME, Frame, Length, OverAggregate
from ..plan.type_rules import common_type
from ..plan.typed import Expr, Literal, Place
from ..types import INTEGERS, DataType, DataTypes, Root
from .aggregate_calls import AggregateInput
from .expressions import AGGREGATES, ExpressionBinder, cast, place_of
from .numbering import add_row_numbers, ensure_key, ensure_order, fresh_name, with_columns
from .user_aggregates import is_user_aggregate

_REFUSED = ("SUM0", "JSON_ARRAYAGG", "JSON_OBJECTAGG")
_TIMES = (Root.TIMESTAMP, Root.TIMESTAMP_LTZ, Root.DATE, Root.TIME)
_FRAME = "write for example ROWS BETWEEN 3 PRECEDING AND CURRENT ROW"
_ARGUMENTS = {"LAG": "LAG(a), LAG(a, 2) or LAG(a, 2, 0)", "LEAD": "LEAD(a), LEAD(a, 2) or LEAD(a, 2, 0)",
              "NTH_VALUE": "NTH_VALUE(a, 2)", "NTILE": "NTILE(4)"}  # fmt: skip
Order = tuple[tuple[Expr, bool, bool], ...]


@dataclass
class _Window:
    """Functions over the same rows.

    Args:
        order: (value, descending, nulls first) each.
        frame: None where no function depends on it.
    """

    partition: tuple[Expr, ...]
    order: Order
    frame: Frame | None
    place: Place | None
    trees: list[Tree] = field(default_factory=list)


def add_over_columns(
    relation: Relation, calls: Sequence[Tree], named: Mapping[str, Tree], binder: ExpressionBinder, is_whole: bool
) -> tuple[Relation, list[tuple[Tree, int]]]:  # fmt: skip
    """Return the relation with more columns behind its own, and of each call with OVER which column is its result.

    Args:
        calls: those of the query.
        named: the windows of its WINDOW clause.
        binder: binds expressions over the columns of `relation`.
        is_whole: its rows are those of whole tables.
    Raises:
        SqlError: a function does not take its arguments or has no frame as it is written, or values have no order.
    """
    windows = [_resolved(tree, named) for tree in calls]
    numberings = [tree for tree in windows if _is_numbering(tree, windows)]
    relation, columns = add_row_numbers(relation, numberings, binder.bind, is_whole)
    others = [tree for number, tree in enumerate(windows) if tree not in numberings and tree not in windows[:number]]
    for number, window in enumerate(_windows_of(others, binder)):
        relation, fresh = _add_window(relation, window, number, binder, is_whole)
        columns += fresh
    return relation, [(call, column) for call, window in zip(calls, windows, strict=True)
                      for tree, column in columns if tree == window]  # fmt: skip


def _is_numbering(tree: Tree, windows: Sequence[Tree]) -> bool:
    """Return whether a call is ROW_NUMBER() over a window without other functions, whose rows may be the first ones."""
    parts = tree.args.get("partition_by"), tree.args.get("order")
    others = [other for other in windows if (other.args.get("partition_by"), other.args.get("order")) == parts]
    return all(_name_of(other) == "ROW_NUMBER" for other in others)


def _name_of(tree: Tree) -> str:
    function = tree.this.this if isinstance(tree.this, exp.Filter) else tree.this
    if isinstance(function, Applied):
        return str(function.this.name)
    return str(function.name).upper() if isinstance(function, exp.Anonymous) else str(function.sql())


def _windows_of(trees: Sequence[Tree], binder: ExpressionBinder) -> list[_Window]:
    """Return the windows of calls; those that do not depend on a frame are in one with such that do, if there is."""
    windows: list[_Window] = []
    for tree in sorted(trees, key=lambda tree: _name_of(tree) in WITHOUT_FRAME):
        partition = tuple(dict.fromkeys(binder.bind(key) for key in tree.args.get("partition_by") or ()))
        for key, written in zip(partition, tree.args.get("partition_by") or (), strict=False):
            ensure_key(key.type, place_of(written))
        order = _order(tree, binder)
        frame = None if _name_of(tree) in WITHOUT_FRAME else _frame(tree, order, binder)
        if frame is None and tree.args.get("spec") is not None:
            problem = f"{_name_of(tree)} does not take a frame"
            raise SqlError(problem, "leave ROWS or RANGE out", "", place_of(tree))
        same = [window for window in windows if (window.partition, window.order) == (partition, order)]
        same = [window for window in same if window.frame == frame or (frame is None and _takes_any(window.frame))]
        if not same:
            same = [_Window(partition, order, frame, place_of(tree))]
            windows += same
        same[0].trees.append(tree)
    return windows


def _takes_any(frame: Frame | None) -> bool:
    """Return whether functions without a frame may be computed together with those of a frame."""
    return frame is None or frame.by_rows or frame.first is None


def _order(tree: Tree, binder: ExpressionBinder) -> Order:
    order = tree.args.get("order")
    keys: list[tuple[Expr, bool, bool]] = []
    for key in order.expressions if order is not None else ():
        value = binder.bind(key.this)
        ensure_order(value.type, place_of(key) or place_of(tree))
        keys.append((value, bool(key.args.get("desc")), bool(key.args.get("nulls_first"))))
    if not keys and _name_of(tree) in WITHOUT_FRAME:
        problem, remedy = f"{_name_of(tree)} has no ORDER BY", "say in which order rows are: OVER (ORDER BY a)"
        raise SqlError(problem, remedy, "", place_of(tree))
    return tuple(keys)


# frames


def _frame(tree: Tree, order: Order, binder: ExpressionBinder) -> Frame:
    spec, place = tree.args.get("spec"), place_of(tree)
    if spec is None:
        return UNTIL_ROW if order else ALL_ROWS
    kind = str(spec.args.get("kind"))
    if kind not in ("ROWS", "RANGE"):
        raise SqlError(f"{kind} in a frame is not supported", "write ROWS or RANGE", "", place)
    by_rows = kind == "ROWS"
    first = _bound(spec, "start", by_rows, order, binder, place)
    last = _bound(spec, "end", by_rows, order, binder, place) if spec.args.get("end") else 0
    if first is not None and last is not None and first > last:
        raise SqlError("a frame ends before it begins", _FRAME, "", place)
    return Frame(by_rows, first, last)


def _bound(
    spec: Tree, name: str, by_rows: bool, order: Order, binder: ExpressionBinder, place: Place | None
) -> Length | None:  # fmt: skip
    """Return how far behind the row a frame begins or ends; None: with the partition."""
    bound, side = spec.args.get(name), str(spec.args.get(f"{name}_side") or "").upper()
    if bound == "CURRENT ROW":
        return 0
    if bound == "UNBOUNDED":
        if (side == "PRECEDING") is not (name == "start"):
            raise SqlError(f"a frame {name}s with UNBOUNDED {side}", _FRAME, "", place)
        return None
    value = binder.bind(bound)
    if not isinstance(value, Literal) or value.value is None:
        raise SqlError(f"{bound.sql()} in a frame is no constant", _FRAME, "", place_of(bound) or place)
    distance = _rows(value, place) if by_rows else _length(value, order, place)
    if distance < 0:
        raise SqlError(f"{bound.sql()} in a frame is below 0", _FRAME, "", place_of(bound) or place)
    return -distance if side == "PRECEDING" else distance


def _rows(value: Literal, place: Place | None) -> int:
    if value.type.root not in INTEGERS:
        raise SqlError(f"a frame of rows has a bound of type {value.type}", _FRAME, "", place)
    return int(value.value)


def _length(value: Literal, order: Order, place: Place | None) -> Length:
    """Return a bound of RANGE: milliseconds, or a number."""
    if len(order) != 1:
        problem = f"RANGE has a length, and ORDER BY has {len(order)} columns"
        raise SqlError(problem, "order by one time or number, or write ROWS", "", place)
    kind = order[0][0].type
    if kind.root in _TIMES and value.type.root is Root.INTERVAL_DAY_TIME:
        return int(value.value)
    if kind.is_numeric and value.type.is_numeric:
        return value.value if isinstance(value.value, (int, float)) else Decimal(value.value)
    remedy = "give an interval of days or less where rows are ordered by a time, and a number where by numbers"
    raise SqlError(f"RANGE has a length of type {value.type}, and rows are ordered by {kind}", remedy, "", place)


# columns


def _add_window(
    relation: Relation, window: _Window, number: int, binder: ExpressionBinder, is_whole: bool
) -> tuple[OverAggregate, list[tuple[Tree, int]]]:
    """Return the relation with a column for each function of a window, and which column is of which call."""
    width = len(relation.schema)
    input = AggregateInput(relation, binder)
    input.exprs = [relation.column(index) for index in range(width)]
    frame = window.frame or (UNTIL_ROW if window.order else ALL_ROWS)
    calls = [_call(tree, input, binder, frame) for tree in window.trees]
    partition = tuple(input.column(expr) for expr in window.partition)
    keys = tuple((input.column(expr), down, nulls_first) for expr, down, nulls_first in window.order)
    below, _ = with_columns(relation, input.exprs[width:])
    below_width = len(below.schema)
    schema = below.schema
    for index, call in enumerate(calls):
        schema = (*schema, Attribute(fresh_name(f"w{number}$o{index}", schema), call.type))
    plan = OverAggregate(schema, below, partition, keys, frame, tuple(calls), is_whole, place=window.place)
    return plan, [(tree, below_width + index) for index, tree in enumerate(window.trees)]


def _call(tree: Tree, input: AggregateInput, binder: ExpressionBinder, frame: Frame) -> AggregateCall:
    """Return the call of a function over columns of the input.

    Raises:
        SqlError: there is no such function, or it does not take these arguments.
    """
    name, place = _name_of(tree), place_of(tree)
    is_built_in = name in AGGREGATES and name not in _REFUSED and name not in binder.functions
    if is_built_in or is_user_aggregate(tree.this.this if isinstance(tree.this, exp.Filter) else tree.this):
        call = input.call(tree.this)
        is_nullable = call.name != "COUNT" and (frame.may_be_empty or call.type.is_nullable)
        return replace(call, type=call.type.as_nullable(is_nullable))
    if name not in (*WITHOUT_FRAME, "NTH_VALUE"):
        names = sorted({*AGGREGATES, *WITHOUT_FRAME, "NTH_VALUE"} - set(_REFUSED))
        raise SqlError(f"{name} with OVER is not supported", f"the functions are {', '.join(names)}", "", place)
    if isinstance(tree.this, exp.Filter):
        raise SqlError(f"{name} does not take FILTER", "filter the rows in a query below", "", place)
    arguments = [binder.bind(argument) for argument in tree.this.expressions]
    least, most = (1, 3) if name in NEIGHBORS else (2, 2) if name == "NTH_VALUE" else (name == "NTILE",) * 2
    if not least <= len(arguments) <= most:
        problem, usage = f"{name} has {len(arguments)} arguments", _ARGUMENTS.get(name, f"{name}()")
        raise SqlError(problem, f"write {usage}", "", place)
    if name in RANKS:
        return AggregateCall(name, (), DataTypes.BIGINT(False))
    if not arguments:
        return AggregateCall(name, (), DataTypes.DOUBLE(False))
    if name == "NTILE":
        return AggregateCall(name, (), DataTypes.INT(False), options=(_number(name, arguments[0], 1, place),))
    number = 1
    if len(arguments) > 1:
        number = _number(name, arguments[1], name == "NTH_VALUE", place)
    kind, columns = arguments[0].type.nullable(), [arguments[0]]
    if len(arguments) > 2:
        kind = _type_with_default(name, arguments[0], arguments[2], place)
        columns = [cast(arguments[0], kind), cast(arguments[2], kind)]
    return AggregateCall(name, tuple(map(input.column, columns)), kind, options=(number,))


def _number(name: str, argument: Expr, least: int, place: Place | None) -> int:
    is_whole = isinstance(argument, Literal) and argument.type.root in INTEGERS and argument.value is not None
    if not isinstance(argument, Literal) or not is_whole or argument.value < least:
        problem = f"{name} is called with {argument} in place of a number"
        raise SqlError(problem, f"give a whole number from {int(least)} on: {_ARGUMENTS[name]}", "", place)
    return int(argument.value)


def _type_with_default(name: str, value: Expr, default: Expr, place: Place | None) -> DataType:
    kind = common_type([value.type, default.type])
    if kind is None:
        problem = f"{name} is of {value.type}, and its default of {default.type}"
        raise SqlError(problem, "cast the default to the type of the column", "", place)
    return kind.as_nullable(value.type.is_nullable or default.type.is_nullable)


# names of windows


def named_windows(tree: Tree) -> dict[str, Tree]:
    """Return the windows of the WINDOW clause of a SELECT by their names.

    Raises:
        SqlError: two have one name, or one goes on from a window that is not there.
    """
    named: dict[str, Tree] = {}
    for clause in tree.args.get("windows") or ():
        if clause.this.name in named:
            problem = f"WINDOW has two windows named {clause.this.name!r}"
            raise SqlError(problem, "give it another name", "", place_of(clause.this))
        named[clause.this.name] = _resolved(clause, named)
    return named


def _resolved(window: Tree, named: Mapping[str, Tree]) -> Tree:
    """Return a window with what its name stands for in place of that."""
    alias = window.args.get("alias")
    if alias is None:
        return window
    base, place = named.get(alias.name), place_of(alias)
    if base is None:
        remedy = f"the names are {', '.join(named)}" if named else "write WINDOW w AS (PARTITION BY a ORDER BY ts)"
        raise SqlError(f"there is no window named {alias.name!r}", remedy, "", place)
    complete = window.copy()
    complete.set("alias", None)
    for part, words in (("partition_by", "PARTITION BY"), ("order", "ORDER BY"), ("spec", "a frame")):
        value = base.args.get(part)
        if part == "spec" and window.args.get("over") and _name_of(window) in WITHOUT_FRAME:
            continue  # the frame is for other functions of the window
        if window.args.get(part) and value:
            remedy = f"leave it out, or write the whole window in parentheses instead of {alias.name}"
            raise SqlError(f"window {alias.name!r} has {words} already", remedy, "", place)
        if value:
            complete.set(part, value)
    return complete


__all__ = ["add_over_columns", "named_windows"]
