"""Expressions as conditions of the Pattern API of `rayflink.cep`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from sqlglot import exp

from rayflink.cep.column_conditions import BoundCondition, ColumnCondition
from rayflink.cep.errors import MalformedPatternException
from rayflink.common.errors import InvalidFunction, InvalidTypesError
from rayflink.common.user_code.call_sites import call_site

from ..binding.expressions import AGGREGATES, ExpressionBinder
from ..binding.scope import Scope
from ..conversion.arrow_columns import normalize_types, type_of
from ..errors import SqlError, nearest
from ..parsing.program_nodes import Applied, Value
from ..parsing.statements import Tree
from ..plan.logical import Attribute
from ..plan.typed import Evaluation, Expr, Literal, Session, known_names, named
from ..types import DataTypes
from .checked_arithmetic import check_whole_numbers
from .expression_text import shown

if TYPE_CHECKING:
    import pyarrow

_LAMBDA = "pass a callable of the event instead, which may call anything"
_NO_TRUTHS = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.Alias)
_BUILT_IN = {"CAST", "TRY_CAST"}
"""Functions that the binder knows by itself."""


class ExpressionCondition(ColumnCondition):
    """An expression as a condition on the columns of events.

    Args:
        tree: of the expression.
    Raises:
        InvalidFunction: it is no condition, or depends on more than the columns.
    """

    def __init__(self, tree: Tree) -> None:
        super().__init__(tuple(dict.fromkeys(str(column.name) for column in tree.find_all(exp.Column))))
        self._tree = tree
        self._refuse_what_is_none()

    def bind(self, schema: pyarrow.Schema) -> BoundCondition:
        """Return the condition for columns of these types.

        Raises:
            MalformedPatternException: it does not take such types.
        """
        try:
            normal = _normal_schema(schema)
            condition = self._bound_to(normal)
        except (SqlError, InvalidTypesError) as error:
            problem = f"the condition {shown(self._tree)}: {error.problem}"
            raise MalformedPatternException(problem, error.remedy) from error
        session = Session()

        def evaluate(columns: Sequence[pyarrow.Array], rows: int) -> pyarrow.BooleanArray:
            typed = [column if column.type == field.type else column.cast(field.type)
                     for column, field in zip(columns, normal, strict=True)]  # fmt: skip
            return Evaluation(typed, rows, session).column(condition)

        return evaluate

    def _bound_to(self, schema: pyarrow.Schema) -> Expr:
        import pyarrow

        scope = Scope.of("", tuple(Attribute(field.name, type_of(field)) for field in schema))
        nulls = {field.name for field in schema if pyarrow.types.is_null(field.type)}

        def known(tree: Tree) -> Expr | None:
            is_null = isinstance(tree, exp.Column) and tree.name in nulls
            return Literal(DataTypes.NULL(), None) if is_null else None

        condition = ExpressionBinder(scope, known).condition(self._tree, f"the condition {shown(self._tree)}")
        return check_whole_numbers(condition)

    def _refuse_what_is_none(self) -> None:
        tree = self._tree
        is_value = isinstance(tree, Value) and not isinstance(tree.this.value, bool)
        if isinstance(tree, _NO_TRUTHS) or is_value:
            self._refuse("it is neither true nor false", "write a condition, such as a comparison: col('price') > 800")
        for node in tree.walk():
            if isinstance(node, Applied):
                self._refuse(f"it calls the function {node.this.name}() of the program", _LAMBDA)
            if not isinstance(node, exp.Anonymous):
                continue
            name = str(node.name).upper()
            if name in AGGREGATES:
                self._refuse(f"{name} is an aggregate, and a condition sees one event", _LAMBDA)
            if name in _BUILT_IN:
                continue
            try:
                function = named(name)
            except KeyError:
                self._refuse(f"there is no function {name}{nearest(name, known_names())}", _LAMBDA)
            if not function.is_deterministic:
                self._refuse(f"{name} depends on more than the columns of the event", _LAMBDA)

    def _refuse(self, problem: str, remedy: str) -> NoReturn:
        expression = f"the expression {shown(self._tree)}"
        raise InvalidFunction(f"{expression} is no condition of a pattern: {problem}", remedy, call_site())


def _normal_schema(schema: pyarrow.Schema) -> pyarrow.Schema:
    """Return the types in the forms that tables have, and all whole numbers as BIGINT, like those of Python.

    Columns of nulls alone stay as they are.
    """
    import pyarrow

    fields = []
    for field in schema:
        kind = field.type
        if not pyarrow.types.is_null(kind):
            field = normalize_types(pyarrow.table({field.name: pyarrow.array([], kind)})).schema.field(0)
        fields.append(field.with_type(pyarrow.int64()) if pyarrow.types.is_integer(field.type) else field)
    return pyarrow.schema(fields)


__all__ = ["ExpressionCondition"]
