"""Expressions of sqlglot's trees as typed ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, ClassVar

from sqlglot import exp

from ..errors import SqlError, nearest
from ..functions.casts.casts import castable
from ..functions.value_lists import LONG, ValueList
from ..parsing.chains import chain_of, join_in_pairs
from ..parsing.dialect import Interval, Typed
from ..parsing.places import place_of as place_of
from ..parsing.program_nodes import Applied, FieldAt, OverWindow, Value, WindowPart, joins_strings
from ..parsing.statements import Tree
from ..plan.typed import Call, Expr, Function, Literal, Place, known_names, named
from ..types import DataType, DataTypes, Root
from . import literals
from .scope import Scope

AGGREGATES = ("COUNT", "SUM", "SUM0", "MIN", "MAX", "AVG", "STDDEV_POP", "STDDEV_SAMP", "STDDEV", "VAR_POP", "VAR_SAMP",
              "VARIANCE", "COLLECT", "LISTAGG", "FIRST_VALUE", "LAST_VALUE", "ARRAY_AGG",
              "PERCENTILE", "JSON_ARRAYAGG", "JSON_OBJECTAGG")  # fmt: skip
"""Aggregate functions, which stand where rows are grouped."""
_OF_JSON = "there is no type VARIANT: keep strings of JSON, and take what is in them by JSON_VALUE and JSON_QUERY"
_OF_MODELS = "models are called by FROM ML_PREDICT(TABLE t, MODEL m, DESCRIPTOR(a_column)) alone"
_ABSENT = {
    "PARSE_JSON": _OF_JSON, "TRY_PARSE_JSON": _OF_JSON,
    "BITMAP_": "there is no type BITMAP: count by COUNT(DISTINCT ...), keep values by ARRAY_AGG(DISTINCT ...)",
    "APPROX_COUNT_DISTINCT": "write COUNT(DISTINCT ...), which is exact", "ML_": _OF_MODELS, "AI_": _OF_MODELS,
    "TO_CHANGELOG": "write FROM TO_CHANGELOG(input => TABLE t)",
    "FROM_CHANGELOG": "write FROM FROM_CHANGELOG(input => TABLE t)",
}  # fmt: skip
"""Prefix of the names of Flink's functions that are not supported -> the remedy."""
_BINARY = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<",
    exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.And: "AND", exp.Or: "OR", exp.DPipe: "||",
    exp.SimilarTo: "SIMILAR TO",
}  # fmt: skip


def call(name: str, args: Sequence[Expr], place: Place | None = None, options: tuple[Any, ...] = ()) -> Call:
    """Return a call of a known function.

    Raises:
        SqlError: the arguments are not those that it takes.
    """
    return apply(named(name), args, place, options)


def apply(function: Function, args: Sequence[Expr], place: Place | None, options: tuple[Any, ...] = ()) -> Call:
    """Return a call of a function, with the type that it gives for such arguments.

    Raises:
        SqlError: it does not take them.
    """
    kinds = ", ".join(str(arg.type) for arg in args)
    result = function.result(args, options)
    if isinstance(result, str):
        raise SqlError(f"{function.name} does not take ({kinds})", f"it takes {result}", "", place)
    return Call(result, function, tuple(args), options, place=place)


def cast(expr: Expr, target: DataType) -> Expr:
    """Return the expression in another type."""
    if expr.type == target:
        return expr
    if isinstance(expr, Literal) and expr.value is None:
        return Literal(target.nullable(), None, place=expr.place)
    nullable = target.as_nullable(expr.type.is_nullable or target.is_nullable and expr.type.is_nullable)
    return Call(nullable, named("CAST"), (expr,), place=expr.place)


def is_built_in(name: str) -> bool:
    """Return whether SQL has a function of a name, which is in capitals."""
    if name in AGGREGATES:
        return True
    try:
        named(name)
    except KeyError:
        return False
    return True


