"""Sorting and numbering of bounded rows: any order, in memory and in files, beside Python's sort."""

from __future__ import annotations

import decimal
import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.common.managed_memory import MemoryManager
from rayflink.common.records.batches import MAX_TIMESTAMP
from rayflink.common.types import Row
from rayflink.datastream.streams.selectors import NamedField
from rayflink.table.runtime.keyed_state import frame_memory
from rayflink.table.runtime.ranks import sorted_rows
from rayflink.table.runtime.ranks.bounded_rank import bounded_rank, row_numbers
from rayflink.table.runtime.ranks.limits import LimitOperator
from rayflink.table.runtime.ranks.ordering import order_numbers, order_of
from rayflink.table.runtime.ranks.sorting import sort
from rayflink.table.runtime.ranks.window_rank import local_rank
from rayflink.testing import OperatorHarness, end, rec, verify, wm

from ..windows.test_window_memory import with_memory
from .rank_cases import RESULT, WORD, N, X, place_in_order, ranking, row, rows, wanted

GIVEN = [row("b", 2), row("a", 2), row(None, 1), row("c", None), row("a", 3, 0, 1.5), row("b", 2, 0, 0.5)]


def plain(*values):
    return rec(Row(*RESULT.names[:-1])(*row(*values)))


def numbered(number, *values):
    return rec(Row(*RESULT.names)(*row(*values), number))


@pytest.mark.slow
def test_rows_come_in_order_and_equal_ones_as_they_came():
    verify(
        lambda: sort(((N, True, False), (X, False, False)), 1, 4),
        elements=[rows(*GIVEN[:3]), rows(*GIVEN[3:]), end()],
        then=[plain("b", 2, 0, 0.5), plain("b", 2), plain("a", 2), plain(None, 1), wm(MAX_TIMESTAMP)],
        without=(
            "three subtasks",
            "three subtasks become two",
            "restored after each step",
            "restored after each record",
        ),
    )


@pytest.mark.parametrize(
    ("offset", "limit", "kept"), [(0, 2, [0, 1]), (1, None, [1, 2, 3]), (2, 9, [2, 3]), (4, 1, [])]
)
def test_a_limit_without_an_order_gives_rows_as_they_come(offset, limit, kept):
    harness = OperatorHarness(lambda: LimitOperator(offset, limit))
    for one in GIVEN[:4]:
        harness.give(rows(one))
    assert [tuple(value) for value in harness.output_values()] == [GIVEN[at] for at in kept]


@pytest.mark.slow
def test_all_rows_of_a_key_are_numbered():
    verify(
        lambda: row_numbers((WORD,), ((N, False, True),), RESULT),
        elements=[rows(*GIVEN[:3]), rows(*GIVEN[3:]), end()],
        then=[
            numbered(1, None, 1), numbered(1, "a", 2), numbered(2, "a", 3, 0, 1.5), numbered(1, "b", 2),
            numbered(2, "b", 2, 0, 0.5), numbered(1, "c", None), wm(MAX_TIMESTAMP),
        ],
        key=NamedField("word"),
        without=("restored after each step", "restored after each record", "three subtasks become two"),
    )  # fmt: skip


@pytest.mark.slow
def test_the_first_rows_of_a_key_are_numbered():
    what = ranking((N, False, True), window=None, last=1)
    verify(
        lambda: [local_rank(what), bounded_rank(what, RESULT)],
        elements=[rows(*GIVEN[:3]), rows(*GIVEN[3:]), end()],
        then=[
            numbered(1, "b", 2),
            numbered(1, "a", 2),
            numbered(1, None, 1),
            numbered(1, "c", None),
            wm(MAX_TIMESTAMP),
        ],
        key=NamedField("word"),
        without=("restored after each step", "restored after each record", "three subtasks become two"),
    )


