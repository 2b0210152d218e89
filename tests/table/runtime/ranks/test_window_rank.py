"""Window Top-N and deduplication under every hardship, and beside a model that goes row by row."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.common.managed_memory import MemoryManager
from rayflink.common.types import Row
from rayflink.datastream.streams.selectors import NamedField
from rayflink.state.errors import SnapshotMismatch
from rayflink.table.runtime.keyed_state import frame_memory
from rayflink.table.runtime.ranks.window_rank import local_rank, window_rank
from rayflink.table.runtime.windows import slice_store, sliced_windows
from rayflink.testing import OperatorHarness, rec, verify, wm
from rayflink.testing.elements import Record

from ..windows.test_window_memory import with_memory
from .rank_cases import END, RESULT, WINDOWS, WORD, Model, N, X, ranking, row, rows, two_phases

BY_WORD = NamedField("word")


def out(number, *values):
    return rec(Row(*RESULT.names)(*row(*values), number))


GIVEN = [
    rows(row("b", 4), row("a", 1), row("b", None), row("a", 2, 1), row("b", 9), row("b", 4, 0, 1.5), row(None, 7)),
    wm(8),
    rows(row("b", 9, 0, 2.5), row("c", 6, 1), row("a", 1, 1)),
    wm(9),
    rows(row("a", 5, 0), row("c", 8, 1), row("c", 7, 1)),
    wm(19),
]


@pytest.mark.spec("R21", "when-over")
@pytest.mark.slow
def test_the_first_rows_of_each_key_come_when_their_window_is_over():
    verify(
        two_phases(ranking((N, True, False))),
        elements=GIVEN,
        then=[
            wm(8),
            out(1, "b", 9), out(2, "b", 9, 0, 2.5), out(1, "a", 1), out(1, None, 7),
            wm(9),
            out(1, "a", 2, 1), out(2, "a", 1, 1), out(1, "c", 8, 1), out(2, "c", 7, 1),
            wm(19),
        ],
        key=BY_WORD,
    )  # fmt: skip


@pytest.mark.slow
def test_without_a_key_all_rows_of_a_window_are_numbered_together():
    verify(
        two_phases(ranking((N, False, True), (WORD, True, False), keys=(), first=2, last=3)),
        elements=GIVEN,
        then=[
            wm(8),
            out(2, "a", 1), out(3, "b", 4),
            wm(9),
            out(2, "a", 2, 1), out(3, "c", 6, 1),
            wm(19),
        ],
        without=("three subtasks", "three subtasks become two"),
    )  # fmt: skip


@pytest.mark.spec("R21", "deduplication")
@pytest.mark.slow
@pytest.mark.parametrize("newest_first", [False, True])
def test_of_equal_rows_the_first_or_the_last_is_kept(newest_first):
    kept = out(1, "b", 9, 0, 2.5) if newest_first else out(1, "b", 9)
    verify(
        two_phases(ranking((N, True, False), last=1, newest_first=newest_first)),
        elements=[*GIVEN[:4], wm(19)],
        then=[
            wm(8), kept, out(1, "a", 1), out(1, None, 7), wm(9), out(1, "a", 2, 1), out(1, "c", 6, 1), wm(19),
        ],
        key=BY_WORD,
    )  # fmt: skip


def late_in(harness):
    return harness.operators[-1].ctx.metrics.counter("numLateRecordsDropped").get_count()


@pytest.mark.spec("R21", "late")
def test_late_rows_are_counted_each():
    harness = OperatorHarness(two_phases(ranking((N, True, False), last=1)))
    harness.advance_watermark(9)
    harness.give(rows(*(row("a", n) for n in range(5)), row("b", 1), row("a", 1, 1)))
    harness.advance_watermark(19)
    assert late_in(harness) == 6
    assert [one.value for one in harness.take() if isinstance(one, Record)] == [out(1, "a", 1, 1).value]
    harness.close()


def test_a_key_of_all_rows_takes_no_more_state_than_it_has_wanted_rows(monkeypatch):
    monkeypatch.setattr(slice_store, "LEAST_WEIGHT", 100)
    harness = OperatorHarness(two_phases(ranking((N, True, False), last=3)))
    sizes = []
    for number in range(40):
        harness.give(rows(*(row("a", number * 1_000 + at % 997) for at in range(1_000))))
        harness.advance_watermark(number - 1_000)
        sizes.append(sum(len(piece[0]) for piece in harness.operators[-1].contents.store.slices[10].all))
    assert max(sizes) <= 120
    harness.advance_watermark(9)
    assert [one.value[1] for one in harness.take() if isinstance(one, Record)] == [39_996, 39_995, 39_994]
    harness.close()


def test_a_snapshot_of_another_order_is_refused():
    harness = OperatorHarness(two_phases(ranking((N, True, False))))
    harness.give(rows(row("a", 1)))
    snapshot = harness.snapshot()
    with pytest.raises(SnapshotMismatch, match="first 2 by 2 DESC"):
        harness.restore(two_phases(ranking((N, False, True))), snapshot)


ORDERS = {
    "descending": ((N, True, False),), "ascending, nulls last": ((N, False, False),), "strings": ((WORD, True, True),),
    "floats": ((X, True, False), (N, False, True)), "three": ((N, False, True), (WORD, False, True), (X, False, False)),
}  # fmt: skip
floats = st.sampled_from([None, 0.0, -0.0, 1.5, -1.5, 3.25, float("inf"), float("-inf"), 1e-300])
values = st.builds(row, st.sampled_from(["a", "b", "ä", "bb", None]), st.none() | st.integers(-3, 3),
                   st.integers(-2, 4), floats)  # fmt: skip
streams = st.lists(st.lists(values, max_size=12) | st.integers(-30, 50), max_size=8)


@pytest.mark.slow
@pytest.mark.parametrize("name", ORDERS)
@settings(max_examples=60, deadline=None)
@given(
    stream=streams, keys=st.sampled_from([(), (WORD,), (WORD, N)]), last=st.integers(1, 4), first=st.integers(1, 2),
    newest=st.booleans(), seed=st.integers(0, 9),
)  # fmt: skip
def test_results_are_those_of_the_model(name, stream, keys, last, first, newest, seed):
    what = ranking(*ORDERS[name], keys=keys, last=last, first=min(first, last), newest_first=newest)
    model, draw = Model(what), random.Random(seed)
    harness = OperatorHarness(two_phases(what))
    lost = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slice_store, "LEAST_WEIGHT", 2)
        patch.setattr(sliced_windows, "FIRING_WEIGHT", 5)
        for element in [*stream, 1000]:
            if isinstance(element, int):
                harness.advance_watermark(element)
                found = [tuple(one.value) for one in harness.take() if isinstance(one, Record)]
                wanted = model.advance(element)
                assert Counter(map(repr, found)) == Counter(map(repr, wanted))
                assert [one[END] for one in found] == [one[END] for one in wanted]
            elif element:
                for one in element:
                    model.add(one)
                harness.give(rows(*element))
            if draw.random() < 0.3:
                snapshot = harness.snapshot()
                lost += late_in(harness)
                harness = harness.restore(two_phases(what), snapshot)
        assert lost + late_in(harness) == model.late
    harness.close()


@pytest.mark.slow
@pytest.mark.parametrize("snapshots", [False, True])
def test_rows_beyond_the_memory_go_to_files(tmp_path, monkeypatch, snapshots):
    for module, name in ((slice_store, "LEAST_WEIGHT"), (frame_memory, "STEP_BYTES"), (frame_memory, "LEAST_BYTES")):
        monkeypatch.setattr(module, name, 256)
    what = ranking((N, True, False), (X, False, True), last=3)
    memory = MemoryManager(1 << 30)
    limited = with_memory(window_rank, 4096, str(tmp_path / "spill"), memory)

    def worked(operator):
        def factory():
            return [local_rank(what), operator(what, WINDOWS, RESULT)]

        harness, found = OperatorHarness(factory), []
        for number in range(40):
            harness.give(
                rows(*(row(f"word {at * 7 % 90}", at % 11, number // 8 + at % 2, float(number)) for at in range(60)))
            )
            harness.advance_watermark(number // 8 * 10 - 1)
            if snapshots and number % 10 == 9:
                found += harness.output_values()
                harness = harness.restore(factory, harness.snapshot())
        harness.advance_watermark(1000)
        found += harness.output_values()
        harness.close()
        return Counter(map(tuple, found))

    files = []
    written = frame_memory.FrameMemory.written
    monkeypatch.setattr(frame_memory.FrameMemory, "written", lambda *of: files.append(written(*of)) or files[-1])
    wanted = worked(window_rank)
    assert not files
    assert worked(limited) == wanted
    assert len(files) > 3 and memory.used == 0
