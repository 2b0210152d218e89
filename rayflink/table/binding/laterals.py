"""Binds what stands beside each row of FROM: UNNEST of a collection, and LATERAL TABLE of a table function."""

from __future__ import annotations

from sqlglot import exp

from ..errors import SqlError, nearest
from ..parsing.dialect import TABLE_FUNCTIONS
from ..parsing.program_nodes import Applied
from ..parsing.statements import Tree
from ..plan.logical import Attribute, Filter, Relation, Unnest, Values
from ..plan.typed import Expr, Literal
from ..types import DataType, DataTypes, Root
from ..user_functions.process.kernels import ProcessKernel
from .expressions import ExpressionBinder, apply, is_built_in, place_of
from .scope import Scope

_USAGE = "write t CROSS JOIN UNNEST(a) AS u(x), t, LATERAL TABLE(f(a)) AS u(x, y), or LEFT JOIN of these ON TRUE"


def is_lateral(tree: Tree) -> bool:
    """Return whether a part of FROM is UNNEST or a table function that is no window's."""
    if isinstance(tree, (exp.Unnest, exp.Lateral)):
        return True
    called = tree.this if isinstance(tree, exp.Table) else None
    if isinstance(called, Applied):
        return True
    return isinstance(called, exp.Anonymous) and str(called.name).upper() not in (*TABLE_FUNCTIONS, "ML_PREDICT")


def bind_lateral(binder: ExpressionBinder, tree: Tree) -> tuple[Relation, Scope]:
    """Return the rows of a collection or a table function of constants.

    Raises:
        SqlError: it is none.
    """
    relation, alias = _unnest(binder, Values((), ((),)), tree, False)
    return relation, Scope.of(alias, relation.schema)


def add_lateral(binder: ExpressionBinder, left: Relation, scope: Scope, join: Tree) -> tuple[Relation, Scope] | None:
    """Join the relation with the rows computed for each of its rows; None: it is a join with another table.

    Args:
        binder: over the columns of `left`.
        scope: these columns.

    Raises:
        SqlError: the collection or the function is none, or the join is of another kind.
    """
    if not is_lateral(join.this):
        return None
    method, side, kind = (str(join.args.get(name) or "").upper() for name in ("method", "side", "kind"))
    kinds = ("", "CROSS", "INNER") if not side else ("", "OUTER")
    if method or side not in ("", "LEFT") or kind not in kinds or join.args.get("using"):
        words = " ".join(word for word in (method, side, kind, "JOIN") if word)
        raise SqlError(f"{words} is not possible with UNNEST or LATERAL TABLE", _USAGE, "", place_of(join))
    condition = join.args.get("on")
    is_true = condition is None or (isinstance(condition, exp.Boolean) and bool(condition.this))
    if side == "LEFT" and (condition is None or not is_true):
        raise SqlError(
            "LEFT JOIN with UNNEST or LATERAL TABLE takes no condition but ON TRUE", _USAGE, "", place_of(join)
        )
    relation: Relation
    relation, alias = _unnest(binder, left, join.this, side == "LEFT")
    both = scope.beside(Scope.of(alias, relation.schema[scope.width :]))
    if condition is not None and not is_true:
        bound = binder.over(both).condition(condition, "the condition of JOIN")
        relation = Filter(relation.schema, relation, bound, place=place_of(condition))
    return relation, both


