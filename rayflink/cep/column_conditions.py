"""Conditions on columns: computed for all rows of a batch at once, and for single rows by the same kernels.

A `ColumnCondition` knows the names of its columns and is bound to their types. Columns of Arrow are passed to it as
they are. Rows (dict, Row, named tuple, dataclass) become columns first, in groups of equal types: the type of a value
depends on the value alone, so that the division of a stream into batches changes no result.

`rayflink.table` makes such conditions of expressions; an object has one if it has `__column_condition__`.
"""

from __future__ import annotations

import dataclasses
import datetime
import difflib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

from rayflink.common.errors import shorten
from rayflink.common.types import Row
from rayflink.user_types import UserRecord

from .errors import MalformedPatternException

if TYPE_CHECKING:
    import pyarrow

BoundCondition: TypeAlias = "Callable[[Sequence[pyarrow.Array], int], pyarrow.BooleanArray]"
"""Columns and number of rows -> which rows meet the condition; null counts as not met."""


class ColumnCondition(ABC):
    """A condition on the columns of an event.

    Args:
        columns: names of the columns that it reads.
    """

    def __init__(self, columns: tuple[str, ...]) -> None:
        self.columns = columns

    @abstractmethod
    def bind(self, schema: pyarrow.Schema) -> BoundCondition:
        """Return the condition for columns of these types.

        Args:
            schema: exactly the fields of `columns`, in that order.
        Raises:
            MalformedPatternException: it does not take such types; without the line of the program.
        """

    def meets(self, event: UserRecord) -> bool:
        """Return whether one event meets the condition.

        Raises:
            MalformedPatternException: the event lacks a column, or has a type that the condition does not take.
            Exception: the condition has no value for the event, such as a division by zero.
        """
        ((_, schema, columns),) = EventColumns([event]).groups(self.columns)
        return self.bind(schema)(columns, 1)[0].as_py() is True

    def check_names(self, names: Iterable[str]) -> None:
        """Check that all columns are among these.

        Raises:
            MalformedPatternException: one is not; without the line of the program.
        """
        known = list(names)
        for name in self.columns:
            if name not in known:
                raise no_column(name, known)


def no_column(name: str, known: Sequence[str]) -> MalformedPatternException:
    """Return the error of a column that events do not have."""
    similar = difflib.get_close_matches(name, known, n=1)
    hint = f" (did you mean {similar[0]!r}?)" if similar else ""
    remedy = f"their columns are {', '.join(known)}" if known else (
        "events with columns are Arrow batches, dicts, Rows, named tuples and dataclasses; pass a callable of the event"
    )  # fmt: skip
    return MalformedPatternException(f"the events have no column {name!r}{hint}", remedy)


Group: TypeAlias = "tuple[list[int] | None, pyarrow.Schema, list[pyarrow.Array]]"
"""The places of rows whose values have equal types (None: all rows), these types, and their columns."""


class EventColumns:
    """The columns of a few rows, made when they are first asked for.

    Args:
        events: the rows.
    """

    def __init__(self, events: Sequence[UserRecord]) -> None:
        self._events = events
        self._values: dict[str, list[Any]] = {}
        self._groups: dict[tuple[str, ...], list[Group]] = {}

    def groups(self, names: tuple[str, ...]) -> list[Group]:
        """Return the rows in groups of equal types.

        Raises:
            MalformedPatternException: a row lacks one of these columns.
            Exception: a value is none that Arrow has.
        """
        groups = self._groups.get(names)
        if groups is None:
            groups = self._groups[names] = list(self._grouped(names))
        return groups

    def single(self, place: int) -> EventColumns:
        """Return one of the rows."""
        return EventColumns([self._events[place]])

    def _grouped(self, names: tuple[str, ...]) -> Iterable[Group]:
        import pyarrow

        values = [self._column(name) for name in names]
        kinds = [_types_of(column) for column in values]
        places_of: dict[tuple[Any, ...], list[int]] = {}
        if all(len(set(column)) == 1 for column in kinds):
            places_of[tuple(column[0] for column in kinds)] = list(range(len(self._events)))
        else:
            for place, kind in enumerate(zip(*kinds, strict=True)):
                places_of.setdefault(kind, []).append(place)
        for types, places in places_of.items():
            is_whole = len(places) == len(self._events)
            columns = values if is_whole else [[column[place] for place in places] for column in values]
            schema = pyarrow.schema(list(zip(names, types, strict=True)))
            arrays = [_array(column, kind) for column, kind in zip(columns, types, strict=True)]
            yield None if is_whole else places, schema, arrays

    def _column(self, name: str) -> list[Any]:
        column = self._values.get(name)
        if column is None:
            column = self._values[name] = self._extract(name)
        return column

    def _extract(self, name: str) -> list[Any]:
        events = self._events
        kinds = set(map(type, events))
        kind = kinds.pop() if len(kinds) == 1 else None
        if kind is dict:
            try:
                return [event[name] for event in events]
            except KeyError:
                pass  # `_value` names the columns that there are
        elif kind is not None and kind is not tuple and issubclass(kind, tuple) and name in column_names(events[0]):
            place = column_names(events[0]).index(name)
            return [event[place] for event in events]
        return [_value(event, name) for event in events]


