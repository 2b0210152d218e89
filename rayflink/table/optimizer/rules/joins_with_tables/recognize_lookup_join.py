"""Finds the rows of a table by its keys, for a join with FOR SYSTEM_TIME AS OF a processing time.

Equalities with columns of the table are its keys, also those with constants. What else is asked of its rows, and what
is computed of them, follows behind the lookup.

Source: apache/flink CommonPhysicalLookupJoin.

Example:

    SELECT o.product, c.name FROM (SELECT *, PROCTIME() AS t FROM orders) AS o
    JOIN customers FOR SYSTEM_TIME AS OF o.t AS c ON o.id = c.id WHERE c.name <> 'c2'

Without the rule:

    SqlError: a join without windows or bounds of time keeps all rows of both sides for ever

With the rule:

    Calc(select=[product, name])
    +- LookupJoin(table=[customers, project=[name]], joinType=[InnerJoin], lookup=[id=id], where=[name <> 'c2'],
         select=[id, product, name])
       +- TableSourceScan(table=[[orders, project=[id, product]]], fields=[id, product])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....binding.expressions import cast
from ....errors import SqlError
from ....plan.logical import Filter, Project, Relation, Scan, WatermarkAssigner
from ....plan.lookup_joins import LookupJoin, LookupKey, SnapshotJoin
from ....plan.type_rules import common_type
from ....plan.typed import Call, Column, Expr, Literal
from ....types import DataType
from ...conditions import all_of, is_movable, parts_of
from ...join_keys import Pair, equalities
from ..merge_projections_and_filters import inlined

_REMEDY = "let a column of the table be equal to one of the row, as in ON o.customer_id = c.id"


def recognize_lookup_join(plan: Relation) -> Relation:
    """Look up the right side of a join at a processing time."""
    return plan.mapped(lambda relation: _lookup(relation) if isinstance(relation, SnapshotJoin) else relation)


def _lookup(join: SnapshotJoin) -> Relation:
    scan, exprs, conditions = _table(join)
    condition = equalities(join)
    rest = list(condition.rest)
    keys: list[LookupKey] = []
    for pair in condition.pairs:
        key = _key_of(pair, exprs, scan)
        if key is None or key.name in [known.name for known in keys]:
            rest.append(condition_of(pair, join))
        else:
            keys.append(key)
    where: list[Expr] = []
    for part in conditions:
        key = _constant_key(part, scan) if scan.source.takes_constant_keys or not keys else None
        if key is None or key.name in [known.name for known in keys]:
            where.append(part)
        else:
            keys.append(key)
    if not keys:
        problem = f"the join with {'.'.join(scan.known_path)} has no equality by which its rows are looked up"
        raise SqlError(problem, _mistyped(condition.pairs) or _REMEDY, "", join.place)
    if scan.source.lookup([key.name for key in keys]) is None:
        raise _unsupported_source(scan, join)
    return LookupJoin(
        join.schema, join.left, scan, join.kind, tuple(keys), all_of(where), exprs, all_of(rest), join.hint,
        place=join.place,
    )  # fmt: skip


def _table(join: SnapshotJoin) -> tuple[Scan, tuple[Expr, ...], list[Expr]]:
    """Return the table on the right, the columns of the right side over its columns, and the conditions on them."""
    below = join.right
    exprs: tuple[Expr, ...] = tuple(below.column(index) for index in range(len(below.schema)))
    conditions: list[Expr] = []
    while True:
        match below:
            case Project():
                exprs = tuple(inlined(expr, below.exprs) for expr in exprs)
                conditions = [inlined(part, below.exprs) for part in conditions]
                below = below.input
            case Filter():
                conditions += parts_of(below.condition)
                below = below.input
            case WatermarkAssigner():
                below = below.input
            case Scan():
                return below, exprs, conditions
            case _:
                problem = f"FOR SYSTEM_TIME AS OF a processing time joins {below.explain_line()}, which is no table"
                raise SqlError(problem, "name a table, or a view that selects columns and rows of one", "", join.place)


def _key_of(pair: Pair, exprs: Sequence[Expr], scan: Scan) -> LookupKey | None:
    """Return the key that is a column of the table, whose type has all values of the other side; None: it is none."""
    column = exprs[pair.right.index] if isinstance(pair.right, Column) else None
    if not isinstance(column, Column) or pair.nulls_match:
        return None
    value = _as_type(pair.left, column.type)
    return None if value is None else LookupKey(scan.names[column.index], value)


def _as_type(value: Expr, wanted: DataType) -> Expr | None:
    """Return a value in the type of a column; None: not all of its values are in it."""
    if value.type.to_arrow() == wanted.to_arrow():
        return value
    kind = common_type([value.type, wanted])
    if kind is None or kind.to_arrow() != wanted.to_arrow():
        return None
    return cast(value, wanted.as_nullable(value.type.is_nullable))


def condition_of(pair: Pair, join: SnapshotJoin) -> Expr:
    """Return an equality of a join as it was written."""
    return next(part for part in parts_of(join.condition) if _is_of(part, pair, join))


def _is_of(part: Expr, pair: Pair, join: SnapshotJoin) -> bool:
    return equalities(replace(join, condition=part)).pairs == (pair,)


def _constant_key(part: Expr, scan: Scan) -> LookupKey | None:
    """Return the key of a condition that a column is equal to a constant; None: it is another condition."""
    if not isinstance(part, Call) or part.function.name != "=" or not is_movable(part):
        return None
    left, right = part.args
    column, constant = (left, right) if isinstance(left, Column) else (right, left)
    if not isinstance(column, Column) or not isinstance(constant, Literal) or constant.value is None:
        return None
    value = _as_type(constant, column.type)
    return None if value is None else LookupKey(scan.names[column.index], value)


def _mistyped(pairs: Sequence[Pair]) -> str:
    """Return the remedy for equalities of columns whose types differ; "": there is none."""
    for pair in pairs:
        if isinstance(pair.right, Column) and pair.left.type.to_arrow() != pair.right.type.to_arrow():
            kind = pair.right.type.nullable()
            return f"CAST({pair.left} AS {kind}): {pair.right} is {kind}, and a key is looked up in the table's type"
    return ""


def _unsupported_source(scan: Scan, join: SnapshotJoin) -> SqlError:
    name = ".".join(scan.known_path)
    problem = f"rows of {name} cannot be looked up by key: its connector reads it as a whole, as a stream"
    remedy = (
        "join a table of 'jdbc', 'rest-lookup' or 'filesystem', one in memory, or one of a function, see "
        "docs/sql-lookup-joins.md"
    )
    return SqlError(problem, remedy, "", join.place)


__all__ = ["condition_of", "recognize_lookup_join"]
