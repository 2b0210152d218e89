"""Built-in aggregations of one field: sum, min, max, min_by, max_by, as reduce functions on records.

`sum`, `min` and `max` keep all other fields of the first record; `min_by` and `max_by` keep the whole record, the first
of equal ones. A record is a tuple, list, Row, named tuple or, with position 0, the bare value itself.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from operator import add, gt, lt
from typing import Any

Combine = Callable[[Any, Any], Any]
Position = int | str


def aggregation(kind: str, position: Position = 0) -> Combine:
    """Return the reduce function of a built-in aggregation.

    Args:
        kind: sum, min, max, min_by or max_by.
        position: index of the field, or its name where records have names.

    Raises:
        ValueError: there is no such kind.
        TypeError: the position is neither an index nor a name.

    >>> aggregation("sum", 1)(("a", 1), ("b", 2)), aggregation("max_by", 1)(("a", 1), ("b", 2))
    (('a', 3), ('b', 2))
    """
    if isinstance(position, bool) or not isinstance(position, (int, str)):
        raise TypeError(f"{kind} needs a field index or name, found {position!r}")
    if kind == "sum":
        return _on_field(kind, position, add)
    if kind == "min":
        return _on_field(kind, position, lambda a, b: b if b < a else a)
    if kind == "max":
        return _on_field(kind, position, lambda a, b: b if b > a else a)
    if kind == "min_by":
        return _by_field(kind, position, lt)
    if kind == "max_by":
        return _by_field(kind, position, gt)
    raise ValueError(f"there is no aggregation {kind!r}; use sum, min, max, min_by or max_by")


def orders(kind: str, position: Position) -> Callable[[Any, Any], bool]:
    """Return whether the first record wins over the second, for min_by or max_by; of equal records none wins.

    Raises:
        TypeError: a record has no such field, or they cannot be compared.
    """
    precedes = lt if kind == "min_by" else gt
    return lambda record, other: precedes(field_of(record, position), field_of(other, position))


def field_of(record: Any, position: Position) -> Any:
    """Return the field of a record at an index or name; the record itself where it has no fields and the position is 0.

    Raises:
        TypeError: the record has no such field.
    """
    try:
        if isinstance(position, str) and isinstance(record, tuple):
            return getattr(record, position)
        return record if _is_bare(record) and position == 0 else record[position]
    except (TypeError, IndexError, KeyError, ValueError, AttributeError) as error:
        kind = type(record).__name__
        raise TypeError(f"a record of type {kind} has no field {position!r}; aggregate by a field it has") from error


def misfit(kind: str, position: Position, first: Any, second: Any) -> TypeError:
    """Describe why two records cannot be aggregated: fields are missing or incompatible."""
    try:
        before, after = (type(field_of(record, position)).__name__ for record in (first, second))
    except TypeError as error:
        return error
    wanted = "numbers" if kind == "sum" else "values that can be compared"
    problem = f"{kind} of field {position!r} found {after} after {before}, wanted {wanted}"
    return TypeError(f"{problem}; filter such records out, or give the field a value, before {kind}")


def _is_bare(record: Any) -> bool:
    return isinstance(record, (str, bytes)) or not hasattr(type(record), "__getitem__")


def _by_field(kind: str, position: Position, precedes: Combine) -> Combine:
    def by_field(first: Any, second: Any) -> Any:
        try:
            return second if precedes(field_of(second, position), field_of(first, position)) else first
        except TypeError as error:
            raise misfit(kind, position, first, second) from error

    return by_field


def _on_field(kind: str, position: Position, combine: Combine) -> Combine:
    def on_field(first: Any, second: Any) -> Any:
        try:
            result = combine(field_of(first, position), field_of(second, position))
        except TypeError as error:
            raise misfit(kind, position, first, second) from error
        if type(first) is tuple and isinstance(position, int):
            if position < 0 or position >= len(first):
                fields = list(first)
                fields[position] = result
                return tuple(fields)
            return (*first[:position], result, *first[position + 1 :])
        if _is_bare(first):
            return result
        if isinstance(first, tuple):  # a named tuple
            name = position if isinstance(position, str) else first._fields[position]  # type: ignore[attr-defined]
            return first._replace(**{name: result})  # type: ignore[attr-defined]
        changed = copy.copy(first) if isinstance(first, (list, dict)) else copy.deepcopy(first)
        changed[position] = result  # type: ignore[index]
        return changed

    return on_field if isinstance(position, str) or position < 0 else _on_tuple_field(kind, position, combine, on_field)


def _on_tuple_field(kind: str, position: int, combine: Combine, otherwise: Combine) -> Combine:
    """Return the same as `otherwise`, but quick for plain tuples that have the field."""
    after = position + 1

    def on_tuple_field(first: Any, second: Any) -> Any:
        if first.__class__ is tuple and second.__class__ is tuple and position < len(first) and position < len(second):
            try:
                return first[:position] + (combine(first[position], second[position]),) + first[after:]
            except TypeError as error:
                raise misfit(kind, position, first, second) from error
        return otherwise(first, second)

    return on_tuple_field
