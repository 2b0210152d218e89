"""Calls of aggregate functions in a SELECT, and the columns over which they are computed."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from rayflink.common.errors import InvalidTypesError

from ..errors import SqlError
from ..parsing.program_nodes import OverWindow
from ..parsing.statements import Tree
from ..plan.aggregate_call import AggregateCall
from ..plan.logical import Attribute, Project, Relation
from ..plan.typed import Column, Expr, Function, Literal, Place
from ..runtime.aggregates.aggregates import AggregateKind, result_type
from ..types import DataType, DataTypes, Root
from . import json_aggregates
from .expressions import AGGREGATES, ExpressionBinder, call, place_of
from .numbering import numberings_in, parts_of
from .percentiles import percentile
from .user_aggregates import arguments_of, ensure_rows_are_wanted, is_user_aggregate, name_of

_SYNONYMS = {"STDDEV": "STDDEV_SAMP", "VARIANCE": "VAR_SAMP", "SUM0": "SUM"}
"""Name of an aggregate function -> the name under which it is computed."""


def aggregates_in(tree: object) -> list[Tree]:
    """Return the calls of aggregate functions in a tree, with their FILTER, but not those in subqueries."""
    if not isinstance(tree, exp.Expression):
        return []
    if isinstance(tree, (exp.Subquery, exp.Select, exp.Window, OverWindow)):
        return []
    if _is_aggregate(tree) or (isinstance(tree, exp.Filter) and _is_aggregate(tree.this)):
        return [tree]
    return [aggregate for child in tree.iter_expressions() for aggregate in aggregates_in(child)]


def _is_aggregate(tree: Tree) -> bool:
    return is_user_aggregate(tree) or (isinstance(tree, exp.Anonymous) and str(tree.name).upper() in AGGREGATES)


def aggregates_of_select(tree: Tree) -> list[Tree]:
    """Return the aggregates in the list, HAVING, QUALIFY and ORDER BY of a SELECT, each once."""
    conditions = [clause.this for name in ("having", "qualify") if (clause := tree.args.get(name))]
    order = tree.args.get("order")
    order_keys = [] if order is None else [key.this for key in order.expressions]
    aggregates: list[Tree] = []
    for expression in [*tree.expressions, *conditions, *order_keys, *(tree.args.get("windows") or ())]:
        numbering_parts = [part for numbering in numberings_in(expression) for part in parts_of(numbering)]
        for part in (expression, *numbering_parts):
            for aggregate in aggregates_in(part):
                if aggregate not in aggregates:
                    aggregates.append(aggregate)
    return aggregates


class AggregateInput:
    """The columns that are computed from a relation before its rows are grouped and aggregated.

    Args:
        relation: the rows to group.
        binder: binds expressions over its columns.
    """

    def __init__(self, relation: Relation, binder: ExpressionBinder) -> None:
        self.relation, self._binder = relation, binder
        self.exprs: list[Expr] = []

    def column(self, expr: Expr) -> int:
        """Return the index of the column with an expression, which is added if there is none."""
        if expr not in self.exprs:
            self.exprs.append(expr)
        return self.exprs.index(expr)

    def call(self, tree: Tree) -> AggregateCall:
        """Return the call of an aggregate over these columns.

        Raises:
            SqlError: the function does not take these arguments.
        """
        filter_condition = tree.expression.this if isinstance(tree, exp.Filter) else None
        function = tree.this if isinstance(tree, exp.Filter) else tree
        if is_user_aggregate(function):
            ensure_rows_are_wanted(function)
            return self._user_call(function.this, function.expressions, filter_condition, tree)
        written_name, arguments = str(function.name).upper(), list(function.expressions)
        name = _SYNONYMS.get(written_name, written_name)
        if name in json_aggregates.BRACKETS:
            return self._json(function, filter_condition)
        is_distinct = bool(arguments) and isinstance(arguments[0], exp.Distinct)
        if is_distinct:
            arguments = [*arguments[0].expressions, *arguments[1:]]
        if name == "PERCENTILE":
            return self._percentile(arguments, is_distinct, filter_condition, tree)
        if name == "COUNT" and len(arguments) == 1 and isinstance(arguments[0], exp.Star):
            arguments = []
        elif not arguments:
            remedy = "write COUNT(*), or pass a column" if name == "COUNT" else f"pass a column, as in {name}(a)"
            raise SqlError(f"{name} has no argument", remedy, "", place_of(tree))
        ignores_nulls = bool(arguments) and isinstance(arguments[0], exp.IgnoreNulls)
        if arguments and isinstance(arguments[0], (exp.IgnoreNulls, exp.RespectNulls)):
            if name != "ARRAY_AGG":
                problem = f"{name} does not take IGNORE NULLS or RESPECT NULLS"
                raise SqlError(problem, "leave these words out: it always ignores NULL", "", place_of(tree))
            arguments[0] = arguments[0].this
        bound = [self._binder.bind(argument) for argument in arguments]
        options = tuple(argument.value for argument in bound[1:] if isinstance(argument, Literal))
        operands = bound[:1] if options else bound
        kind = _result_type(name, operands, filter_condition is not None, place_of(tree))
        if is_distinct or name == AggregateKind.COLLECT.value:
            _ensure_comparable(name, is_distinct, operands, place_of(tree))
        is_not_null = call("IS NOT NULL", operands, place_of(tree)) if ignores_nulls else None
        condition = self._condition_column(filter_condition, is_not_null, tree)
        columns = tuple(self.column(operand) for operand in operands)
        return AggregateCall(name, columns, kind, condition, is_distinct, options)

    def _user_call(
        self, function: Function, arguments: list[Tree], filter_condition: Tree | None, tree: Tree
    ) -> AggregateCall:
        """Return the call of a function of the user's own."""
        place, is_distinct = place_of(tree), bool(arguments) and isinstance(arguments[0], exp.Distinct)
        if is_distinct:
            arguments = [*arguments[0].expressions, *arguments[1:]]
        bound = [self._binder.bind(argument) for argument in arguments]
        column, template = arguments_of(function, bound, is_distinct, place)
        if is_distinct:
            _ensure_comparable(function.name, is_distinct, [column], place)
        kind = function.result(bound)
        assert isinstance(kind, DataType), kind
        condition = self._condition_column(filter_condition, None, tree)
        return AggregateCall(
            name_of(function), (self.column(column),), kind, condition, is_distinct, template, function
        )

    def _percentile(
        self, arguments: list[Tree], is_distinct: bool, filter_condition: Tree | None, tree: Tree
    ) -> AggregateCall:
        call_of = percentile(self._binder, arguments, is_distinct, tree)
        condition = self._condition_column(filter_condition, call_of.counts, tree)
        column = self.column(call_of.argument)
        return AggregateCall("PERCENTILE", (column,), call_of.type, condition, is_distinct, call_of.percentages)

    def _json(self, tree: Tree, filter_condition: Tree | None) -> AggregateCall:
        """Return the call that joins the elements of JSON_ARRAYAGG or JSON_OBJECTAGG."""
        element, is_element = json_aggregates.element(self._binder, tree)
        condition = self._condition_column(filter_condition, is_element, tree)
        return AggregateCall("LISTAGG", (self.column(element),), DataTypes.STRING(), condition)

    def _condition_column(self, filter_condition: Tree | None, own: Expr | None, tree: Tree) -> int | None:
        """Return the index of the column that says whether a row counts; None: every row does.

        Args:
            filter_condition: the condition of FILTER.
            own: the condition of the function itself.
        """
        bound = (
            None if filter_condition is None else self._binder.condition(filter_condition, "the condition of FILTER")
        )
        conditions = [condition for condition in (bound, own) if condition is not None]
        if not conditions:
            return None
        return self.column(conditions[0] if len(conditions) == 1 else call("AND", conditions, place_of(tree)))

    def project(self, extra: Sequence[int]) -> tuple[Relation, list[int]]:
        """Return a relation with these columns, and the indexes in it of further columns of the relation below.

        Args:
            extra: the further columns, as indexes in the relation below.
        """
        positions = [self.column(self.relation.column(index)) for index in extra]
        schema: list[Attribute] = []
        for position, expr in enumerate(self.exprs):
            attribute = self.relation.schema[expr.index] if isinstance(expr, Column) else None
            schema.append(attribute or Attribute(f"$f{position}", expr.type))
        return Project(tuple(schema), self.relation, tuple(self.exprs)), positions


