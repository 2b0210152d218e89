"""Errors of catalogs, with the names that Flink gives them."""

from __future__ import annotations

from rayflink.common.errors import RayflinkError

__all__ = [
    "CatalogAlreadyExistException",
    "CatalogException",
    "CatalogNotExistException",
    "DatabaseAlreadyExistException",
    "DatabaseNotEmptyException",
    "DatabaseNotExistException",
    "FunctionAlreadyExistException",
    "FunctionNotExistException",
    "ModelAlreadyExistException",
    "ModelNotExistException",
    "PartitionAlreadyExistsException",
    "PartitionNotExistException",
    "PartitionSpecInvalidException",
    "ProcedureNotExistException",
    "TableAlreadyExistException",
    "TableNotExistException",
    "TableNotPartitionedException",
]


class CatalogException(RayflinkError):
    """A catalog cannot do what was asked of it; the root of all errors of catalogs.

    Args:
        problem: what was found, and what was wanted.
        remedy: what to do.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem, remedy)
        self.problem, self.remedy = problem, remedy

    def __str__(self) -> str:
        return f"{self.problem}; {self.remedy}"


class _AboutObject(CatalogException):
    """An error about one object of a catalog.

    Args:
        catalog_name: of the catalog.
        name: of the object, with its database where it has one.
    """

    form = "{name} in catalog {catalog}"
    advice = ""

    def __init__(self, catalog_name: str, name: object) -> None:
        super().__init__(self.form.format(catalog=catalog_name, name=str(name)), self.advice)
        self.args = catalog_name, str(name)
        self.catalog_name, self.name = catalog_name, str(name)


class CatalogNotExistException(_AboutObject):
    """There is no catalog of a name."""

    form, advice = "there is no catalog {catalog!r}", "see list_catalogs() for the names, or create it"

    def __init__(self, catalog_name: str) -> None:
        super().__init__(catalog_name, catalog_name)
        self.args = (catalog_name,)


class CatalogAlreadyExistException(CatalogNotExistException):
    """There is a catalog of the name already."""

    form, advice = "there is a catalog {catalog!r} already", "give it another name, or write IF NOT EXISTS"


class DatabaseNotExistException(_AboutObject):
    """There is no database of a name."""

    form, advice = "there is no database {name!r} in catalog {catalog!r}", "create it, or see list_databases()"


class DatabaseAlreadyExistException(_AboutObject):
    """There is a database of the name already."""

    form, advice = "there is a database {name!r} in catalog {catalog!r} already", "drop it, or ignore it if it exists"


class DatabaseNotEmptyException(_AboutObject):
    """A database that holds objects is to be dropped."""

    form, advice = "database {name!r} of catalog {catalog!r} is not empty", "drop its objects first, or cascade"


class TableNotExistException(_AboutObject):
    """There is no table or view of a name."""

    form, advice = "there is no table or view {name!r} in catalog {catalog!r}", "create it, or see list_tables()"


class TableAlreadyExistException(_AboutObject):
    """There is a table or view of the name already."""

    form = "there is a table or view {name!r} in catalog {catalog!r} already"
    advice = "drop it, or ignore it if it exists"


class TableNotPartitionedException(_AboutObject):
    """A partition of a table that has none is asked for."""

    form = "table {name!r} of catalog {catalog!r} is not partitioned"
    advice = "create it with PARTITIONED BY, or ask for no partitions"


class FunctionNotExistException(_AboutObject):
    """There is no function of a name."""

    form, advice = "there is no function {name!r} in catalog {catalog!r}", "create it, or see list_functions()"


class FunctionAlreadyExistException(_AboutObject):
    """There is a function of the name already."""

    form, advice = "there is a function {name!r} in catalog {catalog!r} already", "drop it, or ignore it if it exists"


class ProcedureNotExistException(_AboutObject):
    """There is no procedure of a name."""

    form, advice = "there is no procedure {name!r} in catalog {catalog!r}", "see list_procedures()"


class ModelNotExistException(_AboutObject):
    """There is no model of a name."""

    form, advice = "there is no model {name!r} in catalog {catalog!r}", "create it, or see list_models()"


class ModelAlreadyExistException(_AboutObject):
    """There is a model of the name already."""

    form, advice = "there is a model {name!r} in catalog {catalog!r} already", "drop it, or ignore it if it exists"


class _AboutPartition(CatalogException):
    """An error about a partition of a table.

    Args:
        catalog_name: of the catalog.
        table: database and name of the table.
        partition: key columns with their values, as text.
    """

    form = "{partition} of table {table} in catalog {catalog}"
    advice = ""

    def __init__(self, catalog_name: str, table: object, partition: object) -> None:
        super().__init__(self.form.format(catalog=catalog_name, table=table, partition=partition), self.advice)
        self.args = catalog_name, str(table), str(partition)


class PartitionNotExistException(_AboutPartition):
    """There is no such partition of a table."""

    form = "there is no partition {partition} of table {table!s} in catalog {catalog!r}"
    advice = "create it, or see list_partitions()"


class PartitionAlreadyExistsException(_AboutPartition):
    """There is such a partition of the table already."""

    form = "there is a partition {partition} of table {table!s} in catalog {catalog!r} already"
    advice = "drop it, or ignore it if it exists"


class PartitionSpecInvalidException(_AboutPartition):
    """A partition is described by other columns than those of the table's partitions."""

    form = "{partition} describes no partition of table {table!s} in catalog {catalog!r}"
    advice = "give each column of PARTITIONED BY a value, and no other"
