"""The objects of a catalog: databases, tables and views, functions, models; and descriptors of catalogs themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rayflink.common.configuration import Configuration
from rayflink.common.errors import InvalidTypesError, shorten

from ..definitions import ColumnDefinition, TableDefinition, ViewDefinition
from ..schema import Schema
from ..table_schema import TableSchema
from .described import Described

__all__ = [
    "CatalogBaseTable",
    "CatalogDatabase",
    "CatalogDescriptor",
    "CatalogFunction",
    "CatalogModel",
    "Definition",
    "Procedure",
]

Definition = TableDefinition | ViewDefinition
"""A table or a view as the planner has it."""


class CatalogDatabase(Described):
    """A database of a catalog; made by `CatalogDatabase.create_instance`."""

    @staticmethod
    def create_instance(properties: dict[str, str], comment: str | None = None) -> CatalogDatabase:
        """Return a database with properties, and a comment if it has one."""
        return CatalogDatabase(properties, comment)


class CatalogBaseTable:
    """A table or a view of a catalog; made by `create_table` and `create_view`.

    >>> from rayflink.table import DataTypes
    >>> schema = TableSchema.builder().field("id", DataTypes.BIGINT()).build()
    >>> table = CatalogBaseTable.create_table(schema, [], {"connector": "print"}, "what was bought")
    >>> table.get_comment(), table.get_options()
    ('what was bought', {'connector': 'print'})

    Args:
        definition: what the planner reads and writes it by.
    """

    def __init__(self, definition: Definition) -> None:
        self.definition = definition

    @staticmethod
    def create_table(
        schema: TableSchema | Schema, partition_keys: list[str] = [], properties: dict[str, str] = {},  # noqa: B006
        comment: str | None = None,
    ) -> CatalogBaseTable:  # fmt: skip
        """Return a table of a connector.

        Args:
            schema: its columns; of a `Schema` also its watermark and its primary key.
            partition_keys: names of the columns of PARTITIONED BY.
            properties: options of the connector, with 'connector' among them.
            comment: None: it has none.

        Raises:
            InvalidTypesError: a partition key is no column.
        """
        written = as_schema(schema)
        names = [column.name for column in written.columns]
        if unknown := [key for key in partition_keys if key not in names]:
            problem = f"the partition keys {', '.join(unknown)} are no columns of {', '.join(names)}"
            raise InvalidTypesError(problem, "partition by columns of the table")
        definition = TableDefinition(
            written.columns, written.watermark, written.key, tuple(partition_keys), dict(properties), comment
        )
        return CatalogBaseTable(definition)

    @staticmethod
    def create_view(
        original_query: str, expanded_query: str, schema: TableSchema | Schema, properties: dict[str, str],
        comment: str | None = None,
    ) -> CatalogBaseTable:  # fmt: skip
        """Return a view.

        Args:
            original_query: as it was written.
            expanded_query: the same with full names, which is what a query of the view runs.
            schema: its columns.
            properties: kept, and without effect.
            comment: None: it has none.
        """
        columns = as_schema(schema).columns
        view = ViewDefinition(
            expanded_query, tuple(column.name for column in columns), comment, original=original_query,
            types=columns, options=dict(properties),
        )  # fmt: skip
        return CatalogBaseTable(view)

    def get_table_kind(self) -> str:
        """Return "TABLE" or "VIEW"."""
        return "VIEW" if self.is_view else "TABLE"

    @property
    def is_view(self) -> bool:
        """Return whether it is a view."""
        return isinstance(self.definition, ViewDefinition)

    def get_options(self) -> dict[str, str]:
        """Return the options of the connector, or the properties of a view."""
        return dict(self.definition.options)

    def get_unresolved_schema(self) -> Schema:
        """Return the columns, and the watermark and the primary key of a table."""
        if isinstance(self.definition, ViewDefinition):
            return Schema(self.definition.types)
        return Schema(self.definition.columns, self.definition.watermark, self.definition.primary_key)

    def get_schema(self) -> TableSchema:
        """Return the names and types of the columns; `get_unresolved_schema` does it now, also for computed ones.

        Raises:
            InvalidTypesError: a column is computed, so that its type is not known here.
        """
        builder = TableSchema.builder()
        for column in self.get_unresolved_schema().columns:
            if column.type is None:
                raise InvalidTypesError(f"column {column.name!r} is computed", "use get_unresolved_schema()")
            builder.field(column.name, column.type)
        return builder.build()

    def get_partition_keys(self) -> list[str]:
        """Return the names of the columns of PARTITIONED BY."""
        return [] if isinstance(self.definition, ViewDefinition) else list(self.definition.partition_keys)

    def get_comment(self) -> str:
        """Return the comment; "": it has none."""
        return self.definition.comment or ""

    def copy(self) -> CatalogBaseTable:
        """Return a copy."""
        return CatalogBaseTable(replace(self.definition, options=dict(self.definition.options)))

    def get_description(self) -> str | None:
        """Return the comment; None: it has none."""
        return self.definition.comment

    def get_detailed_description(self) -> str | None:
        """Return the comment; None: it has none."""
        return self.definition.comment

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CatalogBaseTable) and self.definition == other.definition

    __hash__ = None  # type: ignore[assignment]  # its options may be any mapping


class CatalogFunction:
    """A function of a catalog; made by `CatalogFunction.create_instance`.

    Args:
        class_name: where Python finds it, as "package.module.name".
        language: in capitals.
        options: kept, and without effect.
    """

    def __init__(self, class_name: str, language: str = "PYTHON", options: Mapping[str, str] | None = None) -> None:
        self._class_name, self._language, self._options = class_name, language, dict(options or {})

    @staticmethod
    def create_instance(class_name: str, function_language: str = "Python") -> CatalogFunction:
        """Return a function that is found by its name.

        Args:
            class_name: "package.module.name" of a UserDefinedFunction, of what `udf` or `udtf` made, or of a function
                with an annotation of its result.
            function_language: "Python"; "Java" and "Scala" may be stored, and cannot be called.

        Raises:
            InvalidTypesError: the language is another one.
        """
        language = function_language.upper()
        if language not in ("PYTHON", "JAVA", "SCALA"):
            raise InvalidTypesError(f"a function in {function_language!r}", "write it in Python")
        return CatalogFunction(class_name, language)

    def get_class_name(self) -> str:
        """Return "package.module.name"."""
        return self._class_name

    def get_function_language(self) -> str:
        """Return the language, in capitals."""
        return self._language

    def get_options(self) -> dict[str, str]:
        """Return the options."""
        return dict(self._options)

    def is_generic(self) -> bool:
        """Return whether it is no function of Hive; none is."""
        return True

    def copy(self) -> CatalogFunction:
        """Return a copy."""
        return CatalogFunction(self._class_name, self._language, self._options)

    def get_description(self) -> str | None:
        """Return a short description."""
        return "This is a user-defined function"

    def get_detailed_description(self) -> str | None:
        """Return where the function is found, and its language."""
        return f"{self._class_name}, in {self._language.capitalize()}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CatalogFunction) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self._class_name, self._language))


class CatalogModel:
    """A model of a catalog: what goes in, what comes out, and how its provider is reached.

    Queries predict by `ML_PREDICT`. Made by `CatalogModel.create_model`.
    """

    def __init__(
        self, input_schema: Schema, output_schema: Schema, options: Mapping[str, str], comment: str | None = None
    ) -> None:
        self._input, self._output, self._options, self._comment = input_schema, output_schema, dict(options), comment

    @staticmethod
    def create_model(
        input_schema: Schema, output_schema: Schema, options: dict[str, str] = {}, comment: str | None = None  # noqa: B006
    ) -> CatalogModel:
        """Return a model.

        Args:
            input_schema: columns that it is given.
            output_schema: columns that it gives.
            options: of its provider.
            comment: None: it has none.
        """
        return CatalogModel(input_schema, output_schema, options, comment)

    def get_input_schema(self) -> Schema:
        """Return the columns that it is given."""
        return self._input

    def get_output_schema(self) -> Schema:
        """Return the columns that it gives."""
        return self._output

    def get_options(self) -> dict[str, str]:
        """Return the options of its provider."""
        return dict(self._options)

    def get_comment(self) -> str:
        """Return the comment; "": it has none."""
        return self._comment or ""

    def copy(self) -> CatalogModel:
        """Return a copy."""
        return CatalogModel(self._input, self._output, self._options, self._comment)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CatalogModel) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


class Procedure:
    """A procedure of a catalog, which CALL would run. The catalogs here have none; one of a program's own may."""


