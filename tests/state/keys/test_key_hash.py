"""The hash of keys: frozen for ever, and the same for keys, lists of keys and Arrow columns."""

from __future__ import annotations

import subprocess
import sys
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.state.errors import InvalidKeyError
from rayflink.state.keys import hash_column, hash_columns, hash_keys, key_hash

from .key_samples import keys

UTC = timezone.utc
GOLDEN: list[tuple[Any, int]] = [
    (None, 0xF14831E9),
    (0, 0x1FD3601D),
    (1, 0x4146285C),
    (-1, 0x4222C8CC),
    (42, 0x0119E7E8),
    (2**63 - 1, 0xF54FC796),
    (-(2**63), 0x6CA66154),
    (2**63, 0x52D8469E),
    (2**64 + 1, 0x08F62E49),
    (10**40, 0xC8257DC6),
    (0.5, 0x020C0EBB),
    (-2.5, 0x3F4ADB0F),
    (0.1, 0x645BF2BE),
    (1e300, 0x0D21AE51),
    (float("inf"), 0x4FA29361),
    (float("nan"), 0xE3590202),
    (Decimal("0.1"), 0x702F0ACE),
    (Decimal("-12.345"), 0x68603749),
    ("", 0xE93EA032),
    ("a", 0x5766A1CF),
    ("flink", 0x600F17D1),
    ("12345678", 0x2A198736),
    ("123456789", 0xF6078ACE),
    ("\u4e2d\u6587", 0xAE7B523F),
    ("x" * 64, 0x31CB0537),
    ("x" * 65, 0x55711B96),
    (b"", 0xC92D22C3),
    (b"a", 0x51D5B882),
    (b"\x00" * 8, 0x15A185CA),
    (date(1970, 1, 1), 0x4C3F87BE),
    (date(2024, 2, 29), 0x04F8BD59),
    (time(12, 30, 15, 9), 0x77759C04),
    (time(12, 30, tzinfo=UTC), 0x413E99FE),
    (datetime(2024, 2, 29, 12, 30), 0x9A8D345A),
    (datetime(2024, 2, 29, 12, 30, tzinfo=UTC), 0xC21BC91B),
    (timedelta(days=1), 0x719174FD),
    (timedelta(microseconds=-1), 0x933DFDD4),
    (UUID(int=1), 0x2A2F3042),
    ((), 0x8073419E),
    ((1,), 0x8034E265),
    ((1, "a"), 0xA86D442C),
    (("a", 1), 0x5EF1EE36),
    (((1, 2), None), 0xF23C9717),
    ([], 0x008A4EBE),
    ([1, "a"], 0xF549A8DB),
    ((1, [2]), 0x1DCC2004),
]


@pytest.mark.parametrize(("key", "frozen"), GOLDEN, ids=[repr(key)[:30] for key, _ in GOLDEN])
def test_hashes_never_change(key: Any, frozen: int) -> None:
    assert key_hash(key) == frozen


def test_the_hash_is_the_same_in_another_process(repository: Path) -> None:
    program = "from rayflink.state.keys import key_hash; print([key_hash(k) for k in ('a', (1, 'b'), None, 0.5)])"
    other = subprocess.run(
        [sys.executable, "-c", program], cwd=repository, env={"PYTHONHASHSEED": "7"}, capture_output=True, text=True
    )
    assert other.stdout.strip() == str([key_hash(k) for k in ("a", (1, "b"), None, 0.5)])


homogeneous = st.one_of(
    st.lists(st.integers()),
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.none(), min_size=30),
    st.lists(st.floats(), min_size=30),
    st.lists(st.text() | st.none(), min_size=30),
    st.lists(st.sampled_from(["\ud800", "a", "x" * 64, "x" * 65, "", "é" * 32]), min_size=30),
    st.lists(st.binary(max_size=80), min_size=30),
    st.lists(st.booleans(), min_size=30),
    st.lists(st.tuples(st.text(), st.integers(), st.floats()), min_size=30),
    st.lists(st.tuples(st.integers(-3, 3), st.tuples(st.text())), min_size=30),
    st.lists(keys, min_size=24),
)


