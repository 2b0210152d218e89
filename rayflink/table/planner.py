"""The building blocks of a user's planner rules: relations, expressions and calls.

All of them are frozen: `dataclasses.replace`, `with_inputs` and `with_exprs` return changed copies. See
docs/planner-rules.md.
"""

from __future__ import annotations

from typing import Any

from .binding.expressions import ExpressionBinder, cast
from .binding.expressions import call as _call
from .binding.scope import Scope
from .dsl.expression_text import literal, tree_of
from .expression import Expression
from .optimizer.conditions import always, parts_of
from .optimizer.planner_config import PlannerConfig
from .plan.groups import GroupAggregate
from .plan.joins import Join, JoinKind
from .plan.logical import (
    Attribute,
    Filter,
    Project,
    Relation,
    Scan,
    Sort,
    TimePart,
    Union,
    Unnest,
    Values,
    WatermarkAssigner,
    WindowAggregate,
    WindowTable,
)
from .plan.ranks import Rank
from .plan.typed import Call, Column, Expr, Literal


def call(name: str, *args: Expr) -> Call:
    """Return a call of a built-in function or operator.

    >>> str(call("=", call("UPPER", literal("a")), literal("A")))
    "UPPER('a') = 'A'"

    Args:
        name: in capitals, or the sign of an operator.

    Raises:
        SqlError: it does not take such arguments.
        KeyError: there is no such function.
    """
    return _call(name, args)


def expression(relation: Relation, written: Expression[Any]) -> Expr:
    """Bind an expression of the Table API to the columns of a relation.

    Args:
        written: an expression of the Table API, such as `col("n") > 3`; without functions of the user's own.

    Raises:
        SqlError: a column is not there, or types do not fit.
    """
    return ExpressionBinder(Scope.of("", relation.schema)).bind(tree_of(written))


__all__ = [
    "Attribute", "Call", "Column", "Expr", "Filter", "GroupAggregate", "Join", "JoinKind", "Literal", "PlannerConfig",
    "Project", "Rank", "Relation", "Scan", "Sort", "TimePart", "Union", "Unnest", "Values", "WatermarkAssigner",
    "WindowAggregate", "WindowTable", "always", "call", "cast", "expression", "literal", "parts_of",
]  # fmt: skip
