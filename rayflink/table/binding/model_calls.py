"""Binds ML_PREDICT(TABLE t, MODEL m, DESCRIPTOR(columns)): the rows of a table with what a model predicts for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from ..errors import SqlError
from ..functions.casts.casts import castable
from ..parsing.dialect import Descriptor, ModelArgument, NamedArgument, TableArgument
from ..parsing.statements import Tree
from ..plan.logical import Attribute, Project, Relation
from ..plan.typed import Expr, Function, Place
from ..types import DataType
from .expressions import apply, cast, place_of
from .joins import Queries
from .numbering import fresh_name
from .scope import Scope

ML_PREDICT = "ML_PREDICT"
_USAGE = "write ML_PREDICT(TABLE t, MODEL m, DESCRIPTOR(a_column))"
_NAMES = ("INPUT", "MODEL", "ARGS")
"""The arguments in their order."""


@dataclass(frozen=True)
class KnownModel:
    """A model that a query may call.

    Args:
        name: for messages.
        function: predicts; its result is a ROW of the output.
        inputs: types of the columns that it is given.
        outputs: names and types of the columns that it gives.
    """

    name: str
    function: Function
    inputs: tuple[DataType, ...]
    outputs: tuple[Attribute, ...]


Models: TypeAlias = Callable[[tuple[str, ...], "Place | None"], KnownModel]
"""The parts of a name, and where it stands -> the model; raises SqlError where there is none."""


def no_models(parts: tuple[str, ...], place: Place | None) -> KnownModel:
    """Refuse any model.

    Raises:
        SqlError: always.
    """
    raise SqlError(f"there is no model {'.'.join(parts)!r}", "create it first with CREATE MODEL", "", place)


def is_prediction(tree: Tree) -> bool:
    """Return whether a part of FROM calls ML_PREDICT."""
    return isinstance(tree, exp.Anonymous) and str(tree.name).upper() == ML_PREDICT


def bind_prediction(queries: Queries, call: Tree, models: Models) -> Relation:
    """Return the rows of the table with the columns of the model behind theirs.

    Raises:
        SqlError: the arguments are others, or do not fit the model.
    """
    table, model_argument, descriptor = _arguments(call)
    place = place_of(call)
    model = models(model_argument.this, place_of(model_argument) or place)
    relation, scope = queries.table(table.this)
    names = [identifier.name for identifier in descriptor.expressions]
    if len(names) != len(model.inputs):
        problem = f"DESCRIPTOR has {len(names)} columns, and the model {model.name} takes {len(model.inputs)}"
        raise SqlError(problem, "name a column for each of INPUT, in order", "", place)
    binder = queries.expressions(scope)
    try:
        values = [binder.bind(exp.column(exp.to_identifier(name, quoted=True))) for name in names]
    except SqlError as error:  # of a name, which has no place of its own
        raise error.at("", place) from error
    arguments = [
        _converted(value, kind, name, model, place)
        for value, kind, name in zip(values, model.inputs, names, strict=True)
    ]
    predict = apply(model.function, arguments, place)
    prediction = Attribute(fresh_name("$prediction", relation.schema), predict.type)
    columns = [relation.column(index) for index in range(len(relation.schema))]
    predicted = Project((*relation.schema, prediction), relation, (*columns, predict))
    return _unfolded(queries, predicted, relation, model)


def _unfolded(queries: Queries, predicted: Project, relation: Relation, model: KnownModel) -> Relation:
    """Return the fields of the prediction as columns; a name that the table has already gets a number."""
    width = len(relation.schema)
    binder = queries.expressions(Scope.of("", predicted.schema))
    row = exp.column(exp.to_identifier(predicted.schema[width].name, quoted=True))
    schema = list(relation.schema)
    fields: list[Expr] = [predicted.column(index) for index in range(width)]
    for output in model.outputs:
        field = binder.bind(exp.Dot(this=row.copy(), expression=exp.to_identifier(output.name, quoted=True)))
        schema.append(Attribute(_unique(output.name, schema), field.type))
        fields.append(field)
    return Project(tuple(schema), predicted, tuple(fields))


def _unique(name: str, schema: Sequence[Attribute]) -> str:
    """Return a name that no column has: `label`, else `label0`, as in Flink."""
    names = {column.name for column in schema}
    free = (f"{name}{number}" for number in range(len(names) + 1))
    return next(candidate for candidate in (name, *free) if candidate not in names)


def _arguments(call: Tree) -> tuple[Tree, Tree, Tree]:
    place = place_of(call)
    arguments: dict[str, Tree] = {}
    for position, argument in enumerate(call.expressions):
        is_named = isinstance(argument, NamedArgument)
        name = str(argument.this).upper() if is_named else (*_NAMES, "CONFIG", "")[min(position, 4)]
        if name == "CONFIG":
            remedy = "leave it out: options of the model are in its WITH, of asynchronous calls table.exec.async-scalar"
            raise SqlError("ML_PREDICT is called with a map of options", remedy, "", place)
        if name not in _NAMES or name in arguments:
            raise SqlError(f"ML_PREDICT is called with an argument {name or position + 1}", _USAGE, "", place)
        arguments[name] = argument.expression if is_named else argument
    kinds = dict(zip(_NAMES, (TableArgument, ModelArgument, Descriptor), strict=True))
    for name, kind in kinds.items():
        if not isinstance(arguments.get(name), kind):
            problem = f"ML_PREDICT is called with {'another' if name in arguments else 'no'} argument {name}"
            raise SqlError(problem, _USAGE, "", place)
    return arguments["INPUT"], arguments["MODEL"], arguments["ARGS"]


def _converted(value: Expr, kind: DataType, name: str, model: KnownModel, place: Place | None) -> Expr:
    if not castable(value.type, kind):
        problem = f"column {name!r} is {value.type}, and the model {model.name} takes {kind}"
        raise SqlError(problem, "cast the column in a query below, or change INPUT", "", place)
    return value if value.type.nullable() == kind.nullable() else cast(value, kind.nullable())


__all__ = ["ML_PREDICT", "KnownModel", "Models", "bind_prediction", "is_prediction", "no_models"]
