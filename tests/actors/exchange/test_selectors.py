"""Which consumer gets which record."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.actors.exchange import selectors
from rayflink.actors.exchange.key_channels import KeyChannels
from rayflink.actors.exchange.selectors import (
    Broadcast,
    ByFunction,
    ByKeyGroup,
    ChannelRangeError,
    KeyExtractionError,
    RandomChannel,
    RefusedKeyError,
    RoundRobin,
    SingleChannel,
)
from rayflink.common.functions.callables import KeyBy
from rayflink.common.functions.function_classes import KeySelector, Partitioner
from rayflink.common.records.batches import ArrowBatch, Batch, RowBatch
from rayflink.operators.base import UserCodeError
from rayflink.state.errors import InvalidKeyError
from rayflink.state.keys import key_hash
from rayflink.state.keys.key_groups import key_group, subtask_of
from tests.operators.laws import context

MAX_PARALLELISM = 128


class ColumnKey:
    """A key selector that names its columns; on a row it gives the fields of those names."""

    def __init__(self, *columns: str) -> None:
        self.columns = columns

    def __call__(self, row: Any) -> Any:
        parts = tuple(row[name] for name in self.columns)
        return parts[0] if len(parts) == 1 else parts


def received(selector: Any, batches: Sequence[Batch]) -> dict[int, list[Any]]:
    """What each channel gets, with timestamps, batch boundaries left out."""
    channels: dict[int, list[Any]] = {}
    for batch in batches:
        for channel, part in selector.split(batch):
            assert len(part), "an empty part is not sent"
            values = part.values if isinstance(part, RowBatch) else part.data.to_pylist()
            stamps = [None] * len(part) if part.timestamps is None else [int(t) for t in part.timestamps]
            channels.setdefault(channel, []).extend(zip(values, stamps, strict=True))
    return channels


def expected_channel(key: Any, width: int, max_parallelism: int = MAX_PARALLELISM) -> int:
    return subtask_of(key_group(key_hash(key), max_parallelism), width, max_parallelism)


SELECTORS: dict[str, Callable[[int], Any]] = {
    "forward": SingleChannel,
    "global": lambda width: SingleChannel(width, 0),
    "broadcast": Broadcast,
    "rebalance": lambda width: RoundRobin(width, start=2),
    "shuffle": lambda width: RandomChannel(width, seed=7),
    "key group": lambda width: ByKeyGroup(width, lambda r: r[0], MAX_PARALLELISM, memo_entries=5),
    "function": lambda width: ByFunction(width, lambda key, n: key % n, lambda r: r[0]),
}

records = st.lists(st.tuples(st.integers(0, 30), st.integers(-(2**40), 2**40)), max_size=40)


@pytest.mark.spec("N09")
@pytest.mark.parametrize("name", SELECTORS)
@settings(max_examples=50)
@given(records, st.integers(1, 9), st.lists(st.integers(0, 60), max_size=6), st.booleans(), st.booleans())
def test_how_the_input_is_cut_into_batches_does_not_matter(
    name: str, rows: list[Any], width: int, cuts: list[int], stamped: bool, arrow: bool
) -> None:
    def whole() -> Batch:
        if not arrow:
            return RowBatch(rows, list(range(len(rows))) if stamped else None)
        column = pa.array([list(row) for row in rows], pa.list_(pa.int64()))
        data = pa.record_batch({"f": [r[0] for r in rows], "v": [str(r[1]) for r in rows], "both": column})
        return ArrowBatch(data, np.arange(len(rows)) if stamped else None)

    def make() -> Any:
        if not arrow or name not in ("key group", "function"):
            return SELECTORS[name](width)
        if name == "function":
            return ByFunction(width, lambda key, n: key % n, lambda r: r["f"])
        return ByKeyGroup(width, ColumnKey("f"), MAX_PARALLELISM)

    edges = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    pieces = [whole().slice(start, stop) for start, stop in pairwise(edges)]
    at_once, in_pieces = received(make(), [whole()]), received(make(), pieces)
    assert at_once == in_pieces
    copies = width if name == "broadcast" else 1
    assert sum(map(len, at_once.values())) == len(rows) * copies
    assert all(0 <= channel < width for channel in at_once)


@pytest.mark.spec("D01")
def test_forward_sends_everything_to_the_one_consumer() -> None:
    assert list(SingleChannel(1).split(RowBatch([1, 2]))) == [(0, RowBatch([1, 2]))]


@pytest.mark.spec("D04", "X47")
def test_rebalance_deals_in_turn_and_goes_on_where_it_stopped() -> None:
    selector = RoundRobin(3, start=1)
    assert received(selector, [RowBatch([0, 1, 2, 3]), RowBatch([4])]) == {
        1: [(0, None), (3, None)],
        2: [(1, None), (4, None)],
        0: [(2, None)],
    }


@pytest.mark.spec("D05")
def test_broadcast_sends_every_record_to_every_channel() -> None:
    given = [RowBatch([1, 2], [10, 20]), RowBatch([3], [30])]
    assert received(Broadcast(3), given) == {channel: [(1, 10), (2, 20), (3, 30)] for channel in range(3)}


@pytest.mark.spec("D06", "shuffle")
def test_shuffle_reaches_every_channel_evenly_and_global_only_the_first() -> None:
    shuffled = received(RandomChannel(4, seed=1), [RowBatch(list(range(8000)))])
    assert set(shuffled) == {0, 1, 2, 3}
    assert all(1800 < len(part) < 2200 for part in shuffled.values())
    assert set(received(SingleChannel(4, 0), [RowBatch([1, 2, 3])])) == {0}


def test_two_shuffling_producers_differ_and_one_repeats_itself() -> None:
    batch = [RowBatch(list(range(50)))]
    assert received(RandomChannel(4, seed=1), batch) == received(RandomChannel(4, seed=1), batch)
    assert received(RandomChannel(4, seed=1), batch) != received(RandomChannel(4, seed=2), batch)


# keys

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4), st.binary(max_size=4), st.dates()
)
others = st.one_of(st.tuples(scalars, scalars), st.decimals(-1000, 1000, places=2), st.sampled_from([1, True, 1.0]))
keys = scalars | others


@pytest.mark.spec("D07")
@given(st.lists(keys, max_size=50), st.integers(1, 33), st.integers(33, 300), st.integers(0, 20))
def test_a_key_goes_where_its_key_group_lives(found: list[Any], width: int, groups: int, memo: int) -> None:
    selector = ByKeyGroup(width, lambda r: r[1], groups, memo_entries=memo)
    parts = received(selector, [RowBatch(list(enumerate(found)))])
    channel_of = {number: channel for channel, part in parts.items() for (number, _), _ in part}
    assert [channel_of[i] for i in range(len(found))] == [expected_channel(key, width, groups) for key in found]


@dataclass(frozen=True)
class Account:
    name: str
    branch: int


@pytest.mark.spec("D07", "G06", "one-task")
@pytest.mark.parametrize(
    "same",
    [
        [1, True, 1.0, Decimal(1), np.int64(1), np.float32(1)],
        [float("nan"), float("-nan"), np.float64("nan"), Decimal("nan")],
        [0.0, -0.0, 0, False],
        [("a", 1), ("a", True), ("a", 1.0)],
        ["a", np.str_("a")],
        [Account("a", 1), Account("a", 1)],
    ],
)
def test_equal_keys_meet_in_one_channel(same: list[Any]) -> None:
    for batches in ([RowBatch(same)], [RowBatch([key]) for key in same], [RowBatch(same[::-1])]):
        assert len(received(ByKeyGroup(32, lambda key: key, 32768), batches)) == 1


COLUMNS = [
    pa.array([1, None, -(2**63), 2**63 - 1, 1]),
    pa.array([1.0, float("nan"), None, -0.0, 0.5]),
    pa.array(["a", "", None, "\U0001f600", "a" * 100]),
    pa.array([b"a", b"", None, b"\xff", b"a"]),
    pa.array([True, False, None, True, False]),
    pa.array(["x", None, "y", "x", "z"]).dictionary_encode(),
    pa.array(["x", None, "y" * 20, "x", "z"], pa.string_view()),
    pa.array([1, None, 3, 255, 0], pa.uint8()),
    pa.array([0, 1, None, 1_600_000_000_000, -1], pa.timestamp("ms")),
]


@pytest.mark.spec("D07")
@pytest.mark.parametrize("width", [2, 3, 8, 32])
@pytest.mark.parametrize("column", COLUMNS, ids=lambda c: str(c.type))
def test_rows_and_columns_of_equal_keys_go_to_the_same_channel(column: pa.Array, width: int) -> None:
    data = pa.record_batch({"k": column, "n": range(len(column))})
    by_column = received(ByKeyGroup(width, ColumnKey("k"), MAX_PARALLELISM), [ArrowBatch(data)])
    by_row = received(ByKeyGroup(width, ColumnKey("k"), MAX_PARALLELISM), [RowBatch(data.to_pylist())])
    numbers = {c: [row["n"] for row, _ in part] for c, part in by_column.items()}
    assert numbers == {c: [row["n"] for row, _ in part] for c, part in by_row.items()}


def test_several_key_columns_are_a_tuple() -> None:
    data = pa.record_batch({"a": ["x", "y", "x"], "b": [1, 2, 3], "n": range(3)})
    by_column = received(ByKeyGroup(8, ColumnKey("a", "b"), MAX_PARALLELISM), [ArrowBatch(data)])
    for channel, part in by_column.items():
        assert {expected_channel((row["a"], row["b"]), 8) for row, _ in part} == {channel}


def test_arrow_rows_go_by_a_key_function_as_well() -> None:
    data = pa.record_batch({"a": ["x", "y", "x"], "b": [1, 2, 3]})
    parts = ByKeyGroup(2, lambda row: row["a"], MAX_PARALLELISM).split(ArrowBatch(data, np.array([5, 6, 7])))
    found = {
        row["a"]: (channel, stamp)
        for channel, part in parts
        if isinstance(part, RowBatch)
        for row, stamp in zip(part.values, part.timestamps or [], strict=True)
    }
    assert found["y"] == (expected_channel("y", 2), 6)
    assert found["x"] == (expected_channel("x", 2), 7)


def test_all_rows_of_one_key_are_passed_on_without_a_copy() -> None:
    batch = ArrowBatch(pa.record_batch({"k": ["a"] * 10}))
    for width in (2, 16):
        ((_, part),) = ByKeyGroup(width, ColumnKey("k"), MAX_PARALLELISM).split(batch)
        assert part is batch


def test_what_is_remembered_is_bounded_within_one_huge_batch() -> None:
    selector = ByKeyGroup(4, lambda key: key, MAX_PARALLELISM, memo_entries=100)
    batch = RowBatch([f"key {i}" for i in range(5000)] * 2)
    parts = received(selector, [batch])
    assert selector._channels_of.remembered <= 100
    assert all(expected_channel(key, 4) == channel for channel, part in parts.items() for key, _ in part[:50])
    assert sum(map(len, parts.values())) == 10_000


def test_remembered_keys_make_way_for_new_ones() -> None:
    channels = KeyChannels(4, MAX_PARALLELISM, 10)
    for start in range(0, 200, 5):
        numbers = list(range(start, start + 5))
        assert channels.keys(numbers) == [expected_channel(n, 4) for n in numbers]
        assert 5 <= channels.remembered <= 10


def test_large_keys_are_not_remembered() -> None:
    channels = KeyChannels(4, MAX_PARALLELISM, 10)
    key = "k" * 100_000
    assert channels.keys([key, "small"]) == [expected_channel(key, 4), expected_channel("small", 4)]
    assert channels.remembered == 1
    inside = (1, ("small", key))
    assert channels.keys([inside, (1, ("small", "k"))]) == [
        expected_channel(inside, 4),
        expected_channel((1, ("small", "k")), 4),
    ]
    assert channels.remembered == 2


@pytest.mark.spec("D08")
@pytest.mark.parametrize("make", [lambda f: ByKeyGroup(2, f, 128), lambda f: ByFunction(2, lambda k, n: 0, f)])
@pytest.mark.parametrize("cause", [ZeroDivisionError, KeyError, TypeError, StopIteration])
def test_a_failing_key_selector_names_the_record(make: Any, cause: type[Exception]) -> None:
    def key_of(record: int) -> int:
        if record == 13:
            raise cause("no key")
        return record

    with pytest.raises(KeyExtractionError, match="^Could not extract key from 13 in 'key_by': ") as caught:
        make(key_of).split(RowBatch([11, 12, 13, 14]))
    assert isinstance(caught.value.__cause__, cause)


class Unhashable(tuple):  # type: ignore[type-arg]
    """A key that no dict takes but that is equal to a tuple."""

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ([{1}], r"key\[0\] is a set"),
        (("a", {"b": 1}), r"key\[1\] is a dict"),
        (bytearray(b"x"), "bytearray"),
        (object(), "object"),
        (np.array([1]), "ndarray"),
    ],
)
def test_a_refused_key_names_its_record_and_the_remedy(key: Any, found: str) -> None:
    selector = ByKeyGroup(4, lambda r: r[1], MAX_PARALLELISM)
    with pytest.raises(RefusedKeyError, match=found) as caught:
        selector.split(RowBatch([("good", 1), ("bad", key), ("after", 2)]))
    assert isinstance(caught.value.__cause__, InvalidKeyError)
    assert caught.value.record.startswith("('bad', ")
    assert "the record is ('bad'" in str(caught.value)
    assert pickle.loads(pickle.dumps(caught.value)).args == caught.value.args


def test_a_key_no_dict_takes_still_finds_its_channel() -> None:
    for key in ([1, 2], ("a", [1])):
        parts = received(ByKeyGroup(8, lambda key: key, MAX_PARALLELISM), [RowBatch([key, (3, 4)])])
        assert (key, None) in parts[expected_channel(key, 8)]
    parts = received(ByKeyGroup(8, lambda key: key, MAX_PARALLELISM), [RowBatch([Unhashable((1, 2)), (3, 4)])])
    assert (Unhashable((1, 2)), None) in parts[expected_channel((1, 2), 8)]


def test_a_column_that_cannot_be_a_key_is_refused() -> None:
    batch = ArrowBatch(pa.record_batch({"k": [{"a": 1}, {"a": 2}]}))
    with pytest.raises(RefusedKeyError, match="cannot be a key") as caught:
        ByKeyGroup(2, ColumnKey("k"), MAX_PARALLELISM).split(batch)
    assert isinstance(caught.value.__cause__, InvalidKeyError)


def test_a_column_that_is_not_there_is_named_with_the_step() -> None:
    batch = ArrowBatch(pa.record_batch({"k": [1, 2]}))
    with pytest.raises(KeyExtractionError, match="key_by wants field 'gone' of each record"):
        ByKeyGroup(2, ColumnKey("gone"), MAX_PARALLELISM).split(batch)


@pytest.mark.spec("D09", "one", "number")
def test_a_users_partitioner_chooses_the_channel() -> None:
    selector = ByFunction(3, lambda key, channels: (key + 1) % channels, lambda r: r)
    assert received(selector, [RowBatch([0, 1, 2, 3])]) == {
        1: [(0, None), (3, None)],
        2: [(1, None)],
        0: [(2, None)],
    }
    assert received(ByFunction(3, lambda key, n: np.int64(key), lambda r: r), [RowBatch([2])]) == {2: [(2, None)]}


def test_a_partitioner_and_its_key_selector_are_opened_and_closed_and_named() -> None:
    calls: list[str] = []

    class Key(KeySelector):  # type: ignore[type-arg]
        def open(self, runtime_context: Any) -> None:
            calls.append("open the key")

        def get_key(self, value: Any) -> Any:
            return value

        def close(self) -> None:
            calls.append("close the key")

    class Shop(Partitioner):  # type: ignore[type-arg]
        def open(self, runtime_context: Any) -> None:
            calls.append("open the shop")

        def partition(self, key: Any, num_partitions: int) -> int:
            return 0

        def close(self) -> None:
            raise ZeroDivisionError

    selector = ByFunction(3, Shop(), KeyBy(Key(), "job.py:7", step="partition_custom"))
    selector.open(context())
    with pytest.raises(UserCodeError, match=r"partition_custom.*job\.py:7.*failed in close of the partitioner"):
        selector.close()
    assert calls == ["open the key", "open the shop", "close the key"]


@pytest.mark.spec("D09", "one")
@pytest.mark.parametrize("answer", [3, -1, None, "1", 1.5])
def test_a_partitioner_that_names_no_channel_is_told_so_with_the_record(answer: Any) -> None:
    selector = ByFunction(3, lambda key, n: answer, lambda r: r)
    with pytest.raises(UserCodeError, match=r"return an int in \[0, 3\); the record is 'rec'") as caught:
        selector.split(RowBatch(["rec"]))
    cause = caught.value.__cause__
    assert isinstance(cause, ChannelRangeError)
    assert str(pickle.loads(pickle.dumps(cause))) == str(cause)
    assert (caught.value.operator, caught.value.record) == ("partition_custom", "'rec'")


@pytest.mark.parametrize("name", SELECTORS)
def test_an_empty_batch_goes_nowhere(name: str) -> None:
    for width in (1, 4):
        assert list(SELECTORS[name](width).split(RowBatch([]))) == []


def test_selectors_keep_their_public_names() -> None:
    for name in ("ChannelSelector", "KeyExtractionError", "SingleChannel", "RoundRobin", "ByKeyGroup", "ByFunction"):
        assert hasattr(selectors, name)


@pytest.mark.parametrize("width", [2, 4, 5, 32])
def test_a_large_arrow_batch_keeps_the_order_within_each_channel(width: int) -> None:
    numbers = np.arange(20_000)
    batch = ArrowBatch(pa.record_batch({"k": numbers % 97, "n": numbers}), numbers)
    for channel, part in ByKeyGroup(width, ColumnKey("k"), MAX_PARALLELISM).split(batch):
        assert isinstance(part, ArrowBatch)
        found = part.data.column("n").to_numpy()
        assert (np.diff(found) > 0).all()
        assert (part.timestamps == found).all()
        assert {expected_channel(int(key), width) for key in set(part.data.column("k").to_pylist())} == {channel}
