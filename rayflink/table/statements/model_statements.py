"""CREATE, ALTER, DROP, SHOW and DESCRIBE of models, and the functions that predict by them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence

from rayflink.common.configuration import shown_value
from rayflink.common.types import Row

from ..binding.model_calls import KnownModel
from ..catalog.catalog_objects import CatalogModel
from ..catalog.exceptions import CatalogException
from ..catalog.named_models import NamedModels
from ..definitions import ColumnDefinition, quote_string, quoted
from ..errors import SqlError, nearest
from ..parsing import statements
from ..plan.logical import Attribute
from ..plan.typed import Place
from ..schema import Schema
from ..table_result import TableResult, raw
from ..types import DataTypes
from ..udf import udf
from ..user_functions.model_functions import AwaitedPrediction, ColumnPrediction, is_async
from ..user_functions.user_kernels import KINDS

PROVIDER, MODEL, FORM = "provider", "python.model", "python.form"
_FORMS = tuple(form for form in KINDS if form != "general")


def create(models: NamedModels, statement: statements.CreateModel) -> None:
    """Run CREATE MODEL.

    Raises:
        SqlError: the options are wrong.
        CatalogException: there is one of the name, or the catalog cannot store it.
    """
    schemas = [_schema(columns) for columns in (statement.inputs, statement.outputs)]
    model = CatalogModel(schemas[0], schemas[1], statement.options, statement.comment)
    check(".".join(statement.path), model)
    models.create(statement.path, model, statement.temporary, statement.if_not_exists)


def alter(models: NamedModels, statement: statements.AlterModel) -> None:
    """Run ALTER MODEL.

    Raises:
        SqlError: the options are wrong.
        CatalogException: there is none of the name, or the catalog cannot change it.
    """
    if statement.new_name is not None:
        models.rename(statement.path, statement.new_name, statement.if_exists)
        return

    def changed(model: CatalogModel) -> CatalogModel:
        options = {key: value for key, value in model.get_options().items() if key not in statement.reset}
        options.update(statement.options)
        new_model = CatalogModel(
            model.get_input_schema(), model.get_output_schema(), options, model.get_comment() or None
        )
        check(".".join(statement.path), new_model)
        return new_model

    models.alter(statement.path, changed, statement.if_exists)


def check(name: str, model: CatalogModel) -> None:
    """Check the options of a model, but not whether its function can be imported.

    Raises:
        SqlError: the provider is unknown, or an option of it is missing or unknown.
    """
    options = model.get_options()
    provider = options.get(PROVIDER)
    if provider != "python":
        problem = f"has the provider {provider!r}" if provider else "has no option 'provider'"
        remedy = "write 'provider' = 'python', with 'python.model' = 'package.module.name'"
        raise SqlError(f"model {name} {problem}", remedy)
    unknown = [key for key in options if key.startswith("python.") and key not in (MODEL, FORM)]
    if unknown:
        problem = f"model {name} has an option {unknown[0]!r}{nearest(unknown[0], (MODEL, FORM))}"
        raise SqlError(problem, f"options of the provider python are {MODEL!r} and {FORM!r}")
    if "." not in options.get(MODEL, ""):
        problem = f"has {MODEL!r} = {options[MODEL]!r}" if MODEL in options else f"has no {MODEL!r}"
        raise SqlError(f"model {name} {problem}", "name a function or a class as 'package.module.name'")
    if options.get(FORM, "arrow") not in _FORMS:
        raise SqlError(f"model {name} has {FORM!r} = {options[FORM]!r}", f"it is one of {', '.join(_FORMS)}")


def known_model(models: NamedModels, parts: tuple[str, ...], place: Place | None) -> KnownModel:
    """Return a model as queries call it.

    Raises:
        SqlError: there is none of the name, or its function cannot be imported.
    """
    try:
        path, model = models.find(parts)
    except CatalogException as error:
        raise SqlError(error.problem, error.remedy, "", place) from error
    name = ".".join(path)
    check(name, model)
    options = model.get_options()
    named = _imported(name, options[MODEL], place)
    inputs, outputs = (_attributes(schema) for schema in (model.get_input_schema(), model.get_output_schema()))
    names = [column.name for column in outputs]
    result = DataTypes.ROW([DataTypes.FIELD(column.name, column.type.nullable()) for column in outputs])
    if is_async(named):
        function = udf(AwaitedPrediction(named, options, names), result_type=result, name=path[2])
    else:
        form = options.get(FORM, "arrow")
        function = udf(ColumnPrediction(named, options, names), result_type=result, name=path[2], func_type=form)
    called = function.registered(f"ML_PREDICT {path[2]}")
    return KnownModel(name, called, tuple(column.type for column in inputs), tuple(outputs))


def _imported(name: str, path: str, place: Place | None) -> Callable[..., object]:
    module_name, _, attribute = path.rpartition(".")
    try:
        value: object = getattr(importlib.import_module(module_name), attribute)
    except Exception as error:  # a module may raise anything when it is imported
        problem = f"model {name}: {path!r} cannot be imported ({type(error).__name__}: {error})"
        raise SqlError(problem, "correct its name, and put its module on the path of Python", "", place) from error
    if not callable(value) or (isinstance(value, type) and not callable(getattr(value, "predict", None))):
        problem = f"model {name}: {path!r} is no function, and no class with a method predict"
        raise SqlError(problem, "write def predict(self, *columns)", "", place)
    named: Callable[..., object] = value
    return named


def _schema(columns: Sequence[statements.ColumnOf]) -> Schema:
    return Schema(tuple(ColumnDefinition(column.name, column.type, comment=column.comment) for column in columns))


def _attributes(schema: Schema) -> list[Attribute]:
    return [Attribute(column.name, column.type) for column in schema.columns if column.type is not None]


def create_statement(models: NamedModels, parts: tuple[str, ...]) -> TableResult:
    """Return the result of SHOW CREATE MODEL; secrets are masked."""
    path, model = models.find(parts)
    lines = [f"CREATE MODEL {'.'.join(map(quoted, path))}"]
    for role, schema in (("INPUT", model.get_input_schema()), ("OUTPUT", model.get_output_schema())):
        lines.append(f"{role} ({', '.join(map(_column_text, schema.columns))})")
    if model.get_comment():
        lines.append(f"COMMENT {quote_string(model.get_comment())}")
    options = ",\n".join(
        f"  {quote_string(key)} = {quote_string(shown_value(key, value))}" for key, value in model.get_options().items()
    )
    return raw("\n".join([*lines, f"WITH (\n{options}\n)"]))


def _column_text(column: ColumnDefinition) -> str:
    comment = f" COMMENT {quote_string(column.comment)}" if column.comment else ""
    return f"{quoted(column.name)} {column.type}{comment}"


def description(models: NamedModels, parts: tuple[str, ...]) -> TableResult:
    """Return the result of DESCRIBE MODEL: a row for each column, those that go in first."""
    _, model = models.find(parts)
    strings = [Attribute(name, DataTypes.STRING()) for name in ("name", "type")]
    header = strings + [Attribute(name, DataTypes.BOOLEAN()) for name in ("null", "is input")]
    rows = [
        Row(column.name, str(column.type.nullable()), column.type.is_nullable, is_input)
        for is_input, schema in ((True, model.get_input_schema()), (False, model.get_output_schema()))
        for column in _attributes(schema)
    ]
    return TableResult(header, rows)


__all__ = ["alter", "check", "create", "create_statement", "description", "known_model"]
