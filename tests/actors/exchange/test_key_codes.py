"""Keyed rows go the same way as columns as they do as rows, and arrive as the same rows."""

from __future__ import annotations

import enum
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.actors.exchange.codec import decode_batch, encode_batch
from rayflink.actors.exchange.key_channels import KeyChannels
from rayflink.actors.exchange.key_codes import LEAST_ROWS, MOST_ROWS, KeyCodes
from rayflink.actors.exchange.selectors import ByKeyGroup, KeyExtractionError, RefusedKeyError
from rayflink.common.records.batches import RowBatch
from rayflink.common.records.row_columns import RowColumns
from rayflink.state.keys import key_hash
from rayflink.state.keys.key_groups import key_group, subtask_of

PARALLEL, GROUPS = 3, 128


class Color(str, enum.Enum):
    RED = "red"
    BLUE = "blue"


def channel_of(key: Any) -> int:
    return subtask_of(key_group(key_hash(key), GROUPS), PARALLEL, GROUPS)


def sent(selector: ByKeyGroup, values: list[Any], stamps: list[int] | None = None) -> dict[int, list[Any]]:
    """What each channel receives, after the wire, with the types of all fields."""
    got: dict[int, list[Any]] = {}
    for channel, part in selector.split(RowBatch(values, stamps)):
        arrived = decode_batch(encode_batch(part))
        assert isinstance(arrived, RowBatch)
        times = arrived.timestamps or [None] * len(arrived)
        got[channel] = [(kinds(value), value, time) for value, time in zip(arrived.values, times, strict=True)]
    return got


def kinds(value: Any) -> Any:
    return [type(value), *map(type, value)] if isinstance(value, tuple) else type(value)


def expected(key_of: Callable[[Any], Any], values: list[Any], stamps: list[int] | None) -> dict[int, list[Any]]:
    out: dict[int, list[Any]] = {}
    for value, time in zip(values, stamps or [None] * len(values), strict=True):
        out.setdefault(channel_of(key_of(value)), []).append((kinds(value), value, time))
    return out


fields = st.one_of(
    st.sampled_from(["", "a", "b", "ü", "\ud800", Color.RED, "red", "x" * 2000]),
    st.integers(-3, 3),
    st.sampled_from([2**31, -(2**31) - 1, 2**63 - 1, 2**63, 10**30]),
    st.sampled_from([0.0, -0.0, 1.5, True, False, None]),
)
uniform = st.sampled_from(
    [st.sampled_from("abcü"), st.integers(-300, 300), st.sampled_from([0.5, -0.0]), st.booleans()]
)