values = st.lists(st.builds(
    row, st.sampled_from(["a", "b", "ab", "", "ä", None]),
    st.none() | st.integers(-3, 3) | st.sampled_from([-(2**63), 2**63 - 1]),
    st.integers(-2, 2), st.none() | st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, 1.0]),
), max_size=60)  # fmt: skip
keys = st.lists(st.tuples(st.sampled_from([WORD, N, X]), st.booleans(), st.booleans()), min_size=1, max_size=3)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(given=values, order=keys, limit=st.none() | st.integers(0, 20), batch=st.integers(1, 20), run=st.integers(1, 3))
def test_sorted_rows_are_those_of_pythons_sort(given, order, limit, batch, run):
    """Runs are short, so that they are merged; what is wanted is pruned early."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_rows, "RUN_BYTES", 300 * run)
        patch.setattr(sorted_rows, "LEAST_PRUNED", 5)
        sorting = sorted_rows.SortedRows(order, limit)
        for first in range(0, len(given), batch):
            sorting.add(rows(*given[first : first + batch]).batch.data)
        found = [tuple(one.values()) for block in sorting for one in block.to_pylist()]
    assert repr(found) == repr(sorted(given, key=lambda one: place_in_order(one, order))[:limit])


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("values", [
    pa.array([2, None, -5, 2**62, -(2**63)]), pa.array([1.5, math.nan, -0.0, None, 0.0, -math.inf]),
    pa.array([True, None, False]), pa.array(["b", "", None, "ä", "z"]), pa.array([b"b", b"", None, b"\xff"]),
    pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("-7.25")], pa.decimal128(10, 2)),
    pa.array([decimal.Decimal(10) ** 30, None, decimal.Decimal(-1)], pa.decimal128(38, 2)),
    pa.array([3, None, 1], pa.timestamp("us", "UTC")), pa.array([3, None, 1], pa.date32()),
    pa.array([None, None], pa.int32()), pa.array([], pa.string()),
], ids=lambda one: str(one.type) if isinstance(one, pa.Array) else None)  # fmt: skip
def test_values_of_each_type_have_their_order(values, descending):
    def place(at):
        value = whole[at]
        if value is None:
            return 1, 0, at
        value = (1, 0) if isinstance(value, float) and math.isnan(value) else (0, value)
        return 0, value, at

    values = pa.concat_arrays([values[:1], values])[1:] if len(values) else values  # a column with an offset
    whole = values.to_pylist()
    order = order_of(order_numbers([values], [(0, descending, False)]), len(values)).tolist()
    there = [at for at in range(len(whole)) if whole[at] is not None]
    expected = sorted(there, key=place)
    if descending:
        expected = sorted(sorted(there), key=lambda at: place(at)[1], reverse=True)
    assert order == [*expected, *(at for at in range(len(whole)) if whole[at] is None)]


def small_memory(monkeypatch, tmp_path, operator):
    monkeypatch.setattr(frame_memory, "STEP_BYTES", 256)
    monkeypatch.setattr(frame_memory, "LEAST_BYTES", 256)
    memory = MemoryManager(1 << 30)
    files = []
    written = frame_memory.FrameMemory.written
    monkeypatch.setattr(frame_memory.FrameMemory, "written", lambda *of: files.append(written(*of)) or files[-1])
    return with_memory(operator, 20_000, str(tmp_path / "spill"), memory), memory, files


MANY = [row(f"word {at * 7 % 90}", at * 31 % 101, 0, float(at % 13)) for at in range(3_000)]


def given_to(factory, batch=100):
    harness = OperatorHarness(factory)
    for first in range(0, len(MANY), batch):
        harness.give(rows(*MANY[first : first + batch]))
    harness.end_input()
    found = [tuple(one) for one in harness.output_values()]
    harness.close()
    return found


@pytest.mark.parametrize(("offset", "limit"), [(0, None), (70, None), (5, 1_500), (0, 3)])
def test_an_order_of_more_rows_than_memory_goes_by_files(tmp_path, monkeypatch, offset, limit):
    order = ((N, True, False), (WORD, False, True))
    operator, memory, files = small_memory(monkeypatch, tmp_path, sort)
    found = given_to(lambda: operator(order, offset, limit))
    ordered = sorted(MANY, key=lambda one: place_in_order(one, order))
    assert found == ordered[offset : None if limit is None else offset + limit]
    assert (len(files) > 3) is (limit != 3) and memory.used == 0


def test_numbers_of_more_rows_than_memory_go_by_files(tmp_path, monkeypatch):
    order = ((N, True, False), (X, False, True))
    operator, memory, files = small_memory(monkeypatch, tmp_path, row_numbers)
    monkeypatch.setattr(sorted_rows, "BLOCK_ROWS", 7)
    found = given_to(lambda: operator((WORD,), order, RESULT))
    words = sorted({one[WORD] for one in MANY}, key=str.encode)
    what = ranking(*order, last=10_000)
    assert found == [one for word in words for one in wanted(what, [one for one in MANY if one[WORD] == word])]
    assert len(files) > 3 and memory.used == 0


@pytest.mark.parametrize("keys", [(), (WORD,)])
def test_the_first_rows_of_more_keys_than_memory_go_by_files(tmp_path, monkeypatch, keys):
    operator, memory, files = small_memory(monkeypatch, tmp_path, bounded_rank)
    what = ranking((N, True, False), (X, False, True), keys=keys, window=None, last=25, first=2)
    found = given_to(lambda: [local_rank(what), operator(what, RESULT)])
    groups = {one[WORD] if keys else None for one in MANY}
    expected = [one for key in groups for one in wanted(what, [one for one in MANY if not keys or one[WORD] == key])]
    assert sorted(found) == sorted(expected)
    assert bool(files) is bool(keys) and memory.used == 0
