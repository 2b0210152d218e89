"""CREATE, ALTER and DROP of catalogs, databases, functions and partitions."""

from __future__ import annotations

from ..catalog.catalog_objects import CatalogDatabase, CatalogDescriptor, CatalogFunction
from ..catalog.exceptions import CatalogException
from ..catalog.object_names import ObjectPath
from ..catalog.partitions import CatalogPartition, CatalogPartitionSpec
from ..errors import SqlError
from ..parsing import statements
from ..table_result import TableResult, done
from . import model_statements
from .planning_context import PlanningContext

CatalogStatement = (
    statements.CreateCatalog
    | statements.AlterCatalog
    | statements.CreateDatabase
    | statements.AlterDatabase
    | statements.FunctionOf
    | statements.AlterPartitions
    | statements.CreateModel
    | statements.AlterModel
)
"""The statements that are run here."""


def run(context: PlanningContext, statement: CatalogStatement) -> TableResult:
    """Run a statement.

    Raises:
        SqlError: it cannot be run.
    """
    catalogs, place = context.catalogs, statement.place
    try:
        match statement:
            case statements.CreateCatalog():
                options = {"type": "generic_in_memory", **statement.options}
                descriptor = CatalogDescriptor(statement.name, options, statement.comment)
                catalogs.create_catalog(descriptor, statement.if_not_exists)
            case statements.AlterCatalog():
                _alter_catalog(context, statement)
            case statements.CreateDatabase():
                database = CatalogDatabase(statement.options, statement.comment)
                catalogs.create_database(statement.path, database, statement.if_not_exists, place)
            case statements.AlterDatabase():
                catalogs.alter_database(
                    statement.path,
                    lambda old: CatalogDatabase({**old.get_properties(), **statement.options}, old.get_description()),
                    place,
                )
            case statements.FunctionOf():
                _define_function(context, statement)
            case statements.AlterPartitions():
                _alter_partitions(context, statement)
            case statements.CreateModel():
                model_statements.create(context.models, statement)
            case statements.AlterModel():
                model_statements.alter(context.models, statement)
    except CatalogException as error:
        raise SqlError(error.problem, error.remedy, "", place) from error
    return done()


def drop(context: PlanningContext, statement: statements.Drop) -> None:
    """Run DROP CATALOG, DROP MODEL and DROP FUNCTION.

    Raises:
        SqlError: there is none of the name, and IF EXISTS is not written.
    """
    functions, name = context.functions, ".".join(statement.path)
    try:
        if statement.kind == "CATALOG":
            context.catalogs.drop_catalog(name, statement.if_exists)
        elif statement.kind == "MODEL":
            context.models.drop(statement.path, statement.temporary, statement.if_exists)
        elif not statement.temporary:
            functions.drop(statement.path, statement.if_exists)
        else:
            was_there = (
                functions.drop_system(statement.path[-1])
                if statement.is_system
                else functions.drop_temporary(statement.path)
            )
            if not was_there and not statement.if_exists:
                what = "temporary system function" if statement.is_system else "temporary function"
                remedy = "write IF EXISTS where it may be absent"
                raise SqlError(f"there is no {what} {name!r}", remedy, "", statement.place)
    except CatalogException as error:
        raise SqlError(error.problem, error.remedy, "", statement.place) from error


def _alter_catalog(context: PlanningContext, statement: statements.AlterCatalog) -> None:
    if "type" in {**statement.options, **dict.fromkeys(statement.reset)}:
        raise SqlError("the type of a catalog cannot be changed", "drop it and create another", "", statement.place)
    if statement.comment is not None:
        comment = statement.comment
        context.catalogs.alter_catalog(statement.name, lambda descriptor: descriptor.with_comment(comment))
        return
    context.catalogs.alter_catalog(
        statement.name, lambda descriptor: descriptor.with_options(statement.options, statement.reset)
    )


def _define_function(context: PlanningContext, statement: statements.FunctionOf) -> None:
    if statement.language != "PYTHON":
        problem = f"function {'.'.join(statement.path)} is written in {statement.language}"
        remedy = "write LANGUAGE PYTHON behind 'package.module.name'; there is no JVM to run others"
        raise SqlError(problem, remedy, "", statement.place)
    function = CatalogFunction(statement.class_name, statement.language)
    functions = context.functions
    if statement.is_altered:
        functions.alter(statement.path, function, statement.temporary, statement.if_exists)
    elif statement.is_system:
        functions.create_system(statement.path[-1], function, statement.if_not_exists)
    elif statement.temporary:
        functions.create_temporary(statement.path, function, statement.if_not_exists)
    else:
        functions.create(statement.path, function, statement.if_not_exists)


def _alter_partitions(context: PlanningContext, statement: statements.AlterPartitions) -> None:
    path = context.catalogs.path(statement.path)
    catalog = context.catalogs.catalog_named(path[0])
    if catalog is None:
        raise SqlError(f"there is no catalog {path[0]!r}", "see SHOW CATALOGS", "", statement.place)
    for values, properties in statement.partitions:
        spec = CatalogPartitionSpec(values)
        if statement.is_added:
            partition = CatalogPartition(properties)
            catalog.create_partition(ObjectPath(*path[1:]), spec, partition, statement.ignores)
        else:
            catalog.drop_partition(ObjectPath(*path[1:]), spec, statement.ignores)


__all__ = ["CatalogStatement", "drop", "run"]