def _unnest(binder: ExpressionBinder, left: Relation, tree: Tree, is_left: bool) -> tuple[Unnest, str]:
    """Return the join, and the name of what is joined."""
    place = place_of(tree)
    has_ordinality = isinstance(tree, exp.Unnest) and bool(tree.args.get("offset"))
    if isinstance(tree, exp.Unnest):
        if len(tree.expressions) != 1:
            raise SqlError(f"UNNEST has {len(tree.expressions)} arguments", "pass one collection", "", place)
        collection = binder.bind(tree.expressions[0])
    else:
        collection = _table_function_call(binder, tree)
    fields = _fields(collection)
    if fields is None:
        remedy = "give an ARRAY, a MAP or a MULTISET"
        raise SqlError(f"UNNEST has the argument {collection} of type {collection.type}", remedy, "", place)
    if has_ordinality:
        fields.append(("ORDINALITY", DataTypes.INT(False)))
    alias = tree.args.get("alias")
    names = [name for name, _ in fields]
    column_names = [column.name for column in alias.columns] if alias is not None else []
    if column_names and has_ordinality and isinstance(tree.args["offset"], exp.Identifier):
        column_names.append(tree.args["offset"].name)
    if not column_names and alias is not None and alias.name and len(fields) == 1 and isinstance(tree, exp.Unnest):
        column_names = [alias.name]  # UNNEST(a) AS x is a column x
    if column_names and len(column_names) != len(names):
        problem = f"{len(column_names)} names for {len(names)} columns: {', '.join(names)}"
        raise SqlError(problem, "name all of them, or none", "", place)
    attributes = tuple(
        Attribute(name, kind.as_nullable(kind.is_nullable or is_left))
        for name, (_, kind) in zip(column_names or names, fields, strict=True)
    )
    columns = tuple(range(len(left.schema)))
    relation = Unnest((*left.schema, *attributes), left, collection, columns, is_left, has_ordinality, place=place)
    return relation, "" if alias is None else alias.name


def _table_function_call(binder: ExpressionBinder, tree: Tree) -> Expr:
    """Return the call of a table function, as the array of the rows that it gives."""
    call = tree.this
    if isinstance(call, exp.Anonymous) and str(call.name).upper() == "TABLE" and len(call.expressions) == 1:
        call = call.expressions[0]
    place = place_of(call) or place_of(tree)
    if isinstance(call, Applied) and call.this.gives_rows and not call.this.aggregates:
        return apply(call.this, [binder.bind(argument) for argument in call.expressions], place)
    if not isinstance(call, exp.Anonymous):
        raise SqlError("LATERAL is not followed by a table function", _USAGE, "", place)
    name = str(call.name).upper()
    function = binder.functions.get(name)
    if function is not None and isinstance(function.kernel, ProcessKernel):
        remedy = f"let it stand in FROM by itself: FROM {name}(TABLE t PARTITION BY k)"
        raise SqlError(f"{name} is a process table function, which takes no rows one by one", remedy, "", place)
    if function is None and is_built_in(name):
        remedy = "give yours another name, call it by its full name, or use create_temporary_system_function"
        raise SqlError(f"{name} is a function of SQL, which gives no rows", remedy, "", place)
    if function is None or not function.gives_rows or function.aggregates:
        tables = [*TABLE_FUNCTIONS, *(known for known, function in binder.functions.items()
                  if function.gives_rows and not function.aggregates)]  # fmt: skip
        problem = f"there is no table function {name}{nearest(name, tables)}"
        remedy = f"the table functions are {', '.join(tables)}; register one with udtf and create_temporary_function"
        raise SqlError(problem, remedy, "", place)
    return apply(function, [binder.bind(argument) for argument in call.expressions], place)


def _fields(collection: Expr) -> list[tuple[str, DataType]] | None:
    """Return names and types of the parts of an element; None: it is no collection."""
    kind = collection.type
    if isinstance(collection, Literal) and collection.value is None:
        return None
    if kind.root is Root.MAP:
        return [("KEY", kind.items[0]), ("VALUE", kind.items[1])]
    if kind.root not in (Root.ARRAY, Root.MULTISET):
        return None
    item = kind.items[0]
    if item.root is not Root.ROW:
        return [("EXPR$0", item)]
    return [(field.name, field.type.as_nullable(field.type.is_nullable or item.is_nullable)) for field in item.fields]


__all__ = ["add_lateral", "bind_lateral", "is_lateral"]
