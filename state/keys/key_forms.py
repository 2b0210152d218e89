"""The types that may be keys, and the one standard form that all equal keys share.

The rule: two keys are the same key if and only if Python says ``a == b``, with two additions: all NaNs are one key,
and aware datetimes are compared by instant even inside a repeated or skipped hour.

| type | keys equal to it |
|---|---|
| None | |
| bool, int of any size, float, Decimal | every number of that value: 1, True, 1.0, Decimal(1); 0.0 and -0.0 |
| NaN, as float or Decimal | every NaN |
| str | |
| bytes | |
| date | |
| time, datetime, naive | |
| time, datetime, aware (a time: by whole seconds) | those of the same instant |
| timedelta | |
| uuid.UUID | |
| tuple of keys, namedtuple of keys | tuples and namedtuples with equal items |
| list of keys | lists with equal items; no tuple |
| Enum, Flag | the same member of the same class |
| IntEnum, IntFlag, Enum over str | the int or str |
| frozen dataclass, generated ``__eq__`` | the same class with equal compared fields |
| subclass of these that inherits ``__eq__`` | what equals its base |
| numpy bool, int, float, str, bytes, datetime64, timedelta64 | what equals its Python value |

All else is refused with ``InvalidKeyError``: dicts, sets, bytearrays, arrays, classes with an ``__eq__`` of their own,
objects compared by identity. A class inside a key is referred to by module and qualified name.
"""

from __future__ import annotations

import sys
from dataclasses import MISSING, Field, dataclass, fields, make_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, Flag
from functools import lru_cache
from typing import Any
from uuid import UUID
from zlib import crc32

from rayflink.user_types import UserKey

from ..classes.class_names import class_name
from ..errors import InvalidKeyError, UnresolvedClassError

NAN = float("nan")


