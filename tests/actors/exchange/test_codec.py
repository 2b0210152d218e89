"""Batches on the wire: what is written is read, value by value and type by type."""

from __future__ import annotations

import enum
import math
import pickle
import struct
from array import array
from collections import OrderedDict
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.actors.exchange.codec import (
    CodecError,
    decode_batch,
    encode_batch,
    encode_pieces,
    join_batches,
    joint_bytes,
    rows_in,
    split_batches,
)
from rayflink.common.records.batches import ArrowBatch, RowBatch
from rayflink.common.records.row_columns import Coded, RowColumns


class Point(NamedTuple):
    x: int
    y: Any


@dataclass
class Order:
    name: str
    price: Any


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Metres(int):
    """An int with a unit."""


class Sticky(list):  # type: ignore[type-arg]
    """A list that is not quite one."""


atoms = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=-(2**200), max_value=2**200),
    st.floats(),
    st.text(st.characters(), max_size=8),
    st.sampled_from(["\ud800", "\udfff a lone surrogate", "\x00", "s", "\U0001f600"]),
    st.binary(max_size=8),
)
others = st.one_of(
    st.binary(max_size=8).map(bytearray),
    st.sampled_from([np.int64(3), np.float64(0.5), np.float32(2), np.bool_(True), np.str_("n")]),
    st.just(np.datetime64("2020-01-01")),
    st.lists(st.integers(0, 9), max_size=3).map(np.array),
    st.lists(st.integers(0, 9), max_size=3).map(lambda items: array("i", items)),
    st.datetimes(),
    st.datetimes(timezones=st.just(timezone.utc)),
    st.dates(),
    st.times(),
    st.timedeltas(),
    st.decimals(allow_nan=False),
    st.sampled_from([Level.HIGH, Metres(7), True, Sticky([1]), OrderedDict(a=1), frozenset({1}), 1 + 2j, range(3)]),
    st.builds(Point, st.integers(), atoms),
    st.builds(Order, st.text(max_size=3), atoms),
)
leaves = atoms | others
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3),
    ),
    max_leaves=6,
)
uniform = st.one_of(
    st.lists(atoms, max_size=8),
    st.lists(st.tuples(atoms, atoms), max_size=8),
    st.lists(st.lists(atoms, max_size=3), max_size=8),
    st.lists(st.dictionaries(st.text(max_size=3), atoms, max_size=3), max_size=8),
)


def shape(value: Any) -> Any:
    """The value with the type of each of its parts, so that 1, True and 1.0, NaN and arrays compare exactly."""
    kind = type(value)
    if isinstance(value, np.ndarray):
        return kind, value.dtype, value.tolist()
    if isinstance(value, float):
        return kind, struct.pack("<d", value)
    if isinstance(value, np.generic):
        return kind, value.dtype, value.tobytes()
    if isinstance(value, (tuple, list)):
        return kind, [shape(item) for item in value]
    if isinstance(value, dict):
        return kind, [(shape(k), shape(v)) for k, v in value.items()]
    if isinstance(value, Order):
        return kind, value.name, shape(value.price)
    return kind, value


def sent(batch: RowBatch) -> RowBatch:
    received = decode_batch(encode_batch(batch))
    assert isinstance(received, RowBatch)
    return received


@pytest.mark.spec("N03", "O02")
@given(st.lists(values, max_size=6) | uniform)
def test_every_value_comes_back_with_the_type_it_had(records: list[Any]) -> None:
    received = sent(RowBatch(records))
    assert shape(received.values) == shape(records)
    assert received.timestamps is None


