"""One row of each key of a table once the watermark has passed its changes, beside a model that goes row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rayflink.common.records.batches import MAX_TIMESTAMP, ArrowBatch
from rayflink.common.records.row_kinds import with_kinds
from rayflink.common.types import Row, RowKind
from rayflink.datastream.streams.selectors import NamedField
from rayflink.operators.base import UserCodeError
from rayflink.table.plan.conflicts import OnConflict
from rayflink.table.runtime.upserts.compact_operator import CONFLICTS, SENT_AT, CompactOperator, StampOperator
from rayflink.table.runtime.upserts.compacted_rows import CompactSpec
from rayflink.testing import OperatorHarness, rec, verify, wm
from rayflink.testing.elements import Columns, Record, columns, in2

ROWS = pa.schema([("word", pa.string()), ("id", pa.int64()), ("x", pa.float64())])
INSERT, BEFORE, AFTER, DELETE = RowKind
MIN = -(2**63)
Change = tuple[int, tuple[Any, ...], int]
"""1 for a row that comes and -1 for one that goes, the row, and the watermark at which it was sent."""


def operator(on_conflict: OnConflict = OnConflict.NOTHING, by_id: bool = True) -> CompactOperator:
    kinds, row_key = tuple(ROWS.types), (1,) if by_id else ()
    return CompactOperator(CompactSpec(kinds, tuple(ROWS.names), (0,), row_key, on_conflict, table="t"), ROWS)


def batch(*changes: Change) -> Columns:
    data = [pa.array([row[place] for _, row, _ in changes], kind) for place, kind in enumerate(ROWS.types)]
    sent = pa.array([sent for _, _, sent in changes], pa.int64())
    rows = pa.RecordBatch.from_arrays([*data, sent], names=[*ROWS.names, SENT_AT])
    kinds = np.array([(INSERT if sign > 0 else DELETE).value for sign, _, _ in changes], dtype=np.int8)
    return columns(ArrowBatch(with_kinds(rows, kinds)))


def changes_of(output: Any) -> list[tuple[str, tuple[Any, ...]]]:
    return [(str(item.value.get_row_kind()), tuple(item.value)) for item in output if isinstance(item, Record)]


@pytest.mark.spec("R27", "compaction")
def test_a_row_that_moves_to_another_key_is_no_conflict_however_its_changes_come():
    with OperatorHarness(lambda: operator(OnConflict.ERROR)) as harness:
        harness.give(wm(0))
        harness.give(batch((1, ("laptop", 1, None), 0), (1, ("laptop", 3, None), 0)))
        harness.give(batch((-1, ("laptop", 1, None), 0), (1, ("phone", 1, None), 0)))
        assert not changes_of(harness.take())
        harness.give(wm(5))
        assert sorted(changes_of(harness.take())) == [("+I", ("laptop", 3, None)), ("+I", ("phone", 1, None))]


@pytest.mark.spec("R27", "compaction")
@pytest.mark.parametrize("on_conflict", [OnConflict.ERROR, OnConflict.NOTHING])
@pytest.mark.parametrize(("old", "sent", "is_before"), [(0.5, 0, False), (0.5, 2, False), (0.9, 0, True)])
def test_a_late_deletion_takes_the_row_before_not_the_one_that_replaced_it(on_conflict, old, sent, is_before):
    deletion = batch((-1, ("a", 1, old), sent))
    follows = batch((1, ("a", 1, 0.7), 0))
    with OperatorHarness(lambda: operator(on_conflict)) as harness:
        harness.give(batch((1, ("a", 1, 0.5), MIN)))
        harness.give(wm(0))
        for change in (deletion, follows) if is_before else (follows, deletion):
            harness.give(change)
        harness.give(wm(9))
        assert changes_of(harness.take()) == [("+I", ("a", 1, 0.5)), ("+U", ("a", 1, 0.7))]
        harness.give(batch((-1, ("a", 1, 0.9), 9)))
        harness.give(wm(10))
        assert changes_of(harness.take()) == [("-D", ("a", 1, 0.7))], "a row is found by its key"


@pytest.mark.spec("R27", "nothing")
def test_the_first_row_stays_and_others_are_dropped_and_counted():
    with OperatorHarness(operator) as harness:
        harness.give(wm(0))
        harness.give(batch((1, ("a", 1, 0.5), 0), (1, ("a", 2, 0.5), 0)))
        harness.give(wm(1))
        harness.give(batch((-1, ("a", 2, 0.5), 1), (1, ("a", 3, 0.5), 1)))
        harness.give(wm(2))
        assert changes_of(harness.take()) == [("+I", ("a", 1, 0.5))]
        harness.give(batch((-1, ("a", 1, 0.5), 2), (1, ("a", 1, 0.7), 2)))
        harness.give(wm(3))
        harness.give(batch((-1, ("a", 1, 0.7), 3)))
        harness.give(wm(4))
        assert changes_of(harness.take()) == [("+U", ("a", 1, 0.7)), ("-D", ("a", 1, 0.7))]
        counts = harness.metrics.snapshot().items()
        assert sum(count for name, count in counts if name.endswith(CONFLICTS)) == 2


@pytest.mark.slow
def test_rows_wait_and_stay_under_every_hardship():
    verify(
        operator,
        elements=[
            batch((1, ("a", 1, 0.5), MIN), (1, ("b", 1, None), MIN), (1, ("a", 2, 0.5), MIN)), wm(1),
            batch((-1, ("b", 1, None), 1), (1, ("c", 1, None), 1)), wm(2),
            batch((-1, ("a", 1, 0.5), 2), (1, ("a", 3, 0.5), 2)), wm(9),
        ],
        then=[
            written(INSERT, "a", 1, 0.5), written(INSERT, "b", 1), wm(1), written(DELETE, "b", 1),
            written(INSERT, "c", 1), wm(2), written(AFTER, "a", 3, 0.5), wm(9),
        ],
        key=NamedField("word"),
    )  # fmt: skip


def written(kind: RowKind, word: str, number: int, x: float | None = None) -> Record:
    row = Row(*ROWS.names)(word, number, x)
    row.set_row_kind(kind)
    return rec(row)


def test_changes_wait_for_the_watermark_at_which_they_were_sent():
    with OperatorHarness(operator) as harness:
        harness.give(wm(0))
        harness.give(batch((1, ("a", 1, None), 7), (1, ("b", 2, None), 0)))
        harness.give(wm(5))
        assert changes_of(harness.take()) == [("+I", ("b", 2, None))]
        harness.give(wm(7))
        assert not changes_of(harness.take()), "a sender that is at 7 may send more"
        harness.give(wm(8))
        assert changes_of(harness.take()) == [("+I", ("a", 1, None))]


@pytest.mark.spec("R27", "compaction")
@pytest.mark.parametrize("on_conflict", [OnConflict.ERROR, OnConflict.NOTHING])
@pytest.mark.parametrize("is_end", [False, True])
def test_a_fast_sender_waits_for_what_a_slow_one_sends_at_its_watermark(on_conflict, is_end):
    with OperatorHarness(lambda: operator(on_conflict), inputs=2) as harness:
        steps = [batch((1, ("a", 1, None), MIN)), wm(0), in2(wm(0)), in2(wm(5))]
        steps += [in2(batch((1, ("a", 2, None), 5))), wm(5), batch((-1, ("a", 1, None), 5))]
        for step in steps:
            harness.give(step)
        assert changes_of(harness.take()) == [("+I", ("a", 1, None))]
        for place in (0, 1):
            harness.end_input(place) if is_end else harness.advance_watermark(6, place)
        assert changes_of(harness.take()) == [("+U", ("a", 2, None))]


def test_changes_sent_behind_the_last_watermark_are_written_at_the_end():
    with OperatorHarness(lambda: operator(OnConflict.ERROR)) as harness:
        harness.give(batch((1, ("a", 1, None), MIN)))
        harness.advance_watermark(MAX_TIMESTAMP)
        assert changes_of(harness.take()) == [("+I", ("a", 1, None))]
        harness.give(batch((1, ("a", 2, None), MAX_TIMESTAMP), (-1, ("a", 1, None), MAX_TIMESTAMP)))
        harness.end_input()
        assert changes_of(harness.take()) == [("+U", ("a", 2, None))]


def test_changes_that_wait_keep_the_order_of_their_watermarks_in_a_restore():
    with OperatorHarness(operator) as harness:
        harness.give(batch((1, ("a", 1, 0.5), MIN)))
        harness.give(wm(0))
        harness.give(batch((1, ("a", 1, 0.7), 7)))
        harness.give(batch((-1, ("a", 1, 0.6), 5), (1, ("b", 2, None), 6)))
        with harness.restore(operator, harness.snapshot()) as restored:
            restored.give(batch((-1, ("b", 2, None), 9)))
            restored.give(wm(1))
            assert changes_of(restored.take()) == [("+U", ("a", 1, 0.7))]


def test_changes_of_a_fast_sender_wait_before_the_first_watermark_of_a_start():
    with OperatorHarness(operator) as harness:
        harness.give(batch((1, ("a", 1, None), 5), (1, ("b", 1, None), MIN)))
        harness.give(wm(2))
        assert changes_of(harness.take()) == [("+I", ("b", 1, None))]


@pytest.mark.spec("R27", "error")
def test_a_conflict_fails_the_job_and_names_the_key():
    with OperatorHarness(lambda: operator(OnConflict.ERROR)) as harness:
        harness.give(batch((1, ("a", 1, None), MIN), (1, ("b", 1, None), MIN), (1, ("b", 2, None), MIN)))
        with pytest.raises(UserCodeError, match="several rows of the query have the primary key word='b' of t"):
            harness.give(wm(0))


def test_rows_are_stamped_with_the_watermark_at_which_they_are_sent():
    with OperatorHarness(StampOperator) as harness:
        row = pa.record_batch({"n": [1]})
        harness.give(columns(ArrowBatch(row)))
        harness.give(wm(4))
        harness.give(columns(ArrowBatch(with_kinds(row, RowKind.DELETE))))
        assert changes_of(harness.take()) == [("+I", (1, MIN)), ("-D", (1, 4))]


class Model:
    """Lists the rows of each key, as Flink's WatermarkCompactingSinkMaterializer does.

    Beyond Flink the row that was written is replaced where it goes, and changes, while others conflict; and the
    deletion of a row that another one with its key has replaced takes nothing.
    """

    def __init__(self, by_id: bool) -> None:
        self._by_id, self._waiting, self.table = by_id, [], {}

    def compact(self, changes: list[Change], until: int) -> None:
        self._waiting += changes
        due = [change for change in self._waiting if change[2] < until]
        self._waiting = [change for change in self._waiting if change[2] >= until]
        for word in dict.fromkeys(row[0] for _, row, _ in due):
            rows = [self.table[word]] if word in self.table else []
            self._came, self._ever = list(rows), list(rows)
            for sent in sorted({sent for _, row, sent in due if row[0] == word}):
                for sign, row in self._uncancelled([(n, row) for n, row, at in due if at == sent and row[0] == word]):
                    self._apply(rows, sign, row)
            self.table.pop(word, None)
            if rows:
                self.table[word] = rows[0]

    @staticmethod
    def _uncancelled(changes):
        left = []
        for sign, row in changes:
            opposite = next((place for place, other in enumerate(left) if other == (-sign, row)), None)
            if opposite is None:
                left.append((sign, row))
            else:
                del left[opposite]
        return left

    def _apply(self, rows, sign, row):
        identity = (lambda values: values[1]) if self._by_id else (lambda values: values)
        place = next((place for place, other in enumerate(rows) if identity(other) == identity(row)), None)
        last = next((other for other in self._ever[::-1] if identity(other) == identity(row)), None)
        is_late = sign < 0 and row in self._came and last != row
        if sign > 0:
            self._came.append(row)
            self._ever.append(row)
        elif row in self._came:
            self._came.remove(row)
        if is_late:
            return
        if sign < 0 and place is not None:
            del rows[place]
        elif sign > 0 and self._by_id and place is not None:
            rows[place] = row
        elif sign > 0:
            rows.append(row)


rows = st.tuples(st.sampled_from(["a", None]), st.integers(0, 1), st.sampled_from([-0.0, None]))
changes = st.lists(st.tuples(st.sampled_from([1, 1, -1]), rows, st.integers(0, 2)), min_size=1, max_size=12)


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@example([[(1, ("a", 0, None), 0), (-1, ("a", 0, None), 0)]], False, 0)
@example([[(1, ("a", 0, -0.0), 0)], [(1, ("a", 0, None), 0), (-1, ("a", 0, -0.0), 0)]], True, 6)
@given(st.lists(changes, max_size=6), st.booleans(), st.integers(0, 6))
def test_what_is_written_is_the_table_of_the_model(batches, by_id, restored_at):
    model, table = Model(by_id), {}
    harness = OperatorHarness(lambda: operator(by_id=by_id))
    harness.give(wm(0))
    for place, delayed in enumerate(batches):
        now = 10 * place
        sent = [(sign, row, now + 5 * late) for sign, row, late in delayed]
        harness.give(batch(*sent[: len(sent) // 2])) if len(sent) > 1 else None
        harness.give(batch(*sent[len(sent) // 2 :]))
        if place == restored_at:
            harness = harness.restore(lambda: operator(by_id=by_id), harness.snapshot())
            in_order = sorted([*model._waiting, *sent], key=lambda change: change[2])
            model._waiting, sent = [], [(sign, row, MIN) for sign, row, _ in in_order]
        harness.give(wm(now + 5))
        model.compact(sent, now + 5)
        for kind, row in changes_of(harness.take()):
            assert (row[0] in table) == (kind != "+I")
            table.pop(row[0], None)
            if kind != "-D":
                table[row[0]] = row
        assert {word: repr(row) for word, row in table.items()} == {w: repr(row) for w, row in model.table.items()}
    harness.close()
