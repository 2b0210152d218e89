"""Resolves names to columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..errors import SqlError, nearest
from ..plan.logical import Schema
from ..plan.typed import Column, Expr, Place


@dataclass(frozen=True)
class Part:
    """The columns of one table of FROM, from number `first` on; `alias` is its name in the query."""

    alias: str
    schema: Schema
    first: int = 0


@dataclass(frozen=True)
class Merged:
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
    merged: tuple[Merged, ...] = ()

    @classmethod
    def of(cls, alias: str, schema: Schema) -> Scope:
        """Return the scope of one table."""
        return cls((Part(alias, schema),))

    def beside(self, other: Scope) -> Scope:
        """Return a scope of this one's columns, then another's."""
        width = self.width
        moved = tuple(Part(one.alias, one.schema, one.first + width) for one in other.parts)
        merged = tuple(
            Merged(one.name, one.column + width, tuple(at + width for at in one.hidden)) for one in other.merged
        )
        return Scope(self.parts + moved, self.merged + merged)

    def missing(self) -> Scope:
        """Return the same columns of rows that an outer join may have left out."""
        parts = (
            replace(part, schema=tuple(replace(one, type=one.type.nullable(), part=None) for one in part.schema))
            for part in self.parts
        )
        return replace(self, parts=tuple(parts))

    def merging(self, found: Sequence[Merged]) -> Scope:
        """Return a scope with columns that stand for others, directly or through such a column."""
        new, old = [], list(self.merged)
        for one in found:
            inner = [known for known in old if known.column in one.hidden and known.name == one.name]
            hidden = {*one.hidden, *(at for known in inner for at in known.hidden)}
            new.append(replace(one, hidden=tuple(sorted(hidden))))
            old = [known for known in old if known not in inner]
        return replace(self, merged=(*new, *old))

    @property
    def width(self) -> int:
        """Return the number of columns."""
        return sum(len(part.schema) for part in self.parts)

    @property
    def schema(self) -> Schema:
        """Return all columns."""
        return tuple(one for part in self.parts for one in part.schema)

    def columns(self, alias: str | None, place: Place | None) -> list[Column]:
        """Return all columns, or those of one table, as `*` means.

        Raises:
            SqlError: there is no such table.
        """
        chosen = [part for part in self.parts if alias in (None, part.alias)]
        if not chosen:
            known = ", ".join(part.alias for part in self.parts)
            raise SqlError(f"there is no table {alias!r} here", f"the tables of FROM are {known}", "", place)
        if alias is None and self.merged:
            return self._all(place)
        return [
            Column(one.type, part.first + at, one.name, place=place)
            for part in chosen
            for at, one in enumerate(part.schema)
        ]

    def _all(self, place: Place | None) -> list[Column]:
        """Merged columns, then those that are not hidden."""
        known = {
            part.first + at: Column(one.type, part.first + at, one.name, place=place)
            for part in self.parts
            for at, one in enumerate(part.schema)
        }
        hidden = {at for one in self.merged for at in (*one.hidden, one.column)}
        first = [known[one.column] for one in self.merged]
        return first + [column for at, column in known.items() if at not in hidden]

    def find(self, names: tuple[str, ...], place: Place | None) -> tuple[Expr, tuple[str, ...]]:
        """Return the column that a name with its parts begins with, and the fields of it that the rest names.

        Raises:
            SqlError: there is none, or several.
        """
        for part in self.parts:
            if len(names) > 1 and part.alias and part.alias == names[0]:
                found = self._in((part,), names[1], place)
                if found is not None:
                    return found, names[2:]
                raise self._unknown(names[1], (part,), place)
        column = self._in(self.parts, names[0], place)
        if column is not None:
            return column, names[1:]
        if len(names) > 1:
            known = [part.alias for part in self.parts]
            problem = f"there is no table or column {names[0]!r} here{nearest(names[0], known)}"
            raise SqlError(problem, f"the tables of FROM are {', '.join(known) or 'none'}", "", place)
        raise self._unknown(names[0], self.parts, place)

    def _in(self, parts: tuple[Part, ...], name: str, place: Place | None) -> Column | None:
        found = [
            Column(one.type, part.first + at, one.name, place=place)
            for part in parts
            for at, one in enumerate(part.schema)
            if one.name == name
        ]
        if len(found) > 1 and parts is self.parts:
            hidden = {at for one in self.merged if one.name == name for at in one.hidden if at != one.column}
            found = [one for one in found if one.index not in hidden]
        if len(found) > 1:
            owners = " and ".join(part.alias for part in parts if name in [one.name for one in part.schema])
            raise SqlError(f"column {name!r} is in {owners}", f"say of which table: {parts[0].alias}.{name}", "", place)
        return found[0] if found else None

    def _unknown(self, name: str, parts: tuple[Part, ...], place: Place | None) -> SqlError:
        known = [one.name for part in parts for one in part.schema]
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
            found, rest = self.inner.find(names, place)
        except SqlError as own:
            try:
                return super().find(names, place)
            except SqlError:
                raise own from None
        assert isinstance(found, Column)
        return replace(found, index=found.index + super().width), rest