@pytest.mark.spec("B18", "E04", "carried")
@given(st.lists(st.tuples(atoms, st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=8))
def test_each_record_keeps_its_timestamp(pairs: list[tuple[Any, int]]) -> None:
    records, stamps = [p[0] for p in pairs], [p[1] for p in pairs]
    received = sent(RowBatch(records, stamps))
    assert shape(received.values) == shape(records)
    assert received.timestamps == stamps
    assert {type(stamp) for stamp in received.timestamps} == {int}


@pytest.mark.parametrize(
    "look_alike",
    [bytearray(b"x"), np.int64(1), np.float64(1.0), np.bool_(True), np.bytes_(b"x"), np.array([1]), array("i", [1])],
)
@pytest.mark.parametrize("wrap", [lambda v: v, lambda v: (v, 1), lambda v: [v], lambda v: {"k": v}, lambda v: ((v,),)])
@pytest.mark.parametrize("count", [1, 100])
def test_what_marshal_would_turn_into_bytes_keeps_its_type(look_alike: Any, wrap: Any, count: int) -> None:
    records = [wrap(1), wrap(look_alike)] * count
    assert shape(sent(RowBatch(records)).values) == shape(records)


@pytest.mark.parametrize("record", [Point(1, 2), Level.LOW, Metres(3), Sticky([1])])
def test_subclasses_of_plain_types_stay_what_they_are(record: Any) -> None:
    assert type(sent(RowBatch([record, record])).values[1]) is type(record)


@pytest.mark.spec("B20", "binary")
def test_rows_can_be_counted_without_decoding() -> None:
    assert rows_in(encode_batch(RowBatch([1, 2, 3], [4, 5, 6]))) == 3
    assert rows_in(encode_batch(ArrowBatch(pa.record_batch({"a": [1, 2]})))) == 2


def test_an_object_shared_by_records_is_sent_once() -> None:
    shared = ["x" * 100_000]
    records = [(i, shared) for i in range(20)]
    assert len(encode_batch(RowBatch(records))) < 110_000
    received = sent(RowBatch(records)).values
    assert received[0][1] is received[19][1]


def test_a_record_that_contains_itself_is_sent() -> None:
    ring: list[Any] = [1]
    ring.append(ring)
    received = sent(RowBatch([*range(100), ring])).values
    assert received[:100] == list(range(100))
    assert received[100][1] is received[100]


def test_small_rows_take_no_more_bytes_than_their_content_asks_for() -> None:
    assert len(encode_batch(RowBatch([(f"w{i}", 1) for i in range(1000)]))) < 1000 * 11


def test_a_record_that_cannot_be_pickled_is_named_with_the_remedy() -> None:
    def local() -> None: ...

    with pytest.raises(CodecError, match=r"type builtins.function cannot be pickled .*top level of a module"):
        encode_batch(RowBatch([(1, 2), local]))


@pytest.mark.parametrize("stamp", [2**63, -(2**63) - 1, 1.5, None, "1"])
def test_a_timestamp_that_is_no_int64_is_named(stamp: Any) -> None:
    with pytest.raises(CodecError, match=f"timestamp {stamp!r}"):
        encode_batch(RowBatch(["a", "b"], [np.int64(0), stamp]))


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (lambda b: b"", "0 bytes"),
        (lambda b: b[:10], "10 bytes"),
        (lambda b: b"X" + b[1:], "kind b'X'"),
        (lambda b: b[:-3], "cannot be read"),
        (lambda b: b[:8] + struct.pack("<I", 7) + b[12:], "7"),
        (lambda b: b[:12] + struct.pack("<I", 8) + b[16:], "8 bytes of timestamps for 3"),
    ],
)
@pytest.mark.parametrize(
    "batch",
    [RowBatch([1, 2, 3]), RowBatch([Order("a", 1)] * 3), ArrowBatch(pa.record_batch({"a": [1, 2, 3]}))],
    ids=["numbers", "objects", "arrow"],
)
def test_damaged_bytes_are_refused(batch: Any, damage: Any, found: str) -> None:
    data = encode_batch(batch)
    if found == "cannot be read" and data[:1] == b"A":
        damage = lambda b: b[:60]  # noqa: E731 - the tail of an IPC stream is padding
    with pytest.raises(CodecError, match=found):
        decode_batch(damage(data))


def test_errors_cross_processes() -> None:
    assert str(pickle.loads(pickle.dumps(CodecError("found x")))) == "found x"


