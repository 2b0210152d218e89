"""Aggregate functions of the user's own in a SELECT."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from ..errors import SqlError
from ..parsing.dialect import PathCall
from ..parsing.program_nodes import Applied
from ..parsing.statements import Tree
from ..plan.typed import Expr, Function, Literal, Place
from ..types import DataTypes
from ..user_functions.aggregate_kernels import Template, kernel_of
from .expressions import AGGREGATES, call, place_of


def is_user_aggregate(tree: object) -> bool:
    """Return whether a tree is a call of an aggregate function of the user's own, as `with_user_aggregates` has it."""
    return isinstance(tree, Applied) and bool(tree.this.aggregates)


def with_user_aggregates(tree: Tree, functions: Mapping[str, Function]) -> Tree:
    """Return a SELECT in which calls of the user's aggregate functions by name are calls of these functions.

    Args:
        functions: the user's functions by their names in capitals.
    """
    aggregates = {name: function for name, function in functions.items() if function.aggregates}
    if not aggregates:
        return tree

    def applied(node: Tree) -> Tree:
        function = aggregates.get(str(node.name).upper()) if isinstance(node, exp.Anonymous) else None
        if function is None:
            return node
        replaced = Applied(this=function, expressions=[argument.copy() for argument in node.expressions])
        replaced.meta.update(node.meta)
        return replaced

    return tree.transform(applied)


def with_full_names(tree: Tree, function_of: Callable[[tuple[str, ...]], Function]) -> Tree:
    """Return a query in which calls by full names, as `shop.f(x)`, are calls of these functions.

    Args:
        function_of: the parts of a name -> the function; raises KeyError where there is none.

    Raises:
        SqlError: there is none of a name.
    """
    if tree.find(PathCall) is None:
        return tree

    def applied(node: Tree) -> Tree:
        if not isinstance(node, PathCall):
            return node
        arguments = [argument.transform(applied) for argument in node.expressions]
        replaced = Applied(this=_function(node, function_of), expressions=arguments)
        replaced.meta.update(node.meta)
        return replaced

    return tree.transform(applied)


def _function(call: Tree, function_of: Callable[[tuple[str, ...]], Function]) -> Function:
    try:
        return function_of(call.this)
    except KeyError:
        problem = f"there is no function {'.'.join(call.this)}"
        remedy = "create it in that database; functions of SQL are written without one"
        raise SqlError(problem, remedy, "", place_of(call)) from None
    except SqlError as error:
        raise (error if error.place else error.at("", place_of(call))) from error


def ensure_rows_are_wanted(call: Tree) -> None:
    """Check that a table aggregate function is called where its rows have a place, and no other is.

    Raises:
        SqlError: it is not so.
    """
    function, is_wanted = call.this, bool(call.args.get("gives_rows"))
    if function.gives_rows and not is_wanted:
        problem = f"{function.name} is a table aggregate function, whose rows have no place here"
        raise SqlError(problem, "call it by flat_aggregate of a Table, or of its groups", "", place_of(call))
    if is_wanted and not function.gives_rows:
        problem = f"{function.name} gives one value, not rows"
        raise SqlError(problem, "call it by select or aggregate, or make a function with udtaf", "", place_of(call))


def name_of(function: Function) -> str:
    """Return the name of a function's calls in plans, where no built-in function has it."""
    return function.name.lower() if function.name.upper() in AGGREGATES else function.name


def arguments_of(
    function: Function, arguments: Sequence[Expr], is_distinct: bool, place: Place | None
) -> tuple[Expr, Template]:
    """Return the column that a call reads, and which of its arguments are constants.

    Raises:
        SqlError: it does not take these arguments.
    """
    wanted = function.result(arguments)
    if isinstance(wanted, str):
        kinds = ", ".join(str(argument.type) for argument in arguments)
        raise SqlError(f"{function.name} does not take ({kinds})", f"it takes {wanted}", "", place)
    kernel = kernel_of(function)
    columns: list[Expr] = []
    template: list[tuple[object] | None] = []
    for argument in arguments:
        is_constant = isinstance(argument, Literal) and not kernel.takes_columns
        template.append((argument.scalar.as_py(),) if isinstance(argument, Literal) and is_constant else None)
        if not is_constant:
            columns.append(argument)
    if is_distinct and len(columns) > 1:
        problem = f"{function.name}(DISTINCT ...) of {len(columns)} columns"
        remedy = "give it one column, and constants; or select the distinct rows in a query below"
        raise SqlError(problem, remedy, "", place)
    if not columns:  # rows are counted by a column
        return Literal(DataTypes.BOOLEAN(False), True), tuple(template)
    return columns[0] if len(columns) == 1 else call("ROW", columns, place), tuple(template)


__all__ = ["arguments_of", "ensure_rows_are_wanted", "is_user_aggregate", "name_of", "with_user_aggregates"]