@given(homogeneous)
def test_hashes_of_a_list_are_the_hashes_of_its_keys(batch: list[Any]) -> None:
    hashes = hash_keys(batch)
    assert hashes.dtype == np.uint32
    assert hashes.tolist() == [key_hash(key) for key in batch]


def assert_equals_scalar(column: Any) -> None:
    expected = [key_hash(value) for value in column.to_pylist()]
    assert hash_column(column).tolist() == expected
    assert hash_column(column.slice(1)).tolist() == expected[1:]
    assert hash_column(column.slice(1, 1)).tolist() == expected[1:2]
    assert hash_column(pa.chunked_array([column, column.slice(2)])).tolist() == expected + expected[2:]
    assert hash_column(column.slice(0, 0)).tolist() == []


INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
TEXTS = ["", "a", None, "12345678", "123456789", "é" * 9, "x" * 64, "y" * 65, "z" * 300, "\0", "\0\0", "\U0001f600"]
MOMENT = datetime(2024, 2, 29, 12, 30, 15)


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_integer_columns_of_every_width_hash_as_python_ints(kind: pa.DataType) -> None:
    bits = kind.bit_width
    edges = (
        [0, 2**bits - 1, 2 ** (bits - 1)]
        if str(kind).startswith("u")
        else [-(2 ** (bits - 1)), -1, 2 ** (bits - 1) - 1]
    )
    assert_equals_scalar(pa.array([1, None, 7, *edges], kind))


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()], ids=str)
def test_float_columns_hash_as_python_floats(kind: pa.DataType) -> None:
    values = np.array([0.0, -0.0, 1.0, -2.5, np.nan, np.inf, -np.inf, 0.1, 6e4], kind.to_pandas_dtype())
    assert_equals_scalar(pa.array(values, kind))
    assert_equals_scalar(pa.array([1.0, None, float("nan")], pa.float64()))


def test_double_columns_hash_large_values_as_the_equal_ints() -> None:
    values = [2.0**63, -(2.0**63), 2.0**70, 1e300, 2.0**62, -(2.0**64)]
    assert hash_column(pa.array(values)).tolist() == [key_hash(int(v)) for v in values]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_text_columns_hash_as_str(kind: pa.DataType) -> None:
    assert_equals_scalar(pa.array(TEXTS, kind))


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()], ids=str)
def test_binary_columns_hash_as_bytes(kind: pa.DataType) -> None:
    assert_equals_scalar(pa.array([None if t is None else t.encode() for t in TEXTS], kind))


@pytest.mark.parametrize(
    "column",
    [
        pa.array([True, False, None]),
        pa.array([None, None, None]),
        pa.array([date(1969, 12, 31), None, date.max]),
        pa.array([date(1969, 12, 31), None, date(2024, 2, 29)], pa.date64()),
        pa.array([time(1, 2, 3), None, time.min], pa.time32("s")),
        pa.array([time(1, 2, 3, 4), None, time.max], pa.time64("us")),
        pa.array([time(1, 2, 3), None, time.min], pa.time64("us")).cast(pa.time64("ns")),
        pa.array([timedelta(days=-1), None, timedelta(1, 2, 3)], pa.duration("us")),
        pa.array([timedelta(days=-1), None, timedelta(days=10**8)], pa.duration("s")),
        pa.array(
            [Decimal("1.00"), Decimal("0.10"), None, Decimal("0.50"), Decimal("12345678901234567890")],
            pa.decimal128(30, 2),
        ),
        pa.array([b"abcd", None, b"\0\0\0\0"], pa.binary(4)),
        pa.array(["a", None, "b", "a"]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 1], pa.int8()), pa.array([None, 5])),
        pa.array([7] * 100 + [None] + list(range(127)), pa.int64()).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([127, None, 0], pa.int8()), pa.array(range(128))),
        pa.DictionaryArray.from_arrays(pa.array([255, None, 0], pa.uint8()), pa.array(range(256))),
    ],
    ids=lambda column: str(column.type)[:40],
)
def test_columns_hash_as_their_python_values(column: Any) -> None:
    assert_equals_scalar(column)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("tz", [None, "UTC", "Europe/Berlin"])