# Arrow

PARENT_ROWS = 10_000
STRINGS = [f"a string of more than twelve bytes {i}" for i in range(PARENT_ROWS)]


def dictionary_in_list() -> pa.Array:
    kind = pa.list_(pa.dictionary(pa.int32(), pa.string()))
    return pa.array([None if i % 3 == 0 else [s, None] for i, s in enumerate(STRINGS)], kind)


COLUMNS = {
    "int64": pa.array(range(PARENT_ROWS)),
    "bool": pa.array([i % 3 == 0 for i in range(PARENT_ROWS)]),
    "nullable": pa.array([None if i % 3 else i for i in range(PARENT_ROWS)]),
    "string": pa.array(STRINGS),
    "string_view": pa.array(STRINGS, pa.string_view()),
    "binary_view": pa.array([s.encode() for s in STRINGS], pa.binary_view()),
    "list": pa.array([[i, None] for i in range(PARENT_ROWS)]),
    "list_view": pa.array([[i, i] for i in range(PARENT_ROWS)], pa.list_view(pa.int64())),
    "struct": pa.array([None if i % 5 == 0 else {"a": i, "b": s} for i, s in enumerate(STRINGS)]),
    "map": pa.array([[(s, i)] for i, s in enumerate(STRINGS)], pa.map_(pa.string(), pa.int64())),
    "fixed_size_list": pa.array([[i, i] for i in range(PARENT_ROWS)], pa.list_(pa.int64(), 2)),
    "null": pa.nulls(PARENT_ROWS),
    "dictionary": pa.array([None if i % 4 == 0 else s for i, s in enumerate(STRINGS)]).dictionary_encode(),
    "dictionary in list": dictionary_in_list(),
    "dictionary in struct": pa.StructArray.from_arrays([pa.array(STRINGS).dictionary_encode()], names=["d"]),
    "timestamp": pa.array(range(PARENT_ROWS), pa.timestamp("ns", "UTC")),
}


def arrow_sent(batch: ArrowBatch) -> ArrowBatch:
    received = decode_batch(encode_batch(batch))
    assert isinstance(received, ArrowBatch)
    received.data.validate(full=True)
    return received


@pytest.mark.parametrize("name", COLUMNS)
def test_a_slice_ships_its_own_rows_only(name: str) -> None:
    parent = ArrowBatch(pa.record_batch({name: COLUMNS[name]}), np.arange(PARENT_ROWS))
    part = parent.slice(5_003, 5_013)
    data = encode_batch(part)
    received = arrow_sent(part)
    assert received.data.to_pylist() == part.data.to_pylist()
    assert received.data.schema.equals(part.data.schema, check_metadata=True)
    assert received.timestamps.tolist() == list(range(5_003, 5_013))
    assert len(data) < 2_500
    assert len(encode_batch(parent)) > 10 * len(data) or name == "null"


@given(st.data())
def test_any_slice_of_any_columns_comes_back(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(COLUMNS)), unique=True, max_size=4))
    start = data.draw(st.integers(0, 40))
    stop = data.draw(st.integers(start, 41))
    batch = ArrowBatch(pa.record_batch([COLUMNS[n].slice(0, 60) for n in names], names=names)).slice(start, stop)
    if names:
        assert arrow_sent(batch).data.to_pylist() == batch.data.to_pylist()


def test_a_batch_without_rows_and_one_without_columns_come_back() -> None:
    empty = ArrowBatch(pa.record_batch({"a": pa.array([], pa.int64())}), np.array([], dtype=np.int64))
    assert arrow_sent(empty).data == empty.data
    bare = ArrowBatch(pa.record_batch({"a": [1, 2, 3]}).select([]))
    assert len(arrow_sent(bare)) == 3


def test_schema_metadata_comes_back() -> None:
    batch = pa.record_batch({"a": [1]}).replace_schema_metadata({"unit": "m"})
    assert arrow_sent(ArrowBatch(batch)).data.schema.metadata == {b"unit": b"m"}