class CatalogDescriptor:
    """The name of a catalog and the options by which it is opened; made by `CatalogDescriptor.of`.

    >>> from rayflink.common import Configuration
    >>> options = Configuration().set_string("type", "generic_in_memory")
    >>> CatalogDescriptor.of("scratch", options).get_catalog_name()
    'scratch'
    """

    def __init__(self, catalog_name: str, options: Mapping[str, str], comment: str | None = None) -> None:
        self._name, self._options, self._comment = catalog_name, dict(options), comment

    @staticmethod
    def of(catalog_name: str, configuration: Configuration, comment: str | None = None) -> CatalogDescriptor:
        """Return the descriptor of a catalog.

        Args:
            catalog_name: of the catalog.
            configuration: the options of CREATE CATALOG, with 'type' among them.
            comment: None: it has none.
        """
        return CatalogDescriptor(catalog_name, configuration.to_dict(), comment)

    def get_catalog_name(self) -> str:
        """Return the name of the catalog."""
        return self._name

    def get_configuration(self) -> Configuration:
        """Return the options."""
        configuration = Configuration()
        for key, value in self._options.items():
            configuration.set_string(key, value)
        return configuration

    def get_options(self) -> dict[str, str]:
        """Return the options as text."""
        return dict(self._options)

    def get_comment(self) -> str | None:
        """Return the comment; None: it has none."""
        return self._comment

    def with_options(self, changed: Mapping[str, str], reset: Sequence[str] = ()) -> CatalogDescriptor:
        """Return the same with other options."""
        remaining = {key: value for key, value in self._options.items() if key not in reset}
        return CatalogDescriptor(self._name, {**remaining, **changed}, self._comment)

    def with_comment(self, comment: str) -> CatalogDescriptor:
        """Return the same with another comment."""
        return CatalogDescriptor(self._name, self._options, comment)


def as_schema(schema: object) -> Schema:
    """Return columns as a `Schema`.

    Raises:
        InvalidTypesError: it is neither a `Schema` nor a `TableSchema`.
    """
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, TableSchema):
        pairs = zip(schema.get_field_names(), schema.get_field_data_types(), strict=True)
        return Schema(tuple(ColumnDefinition(name, data_type) for name, data_type in pairs))
    remedy = "make one with TableSchema.builder() or Schema.new_builder()"
    raise InvalidTypesError(f"a schema of {shorten(schema)}", remedy)