@given(st.data())
def test_every_row_reaches_the_channel_of_its_key_unchanged(data: Any) -> None:
    width = data.draw(st.integers(1, 3))
    parts = [data.draw(uniform) for _ in range(width)]
    rows = data.draw(st.lists(st.tuples(*parts), min_size=1, max_size=8))
    if data.draw(st.booleans()):  # one that does not fit in somewhere
        rows.insert(data.draw(st.integers(0, len(rows))), data.draw(st.tuples(*[fields] * width)))
    values = (rows * (LEAST_ROWS // len(rows) + 1))[: LEAST_ROWS + 5]
    stamps = list(range(len(values))) if data.draw(st.booleans()) else None
    position = data.draw(st.integers(0, width - 1))
    key_of = data.draw(st.sampled_from([itemgetter(position), lambda row: row[position]]))
    selector = ByKeyGroup(PARALLEL, key_of, GROUPS)
    for _ in range(2):
        assert sent(selector, values, stamps) == expected(key_of, values, stamps)


def is_columns(selector: ByKeyGroup, values: list[Any]) -> bool:
    return all(isinstance(part, RowColumns) for _, part in selector.split(RowBatch(values)))


MANY = [(f"w{i % 50}", i) for i in range(LEAST_ROWS)]


def test_text_and_whole_number_keys_go_as_columns_with_the_place_of_the_key() -> None:
    for position in (0, 1):
        selector = ByKeyGroup(PARALLEL, lambda row, position=position: row[position], GROUPS)
        parts = selector.split(RowBatch(MANY))
        assert {part.key_column for _, part in parts if isinstance(part, RowColumns)} == {position}
        assert sum(len(part) for _, part in parts) == len(MANY)


@pytest.mark.parametrize(
    "key_of",
    [
        lambda row: row[0].upper(),
        lambda row: (row[0], row[1]),
        lambda row: Color.RED if row[0] == "w0" else row[0],
        lambda row: float(row[1]),
        lambda row: row[1] == 1,
    ],
)
def test_a_key_that_is_no_field_leaves_rows(key_of: Callable[[Any], Any]) -> None:
    selector = ByKeyGroup(PARALLEL, key_of, GROUPS)
    assert not is_columns(selector, MANY)
    assert sent(ByKeyGroup(PARALLEL, key_of, GROUPS), MANY) == expected(key_of, MANY, None)


def test_a_key_that_equals_a_field_but_is_of_another_type_is_not_the_field() -> None:
    values = [("red", 1)] * LEAST_ROWS
    assert is_columns(ByKeyGroup(PARALLEL, lambda row: row[0], GROUPS), values)
    assert not is_columns(ByKeyGroup(PARALLEL, lambda row: Color(row[0]), GROUPS), values)


@pytest.mark.parametrize("key", [np.array([1, 2]), {"unhashable": 1}])
def test_keys_that_can_be_no_keys_are_refused_with_their_record(key: Any) -> None:
    for key_of in (lambda row: key, lambda row: row[0] if row[1] else key, lambda row: key if row[1] == 9 else row[0]):
        with pytest.raises(RefusedKeyError):
            ByKeyGroup(PARALLEL, key_of, GROUPS).split(RowBatch(MANY))


@pytest.mark.slow
def test_a_large_batch_is_divided_and_keeps_its_order() -> None:
    values = [(f"w{i % 7}", i) for i in range(2 * MOST_ROWS + 300)]
    parts = ByKeyGroup(PARALLEL, itemgetter(0), GROUPS).split(RowBatch(values, [i for _, i in values]))
    assert max(len(part) for _, part in parts) <= MOST_ROWS
    for channel in range(PARALLEL):
        got = [row for to, part in parts if to == channel for row in part.values]
        assert got == [row for row in values if channel_of(row[0]) == channel]


def test_few_rows_stay_rows() -> None:
    assert not is_columns(ByKeyGroup(PARALLEL, itemgetter(0), GROUPS), MANY[:-1])


def test_after_rows_that_are_no_columns_there_is_a_pause_that_doubles_and_ends() -> None:
    selector = ByKeyGroup(PARALLEL, itemgetter(0), GROUPS)
    odd = [("a", None)] * LEAST_ROWS
    assert not is_columns(selector, odd)
    assert not is_columns(selector, MANY), "a pause of one batch"
    assert not is_columns(selector, odd)
    assert [is_columns(selector, MANY) for _ in range(4)] == [False] * 3 + [True]
    assert not is_columns(selector, odd)
    assert [is_columns(selector, MANY) for _ in range(2)] == [False, True], "success shortens the pause again"
    for _ in range(300):
        selector.split(RowBatch(odd))
    pauses = [is_columns(selector, MANY) for _ in range(64)]
    assert pauses[-1] and True in pauses


def test_keys_that_do_not_recur_stay_rows() -> None:
    assert not is_columns(ByKeyGroup(PARALLEL, itemgetter(0), GROUPS), [(str(i), i) for i in range(LEAST_ROWS)])


def codes(entries: int) -> KeyCodes:
    return KeyCodes(KeyChannels(PARALLEL, GROUPS, 1000), entries)


@given(st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=20), max_size=12), st.integers(1, 20))
def test_a_table_of_any_size_codes_keys_truly_and_old_columns_stay_true(batches: list[Any], entries: int) -> None:
    coder, seen = codes(entries), []
    for batch in batches:
        keys = [f"k{number}" for number in batch] * 2
        column = coder.encode(keys)
        if column is None:
            assert len(set(keys)) > entries or 2 * len(set(keys)) > len(keys)
            continue
        assert len(column.table) <= entries
        assert [channel_of(key) for key in keys] == coder.channels[column.codes].tolist()
        seen.append((keys, column))
        for earlier, kept in seen:
            assert [kept.table[code] for code in kept.codes.tolist()] == earlier


def test_a_full_table_begins_anew() -> None:
    coder = codes(4)
    first = coder.encode(["a", "b", "c"] * 2)
    second = coder.encode(["c", "d", "e"] * 2)
    assert first is not None and second is not None
    assert second.table == ["c", "d", "e"] and first.table == ["a", "b", "c"]


def test_long_keys_are_not_remembered() -> None:
    assert codes(10).encode(["x" * 2000] * 10) is None


def test_a_failing_key_selector_is_reported_with_its_record() -> None:
    with pytest.raises(KeyExtractionError, match=r"\('w7', 7\)"):
        ByKeyGroup(PARALLEL, lambda row: row[0] if row[1] != 7 else row[9], GROUPS).split(RowBatch(MANY))
    with pytest.raises(KeyExtractionError, match=r"\('w0', 0\)"):
        ByKeyGroup(PARALLEL, itemgetter(2), GROUPS).split(RowBatch(MANY))


def test_a_selector_is_called_once_a_record() -> None:
    calls: list[Any] = []
    ByKeyGroup(PARALLEL, lambda row: calls.append(row) or row[0], GROUPS).split(RowBatch(MANY))
    assert calls == MANY
    calls.clear()
    ByKeyGroup(PARALLEL, lambda row: calls.append(row) or row[0].upper(), GROUPS).split(RowBatch(MANY))
    assert calls == MANY