@pytest.mark.spec("B20", "binary")
def test_decoding_arrow_copies_nothing() -> None:
    data = encode_batch(ArrowBatch(pa.record_batch({"a": np.arange(50_000)})))
    before = pa.total_allocated_bytes()
    received = decode_batch(data)
    assert pa.total_allocated_bytes() - before < 10_000
    assert len(received) == 50_000


def test_ordered_dictionaries_and_their_index_type_are_kept() -> None:
    kind = pa.dictionary(pa.int8(), pa.string(), ordered=True)
    column = pa.DictionaryArray.from_arrays(pa.array([2, None, 1], pa.int8()), STRINGS[:100], ordered=True)
    received = arrow_sent(ArrowBatch(pa.record_batch([column], names=["d"]))).data.column(0)
    assert received.type == kind
    assert received.to_pylist() == [STRINGS[2], None, STRINGS[1]]
    assert len(received.dictionary) <= 3


def test_dates_times_and_decimals_keep_their_types() -> None:
    record = (date(2020, 1, 2), time(3, 4), timedelta(5), Decimal("1.10"), datetime(2020, 1, 1, tzinfo=timezone.utc))
    assert shape(sent(RowBatch([record])).values) == shape([record])


@given(st.lists(st.lists(st.integers(), min_size=1, max_size=5), min_size=1, max_size=8), st.booleans())
def test_batches_joined_in_one_body_come_apart_again(batches: list[list[int]], stamped: bool) -> None:
    given_batches = [RowBatch(values, list(range(len(values))) if stamped else None) for values in batches]
    bodies = list(map(encode_batch, given_batches))
    joint = join_batches([[body] for body in bodies])
    assert len(joint) == sum(map(len, bodies)) + joint_bytes(len(bodies))
    assert [decode_batch(part) for part in split_batches(joint)] == given_batches


@pytest.mark.parametrize("cut", [3, 9, -1])
def test_a_damaged_joint_body_is_refused(cut: int) -> None:
    joint = join_batches([encode_pieces(RowBatch([1])), encode_pieces(RowBatch([2]))])
    with pytest.raises(CodecError, match="separated|damaged"):
        split_batches(joint[:cut])


@pytest.mark.parametrize("edge", [2**7, 2**15, 2**31, 2**63])
@pytest.mark.parametrize("stamps", [None, [5, 6, 7]])
def test_columns_of_numbers_shrink_on_the_wire_and_come_back_as_they_were(edge: int, stamps: list[int] | None) -> None:
    beyond = min(edge, 2**63 - 1), max(-edge - 1, -(2**63))
    for low, high in ((-edge, edge - 1), (0, edge - 1), (-edge, 0), (0, beyond[0]), (beyond[1], 0)):
        columns = [np.array([low, high, 0]), np.array([0.5, -0.0, math.nan]), np.array([True, False, True])]
        batch = RowColumns([*columns, ["a", "", "ü"]], None if stamps is None else np.array(stamps), 3)
        back = decode_batch(encode_batch(batch))
        assert isinstance(back, RowColumns)
        assert [repr(row) for row in back.values] == [repr(row) for row in batch.values]
        assert (back.timestamps, back.key_column) == (stamps, 3)
        assert back.columns[0].dtype == np.int64


def test_damaged_columns_are_named() -> None:
    batch = RowColumns([Coded(["a", "b"], np.array([0, 1, 0], np.uint16)), np.array([1, 2, 3])], None, 0)
    data = encode_batch(batch)
    assert rows_in(data) == 3
    for wrong in (data[:-5], data[:8] + struct.pack("<I", 4) + data[12:]):
        with pytest.raises(CodecError, match="damaged"):
            decode_batch(wrong)
    whole = encode_batch(RowColumns([Coded(["a", "b"], np.array([0, 1, 1], np.uint16))]))
    outside = whole.replace(b"\x00\x01\x01", b"\x00\x01\x02")
    with pytest.raises(CodecError, match="text 2 of a table of 2"):
        decode_batch(outside)