class _FieldNan(float):
    """A NaN that equals itself and nothing else.

    From Python 3.13 on a dataclass compares its fields with `==` alone; before, an object was equal to itself.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __hash__(self) -> int:
        return 0

    def __reduce__(self) -> str:
        return "FIELD_NAN"


FIELD_NAN = _FieldNan("nan")
"""The NaN in a field of a dataclass that is used as a dict key."""
"""The object that stands for every NaN among keys."""
INT64_MIN, INT64_STOP = -(1 << 63), 1 << 63
MAX_DECIMAL_EXPONENT = 10_000
"""Largest exponent of a Decimal key: beyond, equal ints would need too many bytes."""

_BASES: tuple[type, ...] = (int, float, str, bytes, tuple, list, Decimal, datetime, date, time, timedelta, UUID)
_REMEDIES: dict[type, str] = {
    dict: "use tuple(sorted(d.items())) of it",
    set: "use tuple(sorted(...)) of it",
    frozenset: "use tuple(sorted(...)) of it",
    bytearray: "use bytes(...) of it",
    memoryview: "use bytes(...) of it",
    complex: "use (z.real, z.imag)",
    float: "use a finite number",
}
_OTHERWISE = (
    "key by None, bool, int, float, str, bytes, Decimal, date, time, datetime, timedelta, UUID, Enum, "
    "a frozen dataclass, or a tuple or list of these"
)


@dataclass(frozen=True, slots=True)
class ObjectForm:
    """Standard form of an Enum member or a frozen dataclass instance.

    ``schema`` is a CRC-32 of the compared field names in order; None marks an Enum member, whose one part is its
    name (Flag: its value).
    """

    class_name: str
    schema: int | None
    parts: tuple[Any, ...]


def number_form(number: int | float | Decimal) -> int | float | Decimal:
    """Return the standard form that all numbers of one value share; NaN gives the object ``NAN``.

    Raises: InvalidKeyError: a Decimal whose exponent exceeds ``MAX_DECIMAL_EXPONENT``.

    >>> number_form(1.0), number_form(Decimal("0.50")), number_form(2**70), number_form(Decimal("1.10"))
    (1, 0.5, 1.1805916207174113e+21, Decimal('1.1'))
    """
    if isinstance(number, float):
        if number.is_integer() and INT64_MIN <= number < INT64_STOP:
            return int(number)
        return number if number == number else NAN
    if isinstance(number, int):
        return _int_form(number)
    if number.is_nan():
        return NAN
    if number.is_infinite():
        return float(number)
    return _decimal_form(number)


def _int_form(number: int) -> int | float:
    if INT64_MIN <= number < INT64_STOP:
        return int(number)
    try:
        nearest = float(number)
    except OverflowError:
        return int(number)
    return nearest if nearest == number else int(number)


def _decimal_form(number: Decimal) -> int | float | Decimal:
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    end = len(digits)
    while end and digits[end - 1] == 0:
        end -= 1
    if end == 0:
        return 0
    exponent += len(digits) - end
    if exponent > MAX_DECIMAL_EXPONENT:
        raise InvalidKeyError(
            f"a Decimal with exponent {exponent}", "", f"key by numbers below 1E+{MAX_DECIMAL_EXPONENT}, or by str(d)"
        )
    if exponent >= 0:
        return _int_form(int(number))
    nearest = float(number)
    return nearest if nearest == number else Decimal((sign, digits[:end], exponent))


def unusual_form(key: object) -> Any:
    """Return the standard form of a key whose exact type is none of the plain ones.

    Returns: an ``ObjectForm``, or an equal value of a plain type.
    Raises: InvalidKeyError: the value cannot be a key.
    """
    cls: Any = type(key)
    if cls is _FieldNan:
        return NAN
    scalar = getattr(sys.modules.get("numpy"), "generic", None)  # None while another thread imports it
    if scalar is not None and isinstance(key, scalar):
        return numpy_form(key)
    base = plain_base(cls)
    if base is not None:
        return _as_base(key, base)
    if isinstance(key, Enum) and cls.__eq__ is object.__eq__:
        part = key.value if isinstance(key, Flag) else key.name
        return ObjectForm(_name_of(cls), None, (part,))
    if hasattr(cls, "__dataclass_params__"):
        schema, names = key_fields(cls)
        return ObjectForm(_name_of(cls), schema, tuple([getattr(key, name) for name in names]))
    raise refusal(cls)


def plain_base(cls: type) -> type | None:
    """Return the plain type whose equality a class inherits unchanged; None when there is none."""
    base: Any
    for base in _BASES:
        if issubclass(cls, base):
            return base if cls.__eq__ is base.__eq__ else None
    return None


def refusal(cls: type) -> InvalidKeyError:
    """Return the error for a value of a type that cannot be a key."""
    for refused, remedy in _REMEDIES.items():
        if issubclass(cls, refused):
            return InvalidKeyError(f"a {describe(cls)}", "", remedy)
    for base in _BASES:
        if issubclass(cls, base):
            method = ".to_pydatetime()" if cls.__name__ == "Timestamp" else ""
            return InvalidKeyError(
                f"a {describe(cls)} with an __eq__ of its own", "", f"use a plain {base.__name__}{method}"
            )
    return InvalidKeyError(f"a {describe(cls)}", "", _OTHERWISE)


def too_deep(key: object) -> InvalidKeyError:
    """Return the error for a key that is nested deeper than Python can follow."""
    return InvalidKeyError(f"a {describe(type(key))} nested too deeply", "", "key by a part of it, or its text")


def describe(cls: type) -> str:
    """Return the name of a class for messages: bare for builtins, else with its module."""
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _as_base(key: UserKey, base: type) -> Any:
    if base is str:
        return str.__str__(key)
    if base is int:
        return int.__int__(key)
    if base is float:
        return float.__float__(key)
    if base is bytes:
        return bytes.__getitem__(key, slice(None))
    if base is tuple or base is list:
        return base.__getitem__(key, slice(None))
    if base is Decimal:
        return Decimal(key)
    if base is datetime:
        return datetime(
            key.year, key.month, key.day, key.hour, key.minute, key.second, key.microsecond, key.tzinfo, fold=key.fold
        )
    if base is date:
        return date(key.year, key.month, key.day)
    if base is time:
        return time(key.hour, key.minute, key.second, key.microsecond, key.tzinfo, fold=key.fold)
    if base is timedelta:
        return timedelta(key.days, key.seconds, key.microseconds)
    return UUID(int=key.int)


def numpy_form(scalar: UserKey) -> Any:
    """Return the Python value of a numpy scalar.

    Raises: InvalidKeyError: no Python value equals it (longdouble, complex, NaT, parts of a microsecond).
    """
    kind = scalar.dtype.kind
    actual = f"a numpy.{type(scalar).__name__}"
    if kind in "biuUS" or (kind == "f" and scalar.dtype.itemsize <= 8):
        return scalar.item()
    if kind not in "Mm":
        remedy = "use float(x)" if kind == "f" else "use a tuple of its parts"
        raise InvalidKeyError(actual, "", remedy)
    value = scalar.astype(f"{kind}8[us]").item() if scalar.dtype.str[3:] not in ("[D]", "") else scalar.item()
    if not isinstance(value, (date, timedelta)):
        raise InvalidKeyError(
            f"{actual} that is NaT or without unit", "", "use None, or a value inside years 1 to 9999"
        )
    if scalar.dtype.str[3:] != "[D]" and type(scalar)(value) != scalar:
        raise InvalidKeyError(f"{actual} with a part of a microsecond", "", "use int(x.astype('int64'))")
    return value


@lru_cache(maxsize=1024)
def key_fields(cls: type) -> tuple[int, tuple[str, ...]]:
    """Return the schema and names of the fields by which a frozen dataclass is compared.

    Raises: InvalidKeyError: the class is not frozen, has its own ``__eq__``, or a field that is not compared and has
        no default.
    """
    name = f"a {describe(cls)}"
    params: Any = getattr(cls, "__dataclass_params__")  # noqa: B009
    own: tuple[Field[Any], ...] = fields(cls)
    if not params.frozen:
        raise InvalidKeyError(f"{name}, a dataclass that can change", "", "declare it @dataclass(frozen=True)")
    if not _has_generated_eq(cls, own):
        raise InvalidKeyError(f"{name}, a dataclass with an __eq__ of its own", "", "key by a tuple of its fields")
    for field in own:
        if not field.compare and field.default is MISSING and field.default_factory is MISSING:
            raise InvalidKeyError(
                f"{name} with field {field.name!r} left out of comparison", "", "give that field a default"
            )
    names = tuple([field.name for field in own if field.compare])
    return crc32(",".join(names).encode()), names


def _has_generated_eq(cls: type, own: tuple[Field[Any], ...]) -> bool:
    names = [field.name for field in own if field.compare]
    code = getattr(cls.__eq__, "__code__", None)
    wanted: Any = make_dataclass("Wanted", names, frozen=True).__eq__
    return (
        code is not None
        and code.co_code == wanted.__code__.co_code
        and code.co_names == wanted.__code__.co_names
        and code.co_consts == wanted.__code__.co_consts
        and code.co_varnames == wanted.__code__.co_varnames
    )


def _name_of(cls: type) -> str:
    try:
        return class_name(cls)
    except UnresolvedClassError as cause:
        raise InvalidKeyError(
            f"a {describe(cls)}, which no other process can find ({cause.reason})",
            "",
            "define the class at the top level of a module",
        ) from cause


def rebuild(cls: type, parts: tuple[Any, ...]) -> Any:
    """Return an instance of a frozen dataclass with these compared fields; the others get their defaults."""
    result: Any = object.__new__(cls)
    values = iter(parts)
    for field in fields(cls):
        if field.compare:
            value = next(values)
        elif field.default is not MISSING:
            value = field.default
        else:
            assert field.default_factory is not MISSING
            value = field.default_factory()
        object.__setattr__(result, field.name, value)
    return result
