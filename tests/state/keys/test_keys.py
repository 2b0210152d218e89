"""Keys: which values may be keys, and when two of them are the same key."""

from __future__ import annotations

import math
import pickle
from dataclasses import dataclass
from datetime import datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import example, given

from rayflink.state.errors import InvalidKeyError, MalformedBytesError
from rayflink.state.keys import canonical_key, decode_key, encode_key, key_hash, read_key
from rayflink.state.keys.key_encoding import key_end
from rayflink.state.keys.list_key import ListKey

from .key_samples import Colour, Device, Level, Point, Right, User, keys, numbers, plain_keys


def python_value(key: Any) -> Any:
    """Return a numpy scalar as a Python value: numpy compares with a tolerance of its own, the rule compares Python
    values.
    """
    if isinstance(key, np.generic):
        return canonical_key(key)
    if isinstance(key, tuple):
        return tuple(map(python_value, key))
    if isinstance(key, list):
        return list(map(python_value, key))
    if isinstance(key, (User, Device)):
        return type(key)(key.name, python_value(key.age))
    return key


def assert_the_rule(a: Any, b: Any) -> None:
    same = bool(python_value(a) == python_value(b))
    assert (encode_key(a) == encode_key(b)) is same
    if same:
        assert key_hash(a) == key_hash(b)
    assert (canonical_key(a) == canonical_key(b)) is same
    assert len({canonical_key(a), canonical_key(b)}) == (1 if same else 2)


@given(numbers, numbers)
@example(2**70, 2.0**70)
@example(10**300, 1e300)
@example(Decimal(0.1), 0.1)
@example(Decimal("0.1"), 0.1)
def test_numbers_are_one_key_exactly_when_python_says_they_are_equal(a: Any, b: Any) -> None:
    assert_the_rule(a, b)


@pytest.mark.slow
@given(plain_keys, plain_keys)
@example("\ud83d\ude00", "\U0001f600")
def test_keys_are_one_exactly_when_python_says_they_are_equal(a: Any, b: Any) -> None:
    assert_the_rule(a, b)


@given(keys, keys)
def test_nested_keys_are_one_exactly_when_python_says_they_are_equal(a: Any, b: Any) -> None:
    assert_the_rule(a, b)


@given(keys)
@example(time(1, tzinfo=timezone(-timedelta(hours=23, minutes=59))))
@example(time(1, tzinfo=timezone(timedelta(hours=23, minutes=59))))
def test_a_decoded_key_equals_the_key(key: Any) -> None:
    back = decode_key(encode_key(key))
    assert back == python_value(key)
    assert hash(back) == hash(canonical_key(python_value(key)))
    assert encode_key(back) == encode_key(key)


@given(keys, keys)
def test_an_encoded_key_ends_itself(a: Any, b: Any) -> None:
    both = encode_key(a) + encode_key(b)
    first, at = read_key(both, 0)
    assert first == python_value(a)
    assert both[at:] == encode_key(b)


@given(keys)
def test_a_key_cut_short_is_an_error_not_another_key(key: Any) -> None:
    data = encode_key(key)
    for end in range(len(data)):
        with pytest.raises(MalformedBytesError):
            decode_key(data[:end])
    with pytest.raises(MalformedBytesError, match="too many"):
        decode_key(data + b"\x01")


@pytest.mark.parametrize(
    "nan", [float("nan"), -float("nan"), Decimal("NaN"), Decimal("sNaN"), np.float64("nan"), np.float32("nan")]
)
def test_all_nans_are_one_key(nan: Any) -> None:
    held = {canonical_key(math.nan): "first", canonical_key((1, math.nan)): "second"}
    assert held[canonical_key(nan)] == "first"
    assert held[canonical_key((1, nan))] == "second"
    assert encode_key(nan) == encode_key(math.nan)
    assert key_hash(nan) == key_hash(math.nan)
    assert canonical_key(decode_key(encode_key((nan,)))) == canonical_key((nan,))
    field = canonical_key(User("a", nan))
    assert field == canonical_key(User("a", math.nan)) == canonical_key(field) == pickle.loads(pickle.dumps(field))
    assert {field: "third"}[canonical_key(User("a", nan))] == "third" and not field != canonical_key(field)
    assert math.isnan(field.age) and math.isnan(decode_key(encode_key(field)).age)
    assert encode_key(field) == encode_key(User("a", nan)) and key_hash(field) == key_hash(User("a", nan))
    assert canonical_key(pickle.loads(pickle.dumps(canonical_key(nan)))) is canonical_key(nan)


def test_a_key_is_its_own_dict_key_unless_a_dict_would_tell_it_wrongly() -> None:
    for key in (True, 1.0, "a", Decimal("1.0"), Point(1, 2), Level.LOW, Colour.RED, User("a", 1), (1, ("b", None))):
        assert canonical_key(key) is key
    assert type(canonical_key(np.int64(1))) is int
    assert type(canonical_key((np.float32(0.5),))[0]) is float