def _ensure_comparable(name: str, is_distinct: bool, operands: list[Expr], place: Place | None) -> None:
    """Check that values which are counted each once can be compared.

    Raises:
        SqlError: they cannot.
    """
    for operand in operands:
        if operand.type.items or operand.type.root in (Root.ROW, Root.RAW):
            described = f"{name}(DISTINCT)" if is_distinct else name
            of_raw = "aggregate what a function makes of the objects"
            remedy = of_raw if operand.type.root is Root.RAW else "aggregate a part of them, or CAST them to STRING"
            raise SqlError(f"{described} of {operand.type}: its values cannot be compared", remedy, "", place)


def _result_type(name: str, arguments: list[Expr], is_filtered: bool, place: Place | None) -> DataType:
    """Return the type of an aggregate's result.

    Raises:
        SqlError: it does not take these arguments.
    """
    names = [kind.value for kind in AggregateKind]
    if name not in names:
        raise SqlError(f"{name} is not supported", f"the aggregates are {', '.join(names)}", "", place)
    if len(arguments) > 1:
        raise SqlError(f"{name} has {len(arguments)} arguments", "pass one column", "", place)
    try:
        return result_type(AggregateKind(name), arguments[0].type if arguments else None, is_filtered)
    except InvalidTypesError as error:
        raise SqlError(str(error), "see docs/sql.md", "", place) from error


__all__ = ["AggregateInput", "aggregates_in", "aggregates_of_select"]
