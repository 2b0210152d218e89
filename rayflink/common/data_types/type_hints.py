"""The way from Python to types: hints, classes, annotations of functions, and values.

A Python int has no bound, so `int` means BIG_INT. What has no exact counterpart is PICKLED_BYTE_ARRAY, which takes
every object as it is: an annotation never narrows what a program may do.
"""

from __future__ import annotations

import collections.abc
import datetime
import functools
import inspect
import types
import typing
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from rayflink.user_types import TypeHint, UserValue

from ..errors import InvalidTypesError, shorten
from ..time import Instant
from ..types import Row
from .basic_types import (
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    InstantTypeInfo,
    PickledBytesTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
)
from .composite_types import ListTypeInfo, MapTypeInfo, PrimitiveArrayTypeInfo, RowTypeInfo, TupleTypeInfo
from .type_base import TypeInformation

__all__ = ["infer_type", "return_type_of", "to_type_info"]

_PICKLED = PickledBytesTypeInfo()
_CLASSES: dict[Any, TypeInformation] = {
    str: BasicTypeInfo(BasicType.STRING),
    bool: BasicTypeInfo(BasicType.BOOLEAN),
    int: BasicTypeInfo(BasicType.BIG_INT),
    float: BasicTypeInfo(BasicType.DOUBLE),
    bytes: PrimitiveArrayTypeInfo(BasicTypeInfo(BasicType.BYTE)),
    Decimal: BasicTypeInfo(BasicType.BIG_DEC),
    Instant: InstantTypeInfo(),
    datetime.date: DateTypeInfo(),
    datetime.time: TimeTypeInfo(),
    datetime.datetime: TimestampTypeInfo(),
    type(None): BasicTypeInfo(BasicType.VOID),
    None: BasicTypeInfo(BasicType.VOID),
}
_ITERABLES = (
    collections.abc.Iterable,
    collections.abc.Iterator,
    collections.abc.Generator,
    collections.abc.Sequence,
    list,
)


def to_type_info(declared: TypeHint, line: str = "") -> TypeInformation:
    """Return the type a program means by a TypeInformation, a typing hint or a class.

    >>> to_type_info(tuple[str, list[float]]), to_type_info(str)
    (TupleTypeInfo(String, ListTypeInfo<Double>), String)

    Args:
        line: ``file:line`` of the program, for the message.
    Raises: InvalidTypesError: it is none of the three, for example a value or the text of a hint.
    """
    if isinstance(declared, TypeInformation):
        return declared
    if isinstance(declared, typing.Hashable) and declared in _CLASSES:
        return _CLASSES[declared]
    origin = typing.get_origin(declared)
    if origin is not None:
        return _generic(origin, typing.get_args(declared), line)
    if isinstance(declared, typing.NewType):
        return to_type_info(declared.__supertype__, line)
    if isinstance(declared, (type, typing.TypeVar)) or declared is typing.Any:
        return _PICKLED
    name = getattr(declared, "__name__", "")
    if callable(declared) and name in dir(_shortcuts()):
        remedy = f"call it: Types.{name}()"
    else:
        remedy = "give a TypeInformation such as Types.STRING(), a type hint such as list[int], or a class"
    raise InvalidTypesError(f"{shorten(declared, 80)} is not a type", remedy, line)


def _shortcuts() -> type:
    from ..typeinfo import Types  # which imports this module

    return Types


def _generic(origin: TypeHint, arguments: tuple[Any, ...], line: str) -> TypeInformation:
    """Return the type of ``origin[arguments]``."""
    if origin is tuple and arguments not in ((), ((),)) and Ellipsis not in arguments:
        return TupleTypeInfo([_field(argument, line) for argument in arguments])
    if origin is list and arguments:
        return ListTypeInfo(_field(arguments[0], line))
    if origin is dict and len(arguments) == 2:
        return MapTypeInfo(to_type_info(arguments[0], line), _field(arguments[1], line))
    if origin in (typing.Union, types.UnionType):
        some = [argument for argument in arguments if argument is not type(None)]
        inner = to_type_info(some[0], line) if len(some) == 1 else _PICKLED
        return inner if inner.accepts_none or len(some) == len(arguments) else _PICKLED
    if origin is typing.Annotated:
        return to_type_info(arguments[0], line)
    return _PICKLED


def _field(hint: TypeHint, line: str) -> TypeInformation:
    """Return the type of a field or element: there None is a value of every type, so Optional adds nothing."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        some = [argument for argument in typing.get_args(hint) if argument is not type(None)]
        return to_type_info(some[0], line) if len(some) == 1 else _PICKLED
    return to_type_info(hint, line)


def return_type_of(function: Callable[..., Any], many: bool = False) -> TypeInformation | None:
    """Return the type a function declares to return, or None where it does not: a lambda, no annotation, unknown name.

    Args:
        many: the function returns or yields any number of values; the type is that of one of them.
    """
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, type):
        return None if many else to_type_info(function)
    target = function if inspect.isroutine(function) else type(function).__call__
    try:
        hints = typing.get_type_hints(target)
    except (NameError, TypeError, AttributeError):
        return None  # an annotation that cannot be resolved says nothing; types are optional everywhere
    if "return" not in hints:
        return None
    hint = hints["return"]
    if many:
        arguments = typing.get_args(hint)
        if typing.get_origin(hint) not in _ITERABLES or not arguments:
            return None
        hint = arguments[0]
    try:
        return to_type_info(hint)
    except InvalidTypesError:
        return None


def infer_type(value: UserValue) -> TypeInformation:
    """Return the type of one value; PICKLED_BYTE_ARRAY where no other type takes it unchanged.

    >>> infer_type(("a", 1.5)), infer_type([1, 2]), infer_type({1, 2})
    (TupleTypeInfo(String, Double), ListTypeInfo<BigInteger>, PickledByteArrayTypeInfo)
    """
    kind = type(value)
    if kind in _CLASSES:
        return _CLASSES[kind]
    if kind is tuple:
        return TupleTypeInfo([infer_type(item) for item in value])
    if kind is Row:
        return RowTypeInfo([infer_type(item) for item in value], value._names)
    if kind is list:
        element = _common(value)
        return _PICKLED if element is None else ListTypeInfo(element)
    if kind is dict:
        key, item = _common(value), _common(value.values())
        return _PICKLED if key is None or item is None or None in value else MapTypeInfo(key, item)
    return _PICKLED


def _common(values: typing.Iterable[Any]) -> TypeInformation | None:
    """Return the one type of all values that are not None; None where there is no such type."""
    kinds = {infer_type(value) for value in values if value is not None}
    return kinds.pop() if len(kinds) == 1 else None