def _value(event: UserRecord, name: str) -> Any:
    """Return the value of a column of a row.

    Raises:
        MalformedPatternException: it has no such column.
    """
    if isinstance(event, dict):
        if name in event:
            return event[name]
    elif name in (names := column_names(event)):
        return event[names.index(name)] if isinstance(event, Row | tuple) else getattr(event, name)
    raise no_column(name, column_names(event))


def column_names(event: UserRecord) -> list[str]:
    """Return the names of a row's columns; those without names have f0, f1, ..., objects of other classes none."""
    if isinstance(event, dict):
        return [name for name in event if isinstance(name, str)]
    if isinstance(event, Row | tuple):
        names = getattr(event, "_fields", None)
        return [f"f{place}" for place in range(len(event))] if names is None else list(names)
    if dataclasses.is_dataclass(event):
        return [field.name for field in dataclasses.fields(event)]
    return []


def _array(values: list[Any], kind: pyarrow.DataType) -> pyarrow.Array:
    import pyarrow

    try:
        return pyarrow.array(values, kind)
    except OverflowError as error:
        beyond = next(value for value in values if isinstance(value, int) and not -(2**63) <= value < 2**63)
        problem = f"{shorten(beyond, 80)} is beyond the 64 bits of BIGINT"
        raise OverflowError(f"{problem}; pass a callable of the event instead of an expression") from error


def _types_of(values: list[Any]) -> list[pyarrow.DataType]:
    """Return the type of each value, which depends on nothing but the value."""
    import pyarrow

    known = {
        bool: pyarrow.bool_(), int: pyarrow.int64(), float: pyarrow.float64(), str: pyarrow.string(),
        bytes: pyarrow.binary(), Decimal: pyarrow.decimal128(38, 18), datetime.date: pyarrow.date32(),
        datetime.time: pyarrow.time64("us"), type(None): pyarrow.null(),
    }  # fmt: skip
    kinds = set(map(type, values))
    if len(kinds) == 1 and (kind := known.get(next(iter(kinds)))) is not None:
        return [kind] * len(values)
    return [known.get(type(value)) or _type_of(value) for value in values]


def _type_of(value: object) -> pyarrow.DataType:
    import pyarrow

    if isinstance(value, datetime.datetime):
        return pyarrow.timestamp("us", None if value.tzinfo is None else "UTC")
    try:
        return pyarrow.array([value]).type
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, pyarrow.ArrowNotImplementedError) as error:
        raise TypeError(
            f"{shorten(value, 80)} of type {type(value).__name__} is no value of a column ({error}); "
            "pass a callable of the event instead of an expression"
        ) from error


def column_condition_of(condition: object) -> ColumnCondition | None:
    """Return the condition on columns that an object is, such as an expression; None where it is none."""
    make: Callable[[], ColumnCondition] | None = getattr(type(condition), "__column_condition__", None)
    return None if make is None else make(condition)  # type: ignore[call-arg]


__all__ = ["BoundCondition", "ColumnCondition", "EventColumns", "column_condition_of", "column_names", "no_column"]
