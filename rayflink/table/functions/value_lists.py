"""Long lists of constants, as IN has them: columns, in which values are looked up."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow
import pyarrow.compute as pc
from pyarrow import types

from rayflink.table.plan.typed import Literal
from rayflink.table.types import DataType, DataTypes

LONG = 20
"""A list of more constants is one object."""
_SHOWN, _BEGINNING = 100, 10


class ValueList:
    """Constants of which a value may be one; two lists are equal where they were made of the same constants.

    Args:
        parts: types, and of each a column with the values of that type, none of them null.
        has_null: whether NULL is one of the constants.
        digest: distinguishes the list from others.
    """

    def __init__(self, parts: tuple[tuple[DataType, pyarrow.Array], ...], has_null: bool, digest: str) -> None:
        self.parts, self.has_null, self._digest = parts, has_null, digest
        self._sets: dict[Any, ValueSet] = {}

    @classmethod
    def of(cls, literals: Sequence[Literal]) -> ValueList:
        """Return the constants of literals."""
        by_type: dict[DataType, dict[Any, None]] = {}
        for literal in literals:
            if literal.value is not None:
                by_type.setdefault(literal.type, {})[literal.value] = None
        parts = tuple((kind, pyarrow.array(list(some), kind.to_arrow())) for kind, some in by_type.items())
        has_null = any(literal.value is None for literal in literals)
        described = repr([(str(kind), list(some)) for kind, some in by_type.items()])
        return cls(parts, has_null, hashlib.sha256(f"{has_null} {described}".encode()).hexdigest())

    @property
    def types(self) -> list[DataType]:
        """Return the types of the constants."""
        return [kind for kind, _ in self.parts]

    def __len__(self) -> int:
        return sum(len(values) for _, values in self.parts) + self.has_null

    def __iter__(self) -> Iterator[Literal]:
        for kind, values in self.parts:
            plain = values.cast(pyarrow.int64()) if types.is_duration(values.type) else values
            yield from (Literal(kind, value.as_py()) for value in plain)
        if self.has_null:
            yield Literal(DataTypes.NULL(), None)

    def once(self, about: Any, make: Callable[[], pyarrow.Array]) -> ValueSet:
        """Return the constants as values are compared with them.

        Args:
            about: all that says how.
            make: gives them as one column.
        """
        value_set = self._sets.get(about)
        if value_set is None:
            value_set = self._sets[about] = ValueSet(make())
        return value_set

    def __str__(self) -> str:
        if len(self) <= _SHOWN:
            return ", ".join(map(str, self))
        return f"{', '.join(map(str, islice(self, _BEGINNING)))}, ... {len(self)} values, {self._digest[:8]}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValueList) and self._digest == other._digest

    def __hash__(self) -> int:
        return hash(self._digest)

    def __reduce__(self) -> tuple[Any, ...]:
        return ValueList, (self.parts, self.has_null, self._digest)


class ValueSet:
    """Values of one type in which others are looked up.

    Args:
        values: without nulls.
    """

    def __init__(self, values: pyarrow.Array) -> None:
        has_search = hasattr(pc, "search_sorted") and len(values) and _is_searched(values.type)
        self._sorted = values.take(pc.sort_indices(values)) if has_search else None
        self._values = _of_one_zero(values)

    def has(self, values: pyarrow.Array) -> pyarrow.Array:
        """Return whether each value is one of them; NULL may be anything."""
        if self._sorted is None:
            return pc.is_in(_of_one_zero(values), self._values)
        places = pc.min_element_wise(pc.search_sorted(self._sorted, values), len(self._sorted) - 1)
        return pc.equal(self._sorted.take(places.cast(pyarrow.int64())), values)


def _is_searched(kind: pyarrow.DataType) -> bool:
    return not (types.is_decimal(kind) or types.is_boolean(kind))


def _of_one_zero(values: pyarrow.Array) -> pyarrow.Array:
    """Return the same, where -0.0 is 0.0."""
    return pc.add(values, pyarrow.scalar(0.0, values.type)) if types.is_floating(values.type) else values


__all__ = ["LONG", "ValueList"]