def test_timestamp_columns_hash_as_python_datetimes_in_every_unit(unit: str, tz: str | None) -> None:
    moments = [MOMENT, None, datetime(1969, 12, 31, 23, 59, 59), datetime(1970, 1, 1)]
    column = pa.array(moments, pa.timestamp("us")).cast(pa.timestamp(unit)).cast(pa.timestamp(unit, tz))
    expected = [key_hash(m if m is None or tz is None else m.replace(tzinfo=UTC)) for m in moments]
    assert hash_column(column).tolist() == expected
    if unit != "ns":
        assert_equals_scalar(column)


def test_long_columns_hash_as_short_ones() -> None:
    values = list(range(40_000))
    assert hash_column(pa.array(values)).tolist() == hash_keys(values).tolist() == [key_hash(v) for v in values]
    texts = [str(v) * (v % 5) for v in values]
    assert hash_column(pa.array(texts)).tolist() == [key_hash(t) for t in texts]


def test_several_columns_hash_as_tuples_and_one_as_the_bare_key() -> None:
    names, numbers = pa.array(["a", None, "c"]), pa.chunked_array([[1, 2], [3]])
    assert hash_columns([names, numbers]).tolist() == [key_hash(k) for k in (("a", 1), (None, 2), ("c", 3))]
    assert hash_columns([names]).tolist() == [key_hash(k) for k in ("a", None, "c")]
    assert hash_keys([("a", 1)] * 30).tolist() == hash_columns([pa.array(["a"] * 30), pa.array([1] * 30)]).tolist()


@pytest.mark.parametrize("found", [[(1,), (1, 2)], [1, 1.5], [1.5, 1], ["a", b"a"], [True, 2], [("a", 1), ("a", 1.5)]])
def test_keys_of_several_kinds_in_one_list_are_hashed_as_each_alone(found: list[Any]) -> None:
    assert hash_keys(found * 30).tolist() == [key_hash(key) for key in found] * 30


def test_columns_that_cannot_be_keys_are_refused() -> None:
    with pytest.raises(InvalidKeyError, match="struct.*columns of their own"):
        hash_column(pa.array([{"a": 1}]))
    with pytest.raises(InvalidKeyError, match=r"key\[0\] is a dict"):
        hash_column(pa.array([[{"a": 1}]]))
    with pytest.raises(InvalidKeyError, match="part of a microsecond.*'us'"):
        hash_column(pa.array([1], pa.timestamp("ns")))
    with pytest.raises(ValueError, match=r"lengths \[1, 2\]"):
        hash_columns([pa.array([1]), pa.array([1, 2])])
    with pytest.raises(InvalidKeyError, match=r"key\[1\]\[0\] is a set"):
        hash_keys([("a", [set()])] * 30)


def test_null_does_not_leak_what_lies_beneath_it() -> None:
    hidden = pa.Array.from_buffers(pa.timestamp("ns"), 2, [pa.py_buffer(b"\x02"), pa.py_buffer(np.array([1, 5000]))])
    assert hash_column(hidden).tolist() == [key_hash(None), key_hash(datetime(1970, 1, 1, 0, 0, 0, 5))]


def test_golden_table_covers_every_kind_of_key() -> None:
    kinds = {type(key) for key, _ in GOLDEN}
    assert kinds >= {type(None), int, float, Decimal, str, bytes, date, time, datetime, timedelta, UUID, tuple, list}