def test_an_hour_that_happens_twice_is_two_keys_and_each_is_its_instant() -> None:
    zone = ZoneInfo("America/New_York")
    first = datetime(2020, 11, 1, 1, 30, tzinfo=zone, fold=0)
    second = first.replace(fold=1)
    assert first == second  # Python, inside one zone
    assert canonical_key(first) != canonical_key(second)
    assert encode_key(first) != encode_key(second)
    for key in (first, second):
        instant = key.astimezone(timezone.utc)
        assert canonical_key(key) == canonical_key(instant) == decode_key(encode_key(key))
        assert hash(canonical_key(key)) == hash(instant)
        assert (encode_key(key), key_hash(key)) == (encode_key(instant), key_hash(instant))


@pytest.mark.parametrize("edge", [datetime.min, datetime.max, time.min, time.max])
@pytest.mark.parametrize("hours", [-23.99, 23.99])
def test_instants_that_fall_out_of_the_calendar_in_utc_are_keys_too(edge: Any, hours: float) -> None:
    key = edge.replace(tzinfo=timezone(timedelta(hours=hours)))
    assert decode_key(encode_key(key)) == key


@dataclass
class Mutable:
    x: int


@dataclass(frozen=True)
class Opinionated:
    x: int

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


class Loud(str):
    def __eq__(self, other: object) -> bool:
        return str.lower(self) == other

    __hash__ = str.__hash__


def local_enum() -> type[Enum]:
    class Hidden(Enum):
        A = 1

    return Hidden


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ([{}], r"key\[0\] is a dict"),
        ((1, ("a", {})), r"key\[1\]\[1\] is a dict.*sorted"),
        (User("a", [{1}]), r"key\.age\[0\] is a set"),
        ({1}, "set.*sorted"),
        (bytearray(b"a"), r"bytearray.*bytes\("),
        (object(), "object.*key by None"),
        (time(1, tzinfo=timezone(timedelta(microseconds=1))), "UTC offset.*whole seconds"),
        (1j, r"complex.*z\.real"),
        (Mutable(1), "can change.*frozen=True"),
        (Opinionated(1), "__eq__ of its own.*tuple of its fields"),
        (Loud("A"), "__eq__ of its own.*use a plain str"),
        (np.longdouble(1), r"longdouble.*float\("),
        (np.array([1]), "ndarray"),
        (np.datetime64("NaT", "s"), "NaT"),
        (np.datetime64(1, "ns"), "part of a microsecond"),
        (Decimal("1E+99999999"), "exponent 99999999"),
        (local_enum()["A"], "top level of a module"),
    ],
)
def test_what_cannot_be_a_key_is_refused_with_place_and_remedy(key: Any, words: str) -> None:
    for refuses in (encode_key, key_hash, canonical_key):
        with pytest.raises(InvalidKeyError, match=words):
            refuses(key)


def test_a_list_as_key_is_a_list_that_nobody_can_change() -> None:
    given = [1, [float("nan")], ("a", [2])]
    key = canonical_key(given)
    assert canonical_key(key) is key
    assert (key[0], key[2]) == (1, ("a", [2])) and repr(key) == repr(given) and isinstance(key, list)
    given.append(3)
    assert len(key) == 3 and type(key.copy()) is list
    for change in (lambda: key.append(4), lambda: key[1].sort(), lambda: key.__setitem__(0, 2), lambda: key.clear()):
        with pytest.raises(TypeError, match="cannot be changed; change a copy"):
            change()
    again = pickle.loads(pickle.dumps(key))
    assert canonical_key(again) == key and hash(canonical_key(again)) == hash(key)
    assert canonical_key([1]) != canonical_key((1,)) and encode_key([1]) != encode_key((1,))
    assert key_hash([1]) != key_hash((1,)) and key_hash([]) != key_hash(())


def test_a_flag_and_an_alias_are_their_member() -> None:
    assert decode_key(encode_key(Right.READ | Right.WRITE)) == Right.READ | Right.WRITE
    assert decode_key(encode_key(Colour.CRIMSON)) is Colour.RED


GOLDEN_BYTES = {
    None: "01",
    1: "028000000000000001",
    -1: "027fffffffffffffff",
    0.5: "033fe0000000000000",
    2**64 + 1: "0409010000000000000001",
    Decimal("1.1"): "0501010b",
    "flink": "0605666c696e6b",
    "\u00e9": "0602c3a9",
    b"\x00": "070100",
    datetime(1970, 1, 1): "0b8000000000000000",
    datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=1))): "0c80000000d693a400",
    timedelta(days=-1, microseconds=7): "0d7fffffff0000000000000007",
    (1, "a"): "0f02028000000000000001060161",
    ListKey([1, "a"]): "1202028000000000000001060161",
    (): "0f00",
}


@pytest.mark.parametrize(("key", "written"), GOLDEN_BYTES.items())
def test_version_one_of_the_key_bytes_never_changes(key: Any, written: str) -> None:
    assert encode_key(key).hex() == written
    assert decode_key(bytes.fromhex(written)) == key


@given(keys)
def test_the_end_of_a_key_is_found_without_its_classes(key: Any) -> None:
    data = encode_key(key)
    assert key_end(b"ab" + data + b"cd", 2) == 2 + len(data)
