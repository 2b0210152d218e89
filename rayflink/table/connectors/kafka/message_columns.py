"""Assigns the columns of a table to the key, the value and the metadata of a message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...errors import SqlError, nearest
from ...plan.logical import Attribute, Schema
from ...types import DataType
from ..contract import Connected


@dataclass(frozen=True)
class MessageColumns:
    """The places of a table's columns in a message.

    Args:
        schema: all stored columns of the table, in order.
        key: names of the columns in the key.
        value: names of the columns in the value.
        metadata: names of the others, each with its key.
        prefix: before the names of key columns in the table; the key of a message has them without.
    """

    schema: Schema
    key: tuple[str, ...] = ()
    value: tuple[str, ...] = ()
    metadata: tuple[tuple[str, str], ...] = ()
    prefix: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of all columns, in order."""
        return tuple(column.name for column in self.schema)

    def column(self, name: str) -> Attribute:
        """Return a column of the table."""
        return next(column for column in self.schema if column.name == name)

    def retyped(self, types: Mapping[str, DataType]) -> MessageColumns:
        """Return the same with other types of some columns."""
        schema = tuple(replace(column, type=types.get(column.name, column.type)) for column in self.schema)
        return replace(self, schema=schema)

    def in_key(self, name: str) -> str:
        """Return the name that a column of the table has in the key of a message."""
        return name.removeprefix(self.prefix)

    def key_schema(self) -> Schema:
        """Return the columns of the key, under the names that they have there."""
        return tuple(replace(self.column(name), name=self.in_key(name)) for name in self.key)

    def value_schema(self) -> Schema:
        """Return the columns of the value."""
        return tuple(self.column(name) for name in self.value)


def key_columns(table: Connected) -> tuple[str, ...]:
    """Return the columns that the options `key.fields` and `key.fields-prefix` name, in the order of the option.

    Raises:
        SqlError: one is no physical column, is named twice, or lacks the prefix; or the options do not go together.
    """
    fields, prefix, form = (table.options[key] for key in ("key.fields", "key.fields-prefix", "key.format"))
    if form is None and fields is not None:
        raise SqlError(f"{table.table} has 'key.fields' and no option 'key.format'", "add the format of the keys")
    if form is not None and not fields:
        remedy = "name the columns that are in the keys of messages, with ; between"
        raise SqlError(f"{table.table} has 'key.format' and no option 'key.fields'", remedy)
    if form is None and prefix:
        raise SqlError(f"{table.table} has 'key.fields-prefix' and no option 'key.format'", "leave the prefix out")
    names = physical_names(table)
    for name in fields or ():
        if name not in names:
            problem = f"'key.fields' of {table.table} names {name!r}, which is no physical column{nearest(name, names)}"
            raise SqlError(problem, f"the physical columns are {', '.join(names)}")
        if fields.count(name) > 1:
            raise SqlError(f"'key.fields' of {table.table} names {name!r} twice", "name it once")
    return tuple(fields or ())


def message_columns(table: Connected, key: Sequence[str]) -> MessageColumns:
    """Return the places of a table's columns.

    Args:
        key: names of the columns in the key.

    Raises:
        SqlError: a column of the key lacks the prefix, no column is left for the value, or a column is in key and
            value under different names.
    """
    prefix, include = table.options["key.fields-prefix"], table.options["value.fields-include"]
    for name in key:
        if not name.startswith(prefix) or name == prefix:
            problem = f"column {name!r} of {table.table} is in the key, and its name does not begin with {prefix!r}"
            raise SqlError(problem, "rename the column, or correct 'key.fields-prefix'")
    if prefix and include == "ALL":
        problem = f"{table.table} has 'key.fields-prefix' and 'value.fields-include' = 'ALL'"
        remedy = "write 'value.fields-include' = 'EXCEPT_KEY': a column in key and value has one name"
        raise SqlError(problem, remedy)
    physical = physical_names(table)
    value = tuple(name for name in physical if include == "ALL" or name not in key)
    metadata = tuple((table.schema[index].name, meta) for index, meta in table.metadata.items())
    return MessageColumns(table.schema, tuple(key), value, metadata, prefix)


def physical_names(table: Connected) -> list[str]:
    """Return the names of the columns that are in keys and values."""
    return [column.name for index, column in enumerate(table.schema) if index not in table.metadata]


@dataclass(frozen=True)
class Projection:
    """The parts of messages that are to be decoded, for some columns of a table.

    Args:
        names: of the columns wanted, in order.
        key: names of those that are read from the key.
        value: names of those that are read from the value.
        metadata: names of those that are metadata of Kafka, each with its key.
        value_metadata: names of those that are metadata of the value's format, each with its key there.
    """

    names: tuple[str, ...]
    key: tuple[str, ...]
    value: tuple[str, ...]
    metadata: Mapping[str, str]
    value_metadata: Mapping[str, str]


def projection(columns: MessageColumns, names: Sequence[str], deletes_by_key: bool = False) -> Projection:
    """Return what is to be decoded for some columns.

    A column in key and value is read from the value.

    >>> from rayflink.table.types import DataTypes
    >>> schema = tuple(Attribute(name, DataTypes.INT()) for name in ("a", "b", "at"))
    >>> columns = MessageColumns(schema, ("a",), ("a", "b"), (("at", "offset"),))
    >>> found = projection(columns, ["at", "a"])
    >>> found.key, found.value, found.metadata
    ((), ('a',), {'at': 'offset'})

    Args:
        names: of the columns wanted, in order.
        deletes_by_key: messages without a value delete the row of their key, so the key is always read.
    """
    in_value = tuple(name for name in names if name in columns.value)
    in_key = tuple(name for name in columns.key if name in names and (deletes_by_key or name not in in_value))
    metadata = {name: key for name, key in columns.metadata if name in names}
    own = {name: key.removeprefix("value.") for name, key in metadata.items() if key.startswith("value.")}
    kafka = {name: key for name, key in metadata.items() if name not in own}
    return Projection(tuple(names), in_key, in_value, kafka, own)


__all__ = ["MessageColumns", "Projection", "key_columns", "message_columns", "physical_names", "projection"]
