"""The values of references: which rows of a match they mean, and what these have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import reduce
from operator import add
from typing import Any, TypeAlias

from rayflink.cep.nfa.partial_matches import Node

from ...plan.matching import AggregateReference, ClassifierReference, Pick, Reference
from ...types import DataType, Root

RowValues: TypeAlias = tuple[Any, ...]
"""The raw values of a row that partial matches need."""
Reader: TypeAlias = Callable[[Node], Any]
"""The last node of a match -> the value of a reference; None for NULL."""
_BITS = {Root.TINYINT: 8, Root.SMALLINT: 16, Root.INT: 32, Root.BIGINT: 64}
_EXACT = Context(prec=120, rounding=ROUND_HALF_UP)


def reader(reference: Reference, places: Mapping[int, int], variables: Sequence[str]) -> Reader:
    """Return a function that reads a reference.

    Args:
        places: number of a field -> its place among the values of a row.
        variables: names of all variables.
    """
    if isinstance(reference, ClassifierReference):
        return lambda node: variables[node[0]]
    steps = frozenset(reference.variables or range(len(variables)))
    if isinstance(reference, AggregateReference):
        return _aggregate_reader(reference, steps, places)
    place, offset = places[reference.field], reference.offset
    if reference.pick is Pick.CURRENT:
        return lambda node: node[2][place]
    if reference.pick is Pick.FIRST:
        return _first_reader(steps, place, offset)
    return _last_reader(steps, place, offset)


def _last_reader(steps: frozenset[int], place: int, offset: int) -> Reader:
    def last(node: Node | None) -> Any:
        left = offset
        while node is not None:
            if node[0] in steps:
                if not left:
                    return node[2][place]
                left -= 1
            node = node[3]
        return None

    return last


def _first_reader(steps: frozenset[int], place: int, offset: int) -> Reader:
    def first(node: Node | None) -> Any:
        rows = []
        while node is not None:
            if node[0] in steps:
                rows.append(node[2])
            node = node[3]
        return rows[-1 - offset][place] if offset < len(rows) else None

    return first


def _aggregate_reader(reference: AggregateReference, steps: frozenset[int], places: Mapping[int, int]) -> Reader:
    place = None if reference.field is None else places[reference.field]
    compute = _FUNCTIONS[reference.kind]

    def aggregate(node: Node | None) -> Any:
        values = []
        while node is not None:
            if node[0] in steps:
                value = True if place is None else node[2][place]
                if value is not None:
                    values.append(value)
            node = node[3]
        values.reverse()
        return compute(values, reference.type)

    return aggregate


def _sum(values: list[Any], kind: DataType) -> Any:
    if not values:
        return None
    if kind.root is Root.DECIMAL:
        total = Decimal(0)
        for value in values:
            total = _EXACT.add(total, value)
        return _fitting(total, kind)
    total = reduce(add, values)  # as in Flink; `sum` begins with 0, and from Python 3.12 on it corrects rounding
    bits = _BITS.get(kind.root)
    return total if bits is None else (total + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def _average(values: list[Any], kind: DataType) -> Any:
    if not values:
        return None
    if kind.root is Root.DECIMAL:
        total = Decimal(0)
        for value in values:
            total = _EXACT.add(total, value)
        return _fitting(_EXACT.divide(total, Decimal(len(values))), kind)
    total = reduce(add, values)
    if kind.root not in _BITS:
        return total / len(values)
    return -(-total // len(values)) if total < 0 else total // len(values)  # cut towards zero


def _fitting(value: Decimal, kind: DataType) -> Decimal | None:
    """Return a decimal with the digits of its type; None where it has too many."""
    rounded = value.quantize(Decimal(1).scaleb(-kind.scale), context=_EXACT)
    return rounded if len(rounded.as_tuple().digits) <= kind.precision else None


_FUNCTIONS: dict[str, Callable[[list[Any], DataType], Any]] = {
    "COUNT": lambda values, kind: len(values),
    "SUM": _sum,
    "AVG": _average,
    "MIN": lambda values, kind: min(values, default=None),
    "MAX": lambda values, kind: max(values, default=None),
}


def path_of(node: Node) -> list[Node]:
    """Return the nodes of a match, the first one first."""
    path = []
    last: Node | None = node
    while last is not None:
        path.append(last)
        last = last[3]
    return path[::-1]


__all__ = ["Reader", "RowValues", "path_of", "reader"]