class ExpressionBinder:
    """Binds expressions over the columns of a scope.

    Args:
        scope: the columns there are.
        known: trees -> what they are, such as aggregates that were computed below.
        functions: the user's functions by their names in capitals.
    """

    def __init__(
        self,
        scope: Scope,
        known: Callable[[Tree], Expr | None] = lambda tree: None,
        functions: Mapping[str, Function] | None = None,
    ) -> None:
        self._scope, self._known, self._functions = scope, known, functions or {}

    @property
    def functions(self) -> Mapping[str, Function]:
        """Return the user's functions by their names in capitals."""
        return self._functions

    def over(self, scope: Scope) -> ExpressionBinder:
        """Return the same over other columns."""
        return ExpressionBinder(scope, self._known, self._functions)

    def bind(self, tree: Tree) -> Expr:
        """Return the typed expression of a tree.

        Raises:
            SqlError: a name is not known, types do not fit, or a construct is not supported.
        """
        known_expr = self._known(tree)
        if known_expr is not None:
            return known_expr
        kind = type(tree)
        if (parts := chain_of(tree)) is not None:
            return self._chain(_BINARY[kind], parts)
        if kind in _BINARY:
            if joins_strings(tree):
                return self._sum(tree)
            return call(_BINARY[kind], [self.bind(tree.this), self.bind(tree.expression)], place_of(tree))
        binder = self._BINDERS.get(kind)
        if binder is None:
            text = tree.sql() if kind.__module__.startswith("sqlglot") else kind.__name__
            raise SqlError(f"{text} is not supported here", "see docs/sql.md for what is", "", place_of(tree))
        bound: Expr = binder(self, tree)
        return bound

    def _sum(self, tree: Tree) -> Expr:
        """Return the sum of two values, where a string is joined with the other one's."""
        sides = [self.bind(side) for side in (tree.this, tree.expression)]
        if not any(side.type.is_text for side in sides):
            return call("+", sides, place_of(tree))
        place = place_of(tree)
        strings = [side if side.type.is_text else self._cast("CAST", side, DataTypes.STRING(), place) for side in sides]
        return call("||", strings, place)

    def _chain(self, name: str, parts: Sequence[Tree]) -> Expr:
        """Many conditions, each bound for itself."""
        return join_in_pairs([self.bind(part) for part in parts], lambda left, right: call(name, [left, right]))

    def condition(self, tree: Tree, what: str) -> Expr:
        """Return an expression that is true, false or unknown.

        Raises:
            SqlError: it is of another type.
        """
        expression = self.bind(tree)
        if expression.type.root is not Root.BOOLEAN:
            remedy = "write a condition, such as a comparison"
            raise SqlError(f"{what} is of type {expression.type}, not BOOLEAN", remedy, "", place_of(tree))
        return expression

    def _literal(self, tree: Tree) -> Expr:
        return literals.plain(tree, place_of(tree))

    def _bytes(self, tree: Tree) -> Expr:
        return literals.binary(tree.name, place_of(tree))

    def _overlaps(self, tree: Tree) -> Expr:
        sides = (tree.this, tree.expression)
        return call("OVERLAPS", [self.bind(moment) for side in sides for moment in side.expressions], place_of(tree))

    def _boolean(self, tree: Tree) -> Expr:
        return Literal(DataTypes.BOOLEAN(False), bool(tree.this), place=place_of(tree))

    def _null(self, tree: Tree) -> Expr:
        return Literal(DataTypes.NULL(), None, place=place_of(tree))

    def _column(self, tree: Tree) -> Expr:
        names = tuple(part.name for part in tree.parts)
        place = place_of(tree)
        if len(names) == 1 and not tree.this.quoted and names[0].upper() in NILADIC:
            try:
                return self._fields(*self._scope.find(names, place), place)
            except SqlError:
                return call(names[0].upper(), (), place)
        return self._fields(*self._scope.find(names, place), place)

    def _fields(self, expr: Expr, names: Sequence[str], place: Place | None) -> Expr:
        for name in names:
            field = expr.type.field(name)
            if expr.type.root is not Root.ROW or field is None:
                field_names = [other.name for other in expr.type.fields]
                problem = f"{expr} of type {expr.type} has no field {name!r}{nearest(name, field_names)}"
                raise SqlError(problem, f"its fields are {', '.join(field_names) or 'none'}", "", place)
            kind = field.type.as_nullable(field.type.is_nullable or expr.type.is_nullable)
            expr = Call(kind, named(".field"), (expr,), (name,), place=place)
        return expr

    def _dot(self, tree: Tree) -> Expr:
        return self._fields(self.bind(tree.this), [tree.expression.name], place_of(tree))

    def _paren(self, tree: Tree) -> Expr:
        return self.bind(tree.this)

    def _negative(self, tree: Tree) -> Expr:
        inner = self.bind(tree.this)
        if isinstance(inner, Literal) and inner.value is not None and inner.type.is_numeric:
            if inner.type.root is Root.BIGINT and inner.value == 2**31:
                return Literal(DataTypes.INT(False), -(2**31), place=place_of(tree))
            is_decimal = isinstance(inner.value, Decimal) and inner.value != 0
            negative = inner.value.copy_negate() if is_decimal else -inner.value  # "-" rounds to 28 digits
            return Literal(inner.type, negative, place=place_of(tree))
        return call("negate", [inner], place_of(tree))

    def _not(self, tree: Tree) -> Expr:
        inner = tree.this
        place = place_of(tree)
        if isinstance(inner, exp.Is):
            return call(f"IS NOT {self._is_what(inner)}", [self.bind(inner.this)], place)
        return call("NOT", [self.bind(inner)], place)

    def _is(self, tree: Tree) -> Expr:
        return call(f"IS {self._is_what(tree)}", [self.bind(tree.this)], place_of(tree))

    def _is_what(self, tree: Tree) -> str:
        what = tree.expression
        if isinstance(what, exp.Null):
            return "NULL"
        if isinstance(what, exp.Boolean):
            return "TRUE" if what.this else "FALSE"
        name = what.name.upper() if isinstance(what, (exp.Column, exp.Var)) else ""
        if name == "UNKNOWN":
            return name
        if name == "JSON" or isinstance(what, exp.JSON):
            return f"JSON {what.args.get('this') or ''}".strip() if isinstance(what, exp.JSON) else "JSON"
        raise SqlError("IS is followed by an unknown word", "write NULL, TRUE, FALSE or UNKNOWN", "", place_of(tree))

    def _distinct_from(self, tree: Tree) -> Expr:
        name = "IS NOT DISTINCT FROM" if isinstance(tree, exp.NullSafeEQ) else "IS DISTINCT FROM"
        return call(name, [self.bind(tree.this), self.bind(tree.expression)], place_of(tree))

    def _between(self, tree: Tree) -> Expr:
        value, low, high = (self.bind(tree.args[name]) for name in ("this", "low", "high"))
        place = place_of(tree)

        def between(least: Expr, most: Expr) -> Expr:
            return call("AND", [call(">=", [value, least], place), call("<=", [value, most], place)], place)

        in_order = between(low, high)
        return call("OR", [in_order, between(high, low)], place) if tree.args.get("symmetric") else in_order

    def _in(self, tree: Tree) -> Expr:
        if tree.args.get("query") is not None:
            remedy = "make it a condition of WHERE, alone or joined by AND; else join the tables, or list the values"
            raise SqlError("IN with a query is not supported here", remedy, "", place_of(tree))
        value, others = self.bind(tree.this), tree.expressions
        bound = [literals.plain(item) if isinstance(item, exp.Literal) else self.bind(item) for item in others]
        constants = [item for item in bound if isinstance(item, Literal)]
        if len(bound) > LONG and len(constants) == len(bound):
            return call("IN", [value], place_of(tree.this), (ValueList.of(constants),))
        return call("IN", [value, *bound], place_of(tree))

    def _like(self, tree: Tree) -> Expr:
        return self._matched("LIKE", tree, [tree.this, tree.expression])

    def _escape(self, tree: Tree) -> Expr:
        inner = tree.this
        name = "LIKE" if isinstance(inner, exp.Like) else "SIMILAR TO"
        return self._matched(name, inner, [inner.this, inner.expression, tree.expression])

    def _matched(self, name: str, tree: Tree, parts: Sequence[Tree]) -> Expr:
        match = call(name, [self.bind(part) for part in parts], place_of(tree))
        return call("NOT", [match], place_of(tree)) if tree.args.get("negate") else match

    def _case(self, tree: Tree) -> Expr:
        place = place_of(tree)
        value = None if tree.this is None else self.bind(tree.this)
        args: list[Expr] = []
        for branch in tree.args["ifs"]:
            when = self.bind(branch.this)
            args.append(when if value is None else call("=", [value, when], place))
            args.append(self.bind(branch.args["true"]))
        default = tree.args.get("default")
        args.append(Literal(DataTypes.NULL(), None) if default is None else self.bind(default))
        return call("CASE", args, place)

    def _interval(self, tree: Tree) -> Expr:
        return literals.interval(tree.this, tree.args["unit"], tree.args.get("to"), place_of(tree))

    def _tuple(self, tree: Tree) -> Expr:
        return call("ROW", [self.bind(item) for item in tree.expressions], place_of(tree))

    def _bracket(self, tree: Tree) -> Expr:
        if len(tree.expressions) != 1:
            problem = f"{len(tree.expressions)} values in the brackets after {tree.this.sql()}"
            raise SqlError(problem, "give one: an index of an array, or a key of a map", "", place_of(tree))
        [index] = tree.expressions
        return call("[]", [self.bind(tree.this), self.bind(index)], place_of(tree))

    def _subquery(self, tree: Tree) -> Expr:
        remedy = "write it in SELECT, WHERE or HAVING, or join the tables"
        raise SqlError("a query as a value is not supported here", remedy, "", place_of(tree))

    def _window(self, tree: Tree) -> Expr:
        remedy = "use functions with OVER in SELECT and QUALIFY, or select them in a query below"
        raise SqlError("OVER is not supported here", remedy, "", place_of(tree))

    def _function(self, tree: Tree) -> Expr:
        name, place = str(tree.name).upper(), place_of(tree)
        if name in AGGREGATES and name not in self._functions:
            remedy = "use aggregates in SELECT and HAVING"
            raise SqlError(f"{name} is an aggregate function, which is not allowed here", remedy, "", place)
        if name.endswith(" LITERAL"):
            return literals.timed(name.split()[0], tree.expressions[0].this, place)
        if name in ("CAST", "TRY_CAST"):
            value, kind = tree.expressions
            return self._cast(name, self.bind(value), kind.this, place)
        function = self._functions.get(name)
        if function is None:
            try:
                function = named(name)
            except KeyError:
                if replacement := next((text for start, text in _ABSENT.items() if name.startswith(start)), None):
                    raise SqlError(f"{name} is not supported yet", replacement, "", place) from None
                names = [*known_names(), *self._functions, *AGGREGATES]
                remedy = "see docs/sql-functions.md, or register it with create_temporary_function"
                raise SqlError(f"there is no function {name}{nearest(name, names)}", remedy, "", place) from None
        if function.aggregates:
            remedy = "use aggregates in SELECT and HAVING"
            raise SqlError(f"{name} is an aggregate function, which is not allowed here", remedy, "", place)
        if function.gives_rows:
            remedy = f"write it in FROM: FROM t, LATERAL TABLE({name}(...)) AS r(a, b)"
            raise SqlError(f"{name} is a table function, which is not allowed here", remedy, "", place)
        args = [argument for argument in tree.expressions if not isinstance(argument, (exp.Var, Typed))]
        options = tuple(
            argument.name if isinstance(argument, exp.Var) else argument.this
            for argument in tree.expressions
            if isinstance(argument, (exp.Var, Typed))
        )
        return apply(function, [self.bind(argument) for argument in args], place, options)

    # what programs write, and no text

    def _value(self, tree: Tree) -> Expr:
        value: Expr = tree.this
        return value

    def _applied(self, tree: Tree) -> Expr:
        if tree.this.aggregates:
            remedy = "use aggregates in SELECT and HAVING"
            problem = f"{tree.this.name} is an aggregate function, which is not allowed here"
            raise SqlError(problem, remedy, "", place_of(tree))
        return apply(tree.this, [self.bind(argument) for argument in tree.expressions], place_of(tree))

    def _field_at(self, tree: Tree) -> Expr:
        row, index = self.bind(tree.this), int(tree.args["index"])
        names = [field.name for field in row.type.fields]
        if not 0 <= index < len(names):
            remedy = f"its fields are {', '.join(names) or 'none'}, counted from 0"
            raise SqlError(f"{row} of type {row.type} has no field {index}", remedy)
        return self._fields(row, [names[index]], None)

    def _window_part(self, tree: Tree) -> Expr:
        name, part = tree.this.name, str(tree.args["part"]).lower()
        remedy = f"select it behind window(....alias({name!r})).group_by(col({name!r}))"
        raise SqlError(f"{name}.{part} names no window of this query", remedy)

    def _over(self, tree: Tree) -> Expr:
        name = tree.args["window"].name
        remedy = f"name it before select: over_window(Over.order_by(col('ts')).alias({name!r}))"
        raise SqlError(f"there is no over window {name!r}", remedy)

    def _cast(self, name: str, value: Expr, kind: DataType, place: Place | None) -> Expr:
        if not castable(value.type, kind):
            remedy = "see the table of casts in docs/sql.md"
            raise SqlError(f"{value.type} cannot be cast to {kind}", remedy, "", place)
        nullable = name == "TRY_CAST" or value.type.is_nullable
        return Call(kind.as_nullable(nullable), named(name), (value,), place=place)

    _BINDERS: ClassVar[dict[type, Callable[[Any, Tree], Expr]]] = {
        exp.Literal: _literal,
        exp.HexString: _bytes,
        exp.Overlaps: _overlaps,
        exp.Boolean: _boolean,
        exp.Null: _null,
        exp.Column: _column,
        exp.Dot: _dot,
        exp.Paren: _paren,
        exp.Neg: _negative,
        exp.Not: _not,
        exp.Is: _is,
        exp.NullSafeEQ: _distinct_from,
        exp.NullSafeNEQ: _distinct_from,
        exp.Between: _between,
        exp.In: _in,
        exp.Like: _like,
        exp.Escape: _escape,
        exp.Case: _case,
        Interval: _interval,
        exp.Tuple: _tuple,
        exp.Bracket: _bracket,
        exp.Subquery: _subquery,
        exp.Select: _subquery,
        exp.Exists: _subquery,
        exp.Window: _window,
        exp.Anonymous: _function,
        Value: _value,
        Applied: _applied,
        FieldAt: _field_at,
        WindowPart: _window_part,
        OverWindow: _over,
    }


NILADIC = ("CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "LOCALTIME", "LOCALTIMESTAMP", "CURRENT_ROW_TIMESTAMP",
           "CURRENT_DATABASE")  # fmt: skip
"""Functions that are written without parentheses."""
