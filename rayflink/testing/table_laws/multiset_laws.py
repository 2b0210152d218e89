"""The laws of keyed multisets; hypothesis must be installed."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rayflink.state.clock import ManualClock
from rayflink.table.runtime.keyed_state.keyed_multiset import MultisetSpec, RowForm

from ..backend_laws.model import check_machine
from ..backend_laws.subject import same
from .model import TTL_MS
from .multiset_model import COLUMNS, UNIQUE_WIDTH, WIDTH, MakeMultiset, MultisetHistory, MultisetJob
from .subject import JobCheckpoints, Row, restored

Law = Callable[[MakeMultiset], None]
"""Raises an AssertionError where the multiset does not obey it."""
_HOT: Row = (1, "a")


def histories_give_what_a_dict_would_give(make_multiset: MakeMultiset) -> None:
    machine = type("HistoryOfThis", (MultisetHistory,), {"make_multiset": staticmethod(make_multiset)})
    check_machine(machine, 12, 30, shrinks=False)


def a_key_may_have_many_rows(make_multiset: MakeMultiset) -> None:
    """Add, remove and rescale many rows of one key beside few of others."""
    for form in RowForm:
        job, checkpoints = MultisetJob(make_multiset, _spec(form, 0), 1, ManualClock(0)), JobCheckpoints()
        wanted = [(*_HOT, number, "x") for number in range(3000)] + [(2, "", number, None) for number in range(5)]
        if form is RowForm.SINGLE:
            wanted = [wanted[-1], wanted[0]]
        job.change(wanted, [1] * len(wanted), [0] * len(wanted))
        if form is not RowForm.APPENDED:
            gone = wanted[1::2]
            job.change(gone, [-1] * len(gone), [0] * len(gone))
            wanted = wanted[::2]
        number = checkpoints.next_number()
        snapshots = checkpoints.write(number, [job.subtasks[0].capture(number)])
        again = MultisetJob(
            make_multiset, _spec(form, 0), 2, job.clock, restored(checkpoints.storage, snapshots, 2, True)
        )
        for some in (job, again):
            rows = some.rows([_HOT, (2, ""), (3, "a")])
            same(f"rows of {form.value}", sorted(map(repr, rows)), sorted(repr((row, 1, 0)) for row in wanted))


def rows_expire_and_are_counted(make_multiset: MakeMultiset) -> None:
    for form in RowForm:
        job, over = MultisetJob(make_multiset, _spec(form, TTL_MS), 1, ManualClock(0)), [0]

        def count(rows: int, over: list[int] = over) -> None:
            over[0] += rows

        job.multisets[0].table.expired = count
        job.change([(*_HOT, 1, "x"), (2, "", 1, "x")], [1, 1], [0, 0])
        job.clock.advance(TTL_MS - 1)
        same("rows before their time is over", job.rows([_HOT, (2, "")]).total(), 2)
        job.change([(2, "", 1, "x")], [1], [0])
        job.clock.advance(1)
        same("rows of the key whose time is over", job.rows([_HOT]).total(), 0)
        for _ in range(60):
            job.clock.advance(100)
            job.sweep()
        same(f"rows of {form.value} that are left", job.count(), 0)
        same("rows that expired", over[0], 3 if form is RowForm.APPENDED else 2)


def _spec(form: RowForm, ttl_ms: int) -> MultisetSpec:
    return MultisetSpec(COLUMNS, WIDTH, form, UNIQUE_WIDTH, False, ttl_ms)


KEYED_MULTISET_LAWS: tuple[Law, ...] = (
    histories_give_what_a_dict_would_give,
    a_key_may_have_many_rows,
    rows_expire_and_are_counted,
)
"""All laws; the name of each says what it is."""


def check_keyed_multiset(make_multiset: MakeMultiset, laws: Iterable[Law] = KEYED_MULTISET_LAWS) -> None:
    """Check that a keyed multiset obeys the laws.

    Args:
        make_multiset: ``make_multiset(spec, ctx)`` makes a new, empty multiset, open, with the snapshots of its table.
        laws: some of `KEYED_MULTISET_LAWS`.

    Raises:
        AssertionError: a law is broken; its name comes first.
    """
    for law in laws:
        try:
            law(make_multiset)
        except Exception as error:
            raise AssertionError(f"{law.__name__}: {error or type(error).__name__}") from error


__all__ = ["KEYED_MULTISET_LAWS", "check_keyed_multiset"]
