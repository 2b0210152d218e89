"""Windows that show results early and late: under every hardship, by a clock, and beside a model."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.common.types import RowKind
from rayflink.table.plan.logical import Emission
from rayflink.table.runtime.aggregates.grouping import Groups
from rayflink.table.runtime.aggregates.partial_aggregates import PartialAggregates
from rayflink.table.runtime.aggregates.window_spec import WindowSpec
from rayflink.table.runtime.windows.prefix_merge import prefixes
from rayflink.table.runtime.windows.window_operators import emitting_window_aggregate
from rayflink.testing import OperatorHarness, verify, wm
from rayflink.testing.elements import Record

from .window_cases import OK, TS, WORD, N, aggregate, by_word, hop, key_of, rows, tumble, value_of, windows_of

AGGREGATES = (
    aggregate("COUNT"), aggregate("SUM", N, filter=OK), aggregate("AVG", N), aggregate("MAX", N),
    aggregate("MIN", WORD), aggregate("COUNT", N, distinct=True), aggregate("COLLECT", N), aggregate("LAST_VALUE", N),
    aggregate("LISTAGG", WORD),
)  # fmt: skip
COUNTS = by_word(tumble(), aggregate("COUNT"), aggregate("MAX", N))


def emitting(aggregation: Any, emission: Emission) -> Any:
    return lambda: emitting_window_aggregate(aggregation, emission)


def shown(harness: OperatorHarness) -> list[str]:
    """What came since the last time, such as "+U a 2 7"."""
    return [
        f"{one.value.get_row_kind()} {' '.join(map(str, list(one.value)[:-3]))}"
        for one in harness.take()
        if isinstance(one, Record)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("window", [tumble(), hop(20, 10)], ids=["tumble", "hop"])
@pytest.mark.parametrize("emission", [
    pytest.param(Emission(0), id=str(Emission(0)), marks=pytest.mark.soak),
    pytest.param(Emission(0, 0, 15), id=str(Emission(0, 0, 15))),
    pytest.param(Emission(None, 0, 100), id=str(Emission(None, 0, 100)), marks=pytest.mark.soak),
])  # fmt: skip
def test_it_gives_the_same_under_every_hardship(window, emission):
    aggregation = by_word(window, *AGGREGATES)
    given_rows = [
        rows(("b", 4, 3, True), ("a", 1, 0, None), ("b", 4, 9, False), ("a", 2, 12, True), ("b", -9, 5, True)),
        wm(12),
        rows(("b", 1, 2), ("a", 5, 29), ("c", 6, 11), ("b", 1, 2)),
        wm(25),
        rows(("late", 1, 9), ("a", -8, 10), ("b", 2, 3)),
        wm(60),
    ]
    verify(emitting(aggregation, emission), given_rows, key=key_of(aggregation))


def test_each_row_is_shown_at_once_and_what_does_not_change_is_not():
    with OperatorHarness(emitting(by_word(tumble(), aggregate("MAX", N)), Emission(0))) as harness:
        harness.give(rows(("a", 1, 0), ("b", 5, 1), ("a", 3, 2), ("a", 2, 3), ("a", None, 4)))
        assert shown(harness) == ["+I a 1", "+I b 5", "-U a 1", "+U a 3"]
        harness.advance_watermark(9)
        assert shown(harness) == []
        harness.give(rows(("a", 9, 1)))
        assert shown(harness) == []
        assert harness.operators[-1].ctx.metrics.counter("numLateRecordsDropped").get_count() == 1


def test_a_snapshot_joins_nothing_while_rows_wait(monkeypatch):
    with OperatorHarness(emitting(COUNTS, Emission(1_000))) as harness:
        harness.give(rows(("a", 1, 0), ("b", 2, 1)))
        harness.give(rows(("a", 3, 2)))
        joined, calls = PartialAggregates.merge, []
        monkeypatch.setattr(PartialAggregates, "merge", lambda *given: calls.append(1) or joined(*given))
        snapshot = harness.operators[-1].snapshot_state(1)
        harness.give(rows(("a", 9, 3)))
        assert not calls
        assert len(dict(snapshot.raw_keyed)) == 2 and calls
        known = {harness.operators[-1].ctx.operator_id: (snapshot,)}
        restored = harness.restore(emitting(COUNTS, Emission(1_000)), known)
        restored.advance_watermark(9)
        assert shown(restored) == ["+I a 2 3", "+I b 1 2"]


def test_a_delay_counts_from_the_first_row_and_goes_on_by_its_interval():
    with OperatorHarness(emitting(COUNTS, Emission(100))) as harness:
        harness.set_processing_time(1_000)
        harness.give(rows(("a", 1, 0)))
        harness.set_processing_time(1_050)
        harness.give(rows(("b", 5, 1)))
        harness.set_processing_time(1_099)
        assert shown(harness) == []
        harness.set_processing_time(1_100)
        assert shown(harness) == ["+I a 1 1", "+I b 1 5"]
        harness.set_processing_time(1_399)
        harness.give(rows(("a", 7, 3)))
        assert shown(harness) == []
        harness.set_processing_time(1_400)
        assert shown(harness) == ["-U a 1 1", "+U a 2 7"]
        harness.give(rows(("a", 0, 3)))
        harness.advance_watermark(9)
        assert shown(harness) == ["-U a 2 7", "+U a 3 7"]
        harness.set_processing_time(2_000)
        assert shown(harness) == []


def test_what_is_due_is_due_after_a_restore():
    with OperatorHarness(emitting(COUNTS, Emission(100))) as harness:
        harness.set_processing_time(1_000)
        harness.give(rows(("a", 1, 0), ("b", 2, 0)))
        harness.set_processing_time(1_100)
        assert shown(harness) == ["+I a 1 1", "+I b 1 2"]
        harness.give(rows(("a", 2, 1)))
        restored = harness.restore(emitting(COUNTS, Emission(100)), harness.snapshot())
        restored.set_processing_time(1_200)
        assert shown(restored) == ["-U a 1 1", "+U a 2 2"]
        restored.close()


def test_late_rows_show_by_their_interval_and_the_rest_when_the_window_is_dropped():
    with OperatorHarness(emitting(COUNTS, Emission(None, 100, 50))) as harness:
        harness.set_processing_time(1_000)
        harness.give(rows(("a", 1, 0)))
        harness.advance_watermark(20)
        assert shown(harness) == ["+I a 1 1"]
        harness.give(rows(("a", 5, 3), ("new", 1, 4)))
        assert shown(harness) == ["+I new 1 1"]  # nothing was shown of it at the end
        harness.set_processing_time(1_100)
        assert shown(harness) == ["-U a 1 1", "+U a 2 5"]
        harness.give(rows(("a", 9, 3)))
        harness.advance_watermark(59)
        assert shown(harness) == ["-U a 2 5", "+U a 3 9"]
        harness.give(rows(("a", 9, 3)))
        harness.advance_watermark(1_000)
        assert shown(harness) == []


def test_windows_of_processing_time_show_results_before_their_end():
    spec = WindowSpec(tumble().kind, size_ms=1_000, is_event_time=False)
    with OperatorHarness(emitting(by_word(spec, aggregate("COUNT")), Emission(300))) as harness:
        harness.set_processing_time(10_100)
        harness.give(rows(("a", 1)))
        harness.set_processing_time(10_400)
        assert shown(harness) == ["+I a 1"]
        harness.give(rows(("a", 1)))
        harness.set_processing_time(11_000)
        assert shown(harness) == ["-U a 1", "+U a 2"]
        harness.set_processing_time(20_000)
        assert shown(harness) == []


@dataclass
class Held:
    rows: dict[Any, list[Any]] = field(default_factory=dict)
    shown: dict[Any, Any] = field(default_factory=dict)
    there: set[Any] = field(default_factory=set)
    is_over: bool = False
    since: int | None = None
    due: int | None = None


class Model:
    """The same row by row."""

    def __init__(self, spec: WindowSpec, emission: Emission, keys: tuple[int, ...]) -> None:
        self.spec, self.emission, self.keys = spec, emission, keys
        self.open: dict[tuple[int, int], Held] = {}
        self.watermark, self.now, self.late = -(2**63), 0, 0

    def add(self, row: tuple[Any, ...]) -> Iterator[Any]:
        windows = windows_of(self.spec, row[TS])
        alive = [one for one in windows if one[1] - 1 + self.emission.lateness_ms > self.watermark]
        self.late += not alive
        key = tuple(row[at] for at in self.keys)
        for window in alive:
            held = self.open.setdefault(window, Held(is_over=window[1] - 1 <= self.watermark))
            held.rows.setdefault(key, []).append(row)
            delay = self.emission.late_ms if held.is_over else self.emission.early_ms
            if delay == 0 or (held.is_over and key not in held.there):
                yield from self.show(window, key)
            elif delay:
                held.since = self.now if held.since is None else held.since
                if held.due is None:
                    held.due = self.now + delay - (self.now - held.since) % delay

    def advance(self, watermark: int) -> Iterator[Any]:
        self.watermark = max(watermark, self.watermark)
        for window, held in sorted(self.open.items(), key=lambda one: one[0][1]):
            if window[1] - 1 <= self.watermark and not held.is_over:
                yield from self.show_all(window)
                held.is_over, held.since, held.due, held.there = True, None, None, set(held.rows)
            if window[1] - 1 + self.emission.lateness_ms <= self.watermark:
                if held.due is not None:
                    yield from self.show_all(window)
                del self.open[window]

    def clock(self, now: int) -> Iterator[Any]:
        self.now = now
        for window, held in sorted(self.open.items()):
            if held.due is not None and held.due <= now:
                held.due = None
                yield from self.show_all(window)

    def show_all(self, window: tuple[int, int]) -> Iterator[Any]:
        for key in self.open[window].rows:
            yield from self.show(window, key)

    def show(self, window: tuple[int, int], key: Any) -> Iterator[Any]:
        held = self.open[window]
        values = tuple(value_of(one, held.rows[key]) for one in AGGREGATES)
        if key in held.shown:
            if held.shown[key] != values:
                yield window, key, RowKind.UPDATE_BEFORE, held.shown[key]
                yield window, key, RowKind.UPDATE_AFTER, values
        else:
            yield window, key, RowKind.INSERT, values
        held.shown[key] = values


def by_key(changes: list[Any]) -> dict[str, list[str]]:
    """Changes of each key and window in their order."""
    found: dict[str, list[str]] = {}
    for window, key, kind, values in changes:
        found.setdefault(repr((window, key)), []).append(f"{kind} {values}")
    return found


def _sorted(value: Any) -> Any:
    """Lists in order, multisets as pairs of a value and its count in order."""
    if isinstance(value, dict):
        return sorted(value.items())
    return sorted(value) if isinstance(value, list) else value


def found_in(harness: OperatorHarness, keys: int) -> list[Any]:
    found = []
    for entry in harness.take():
        if isinstance(entry, Record):
            fields = [_sorted(value) for value in entry.value]
            ms = [round((value - datetime(1970, 1, 1)) / timedelta(milliseconds=1)) for value in fields[-3:-1]]
            found.append((tuple(ms), tuple(fields[:keys]), entry.value.get_row_kind(), tuple(fields[keys:-3])))
    return found


values = st.tuples(
    st.sampled_from(["a", "b", None]), st.none() | st.integers(-3, 3), st.integers(0, 40), st.sampled_from([True, None])
)
steps = st.lists(st.lists(values, max_size=6) | st.integers(-5, 60) | st.tuples(st.integers(1, 40)), max_size=9)


@pytest.mark.slow
@pytest.mark.parametrize("spec", [tumble(), hop(20, 5), hop(25, 10)], ids=["tumble", "hop", "uneven hop"])
@pytest.mark.parametrize(
    "emission", [Emission(0), Emission(0, 0, 10), Emission(20), Emission(7, 11, 15), Emission(None, 10, 30)], ids=str
)
@settings(max_examples=60, deadline=None)
@given(stream=steps, keys=st.sampled_from([(), (WORD,), (WORD, OK)]), seed=st.integers(0, 9))
def test_changes_are_those_of_the_model(spec, emission, stream, keys, seed):
    aggregation, draw = by_word(spec, *AGGREGATES, keys=keys), random.Random(seed)
    model, harness = Model(spec, emission, keys), OperatorHarness(emitting(aggregation, emission))
    harness.set_processing_time(0)
    lost = 0
    try:
        for step in [*stream, 1000]:
            if isinstance(step, int):
                harness.advance_watermark(step)
                wanted = list(model.advance(step))
            elif isinstance(step, tuple):
                harness.set_processing_time(model.now + step[0])
                wanted = list(model.clock(model.now + step[0]))
            else:
                wanted = [change for row in step for change in model.add(row)]
                if step:
                    harness.give(rows(*step))
            assert by_key(found_in(harness, len(keys))) == by_key(wanted)
            if draw.random() < 0.3 and not emission.early_ms and not emission.late_ms:
                snapshot, before = harness.snapshot(), harness
                lost += late_in(before)
                harness = before.restore(emitting(aggregation, emission), snapshot)
        assert lost + late_in(harness) == model.late
    finally:
        harness.close()


def late_in(harness: OperatorHarness) -> int:
    return harness.operators[-1].ctx.metrics.counter("numLateRecordsDropped").get_count()


@given(st.lists(st.tuples(st.integers(0, 2), st.none() | st.integers(-5, 5)), min_size=1, max_size=20))
def test_prefixes_are_the_sums_up_to_each_row(pairs):
    pairs.sort(key=lambda pair: pair[0])
    partials = PartialAggregates(by_word(tumble(), aggregate("SUM", N), aggregate("LAST_VALUE", N)))
    data = rows(*((str(segment), n) for segment, n in pairs)).batch.data
    ones = Groups(np.arange(len(pairs)), len(pairs), partials.keys_of(data))
    segments = np.array([segment for segment, _ in pairs])
    is_first = np.concatenate([[True], segments[1:] != segments[:-1]])
    results = [
        one.to_pylist() for one in partials.results(prefixes(partials, partials.from_rows(data, ones), is_first))
    ]
    for at, (segment, _) in enumerate(pairs):
        until = [n for other, n in pairs[: at + 1] if other == segment and n is not None]
        assert (results[1][at], results[2][at]) == ((sum(until), until[-1]) if until else (None, None))
