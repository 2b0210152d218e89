"""Definitions of tables and views, as a catalog holds them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rayflink.common.configuration import shown_value

from .types import DataType

Path = tuple[str, str, str]
"""Catalog, database and name."""


@dataclass(frozen=True)
class ColumnDefinition:
    """A column of a table.

    Args:
        type: of a physical or metadata column; None: computed.
        computed: the expression of a computed column, as it was written.
        metadata: the key of a metadata column; None: it is none.
        is_virtual: of a metadata column: it is read, and not written.
    """

    name: str
    type: DataType | None = None
    computed: str | None = None
    metadata: str | None = None
    is_virtual: bool = False
    comment: str | None = None

    @property
    def is_physical(self) -> bool:
        """Return whether the system outside holds it as a column."""
        return self.computed is None and self.metadata is None

    @property
    def is_written(self) -> bool:
        """Return whether INSERT gives it a value."""
        return self.computed is None and not self.is_virtual

    def __str__(self) -> str:
        name = quoted(self.name)
        comment = "" if self.comment is None else f" COMMENT {quote_string(self.comment)}"
        if self.computed is not None:
            return f"{name} AS {self.computed}{comment}"
        if self.metadata is None:
            return f"{name} {self.type}{comment}"
        source = f" FROM {quote_string(self.metadata)}" if self.metadata != self.name else ""
        return f"{name} {self.type} METADATA{source}{' VIRTUAL' if self.is_virtual else ''}{comment}"


@dataclass(frozen=True)
class TableDefinition:
    """A table.

    Args:
        watermark: the time column and the expression of its watermark, as it was written.
        options: of the connector; secrets among them are in no representation.
        connected: what is there already, such as a stream or columns in memory, in the place of a connector.
    """

    columns: tuple[ColumnDefinition, ...]
    watermark: tuple[str, str] | None = None
    primary_key: tuple[str, ...] = ()
    partition_keys: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    comment: str | None = None
    connected: Any = None

    @property
    def connector(self) -> str | None:
        """Return the value of the option `connector`."""
        return self.options.get("connector")

    def with_options(self, changed: Mapping[str, str], reset: tuple[str, ...] = ()) -> TableDefinition:
        """Return the same with other options."""
        remaining = {key: value for key, value in self.options.items() if key not in reset}
        return replace(self, options={**remaining, **changed})

    def statement(self, path: Path, temporary: bool) -> str:
        """Return CREATE TABLE, as SHOW CREATE TABLE prints it: secrets are masked."""
        lines = [f"  {column}" for column in self.columns]
        if self.watermark is not None:
            lines.append(f"  WATERMARK FOR {quoted(self.watermark[0])} AS {self.watermark[1]}")
        if self.primary_key:
            lines.append(f"  PRIMARY KEY ({', '.join(map(quoted, self.primary_key))}) NOT ENFORCED")
        text = f"CREATE {'TEMPORARY ' if temporary else ''}TABLE {'.'.join(map(quoted, path))} (\n"
        text += ",\n".join(lines) + "\n)"
        if self.comment is not None:
            text += f" COMMENT {quote_string(self.comment)}"
        if self.partition_keys:
            text += f"\nPARTITIONED BY ({', '.join(map(quoted, self.partition_keys))})"
        if self.options:
            described = ",\n".join(
                f"  {quote_string(key)} = {quote_string(shown_value(key, value))}"
                for key, value in self.options.items()
            )
            text += f"\nWITH (\n{described}\n)"
        return text


@dataclass(frozen=True)
class ViewDefinition:
    """A view.

    Args:
        text: its query; "" where `relation` says what it is.
        relation: the plan of a view that was made of a `Table`.
        selected: the columns that the query had when the view was made: it keeps to them.
        home: catalog and database in which short names of the query are looked up; ("", ""): its own.
        original: the query as it was written, where `text` has full names; "": as in `text`.
        types: its columns with their types, for those who list it; (): not known.
        options: properties without effect.
    """

    text: str
    columns: tuple[str, ...] = ()
    comment: str | None = None
    relation: Any = None
    selected: tuple[str, ...] = ()
    home: tuple[str, str] = ("", "")
    original: str = ""
    types: tuple[ColumnDefinition, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def with_home(self, home: tuple[str, str]) -> ViewDefinition:
        """Return the same, with short names that are looked up in a catalog and a database."""
        return replace(self, home=home)


def quoted(name: str) -> str:
    """Return a name in back quotes."""
    return "`" + name.replace("`", "``") + "`"


def parts_of(path: str) -> tuple[str, ...]:
    """Return the parts of a name, of which those in back quotes may hold points.

    >>> parts_of("db.`a.b`")
    ('db', 'a.b')
    """
    quoted_names = re.findall(r"`((?:[^`]|``)*)`|([^.`]+)", path)
    return tuple(name.replace("``", "`") or plain for name, plain in quoted_names)


def quote_string(text: str) -> str:
    """Return a text as SQL writes it.

    >>> quote_string("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"
