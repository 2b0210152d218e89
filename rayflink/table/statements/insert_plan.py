"""The plan of an INSERT, and of INSERT INTO table PARTITION (key = value)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..binding.expressions import ExpressionBinder, cast
from ..binding.queries import project
from ..binding.scope import Scope
from ..definitions import TableDefinition
from ..errors import SqlError, nearest
from ..parsing.statements import Tree
from ..plan.logical import Relation
from ..plan.typed import Evaluation, Expr, Session


class Insertion(NamedTuple):
    """The parts of an INSERT.

    Args:
        path: of the table to write.
        columns: those that the query gives; None: all.
        partition: values of partition keys, as they are written.
        overwrites: whether the rows take the place of those that are there.
    """

    path: tuple[str, ...]
    plan: Relation
    columns: tuple[str, ...] | None = None
    partition: Mapping[str, Any] = {}
    overwrites: bool = False


def partition_values(table: TableDefinition, name: str, given: Mapping[str, Tree]) -> dict[str, Expr]:
    """Return the values that PARTITION gives, as expressions of the keys' types.

    Raises:
        SqlError: one is not for a partition key, or is of another type.
    """
    keys = table.partition_keys
    if given and not keys:
        raise SqlError(f"PARTITION is written, and {name} is not partitioned", "leave PARTITION out")
    types = {one.name: one.type for one in table.columns}
    found: dict[str, Expr] = {}
    for key, tree in given.items():
        kind = types.get(key)
        if key not in keys or kind is None:
            problem = f"{key!r} is no partition key of {name}{nearest(key, keys)}"
            raise SqlError(problem, f"its keys are {', '.join(keys)}")
        found[key] = cast(ExpressionBinder(Scope.of("", ())).bind(tree), kind)
    return found


def with_partition(
    plan: Relation, table: TableDefinition, columns: tuple[str, ...] | None, values: Mapping[str, Expr]
) -> tuple[Relation, tuple[str, ...] | None]:
    """Return a query's rows with the keys of its partition, and the columns of the table that they then give.

    Raises:
        SqlError: a column is given twice.
    """
    if not values:
        return plan, columns
    if twice := next((name for name in columns or () if name in values), None):
        raise SqlError(f"column {twice!r} is in PARTITION and in the columns", "name it once", "", plan.place)
    names = columns or tuple(one.name for one in table.columns if one.is_written and one.name not in values)
    if len(names) != len(plan.schema):
        problem = f"the query gives {len(plan.schema)} columns, and the partition takes {len(names)}"
        raise SqlError(problem, f"wanted is {', '.join(names)}", "", plan.place)
    exprs = [*(plan.column(at) for at in range(len(names))), *values.values()]
    whole = (*names, *values)
    return project(plan, exprs, list(whole)), whole


def constants(values: Mapping[str, Expr]) -> dict[str, Any]:
    """Return the values as pyarrow's scalars."""
    return {key: Evaluation([], 1, Session()).column(expr)[0] for key, expr in values.items()}


__all__ = ["Insertion", "constants", "partition_values", "with_partition"]
