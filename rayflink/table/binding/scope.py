"""Resolves names to columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..errors import SqlError, nearest
from ..plan.logical import Schema
from ..plan.typed import Column, Expr, Place


@dataclass(frozen=True)
class Part:
    """The columns of one table of FROM, from number `first` on.

    Args:
        alias: its name in the query.
        depth: number of queries further out in which it stands; names of inner ones come first.
    """

    alias: str
    schema: Schema
    first: int = 0
    depth: int = 0


@dataclass(frozen=True)
class MergedColumn:
    """One column for several of one name, as JOIN ... USING gives it.

    Args:
        column: its number.
        hidden: numbers of the columns for which it stands.
    """

    name: str
    column: int
    hidden: tuple[int, ...]


@dataclass(frozen=True)
class Scope:
    """The tables of FROM, side by side."""

    parts: tuple[Part, ...]
    merged: tuple[MergedColumn, ...] = ()

    @classmethod
    def of(cls, alias: str, schema: Schema) -> Scope:
        """Return the scope of one table."""
        return cls((Part(alias, schema),))

    def beside(self, other: Scope) -> Scope:
        """Return a scope of this one's columns, then another's."""
        width = self.width
        moved = tuple(replace(table, first=table.first + width) for table in other.parts)
        merged = tuple(
            MergedColumn(pair.name, pair.column + width, tuple(column + width for column in pair.hidden))
            for pair in other.merged
        )
        return Scope(self.parts + moved, self.merged + merged)

    def further(self) -> Scope:
        """Return the same columns as those of a query one further out."""
        return replace(self, parts=tuple(replace(table, depth=table.depth + 1) for table in self.parts))

    def has(self, names: tuple[str, ...]) -> bool:
        """Return whether a name with its parts is that of a column, or of several."""
        if len(names) > 1 and any(table.alias == names[0] for table in self.parts if table.alias):
            return True
        return any(attribute.name == names[0] for attribute in self.schema)

    def without_times(self) -> Scope:
        """Return the same columns as values that are no times."""
        parts = (
            replace(table, schema=tuple(replace(attribute, part=None, windowing=None) for attribute in table.schema))
            for table in self.parts
        )
        return replace(self, parts=tuple(parts))

    def missing(self) -> Scope:
        """Return the same columns of rows that an outer join may have left out."""
        parts = (
            replace(
                table,
                schema=tuple(
                    replace(attribute, type=attribute.type.nullable(), part=None) for attribute in table.schema
                ),
            )
            for table in self.parts
        )
        return replace(self, parts=tuple(parts))

    def merge(self, pairs: Sequence[MergedColumn]) -> Scope:
        """Return a scope with columns that stand for others, directly or through such a column."""
        new, old = [], list(self.merged)
        for pair in pairs:
            inner = [merged for merged in old if merged.column in pair.hidden and merged.name == pair.name]
            hidden = {*pair.hidden, *(column for merged in inner for column in merged.hidden)}
            new.append(replace(pair, hidden=tuple(sorted(hidden))))
            old = [merged for merged in old if merged not in inner]
        return replace(self, merged=(*new, *old))

    @property
    def width(self) -> int:
        """Return the number of columns."""
        return sum(len(table.schema) for table in self.parts)

    @property
    def schema(self) -> Schema:
        """Return all columns."""
        return tuple(attribute for table in self.parts for attribute in table.schema)

    def columns(self, alias: str | None, place: Place | None) -> list[Column]:
        """Return all columns, or those of one table, as `*` means.

        Raises:
            SqlError: there is no such table.
        """
        chosen = [table for table in self.parts if alias in (None, table.alias)]
        if not chosen:
            known = ", ".join(table.alias for table in self.parts)
            raise SqlError(f"there is no table {alias!r} here", f"the tables of FROM are {known}", "", place)
        if alias is None and self.merged:
            return self._all(place)
        return [
            Column(attribute.type, table.first + index, attribute.name, place=place)
            for table in chosen
            for index, attribute in enumerate(table.schema)
        ]

    def _all(self, place: Place | None) -> list[Column]:
        """Merged columns, then those that are not hidden."""
        columns = {
            table.first + index: Column(attribute.type, table.first + index, attribute.name, place=place)
            for table in self.parts
            for index, attribute in enumerate(table.schema)
        }
        hidden = {index for merged in self.merged for index in (*merged.hidden, merged.column)}
        first = [columns[merged.column] for merged in self.merged]
        return first + [column for index, column in columns.items() if index not in hidden]

    def find(self, names: tuple[str, ...], place: Place | None) -> tuple[Expr, tuple[str, ...]]:
        """Return the column that a name with its parts begins with, and the fields of it that the rest names.

        Raises:
            SqlError: there is none, or several.
        """
        depths = sorted({table.depth for table in self.parts})
        for parts in (tuple(table for table in self.parts if table.depth == depth) for depth in depths):
            for table in parts:
                if len(names) > 1 and table.alias and table.alias == names[0]:
                    column = self._in((table,), names[1], place)
                    if column is not None:
                        return column, names[2:]
                    raise self._unknown(names[1], (table,), place)
            column = self._in(parts, names[0], place, True)
            if column is not None:
                return column, names[1:]
        if len(names) > 1:
            known = [table.alias for table in self.parts]
            problem = f"there is no table or column {names[0]!r} here{nearest(names[0], known)}"
            raise SqlError(problem, f"the tables of FROM are {', '.join(known) or 'none'}", "", place)
        raise self._unknown(names[0], self.parts, place)

    def _in(
        self, parts: tuple[Part, ...], name: str, place: Place | None, is_any_table: bool = False
    ) -> Column | None:  # fmt: skip
        columns = [
            Column(attribute.type, table.first + index, attribute.name, place=place)
            for table in parts
            for index, attribute in enumerate(table.schema)
            if attribute.name == name
        ]
        if len(columns) > 1 and is_any_table:
            merged = [pair for pair in self.merged if pair.name == name]
            hidden = {index for pair in merged for index in pair.hidden if index != pair.column}
            columns = [column for column in columns if column.index not in hidden]
        if len(columns) > 1:
            owners = " and ".join(
                table.alias for table in parts if name in [attribute.name for attribute in table.schema]
            )
            problem = f"column {name!r} is ambiguous: it is in {owners}"
            raise SqlError(problem, f"name its table, as in {parts[0].alias}.{name}", "", place)
        return columns[0] if columns else None

    def _unknown(self, name: str, parts: tuple[Part, ...], place: Place | None) -> SqlError:
        known = [attribute.name for table in parts for attribute in table.schema]
        problem = f"there is no column {name!r}{nearest(name, known)}"
        return SqlError(problem, f"the columns are {', '.join(known) or 'none'}", "", place)


@dataclass(frozen=True)
class Nested(Scope):
    """The tables around a query, and behind them those of the query itself, whose names come first.

    Args:
        inner: of the query.
    """

    inner: Scope = Scope(())

    @property
    def width(self) -> int:
        return super().width + self.inner.width

    def find(self, names: tuple[str, ...], place: Place | None) -> tuple[Expr, tuple[str, ...]]:
        try:
            column, fields = self.inner.find(names, place)
        except SqlError as inner_error:
            try:
                return super().find(names, place)
            except SqlError:
                raise inner_error from None
        assert isinstance(column, Column)
        return replace(column, index=column.index + super().width), fields
