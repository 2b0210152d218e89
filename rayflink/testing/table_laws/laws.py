"""The laws of keyed tables, by history and by example; hypothesis must be installed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Thread

from rayflink.state.clock import ManualClock
from rayflink.state.errors import SnapshotMismatch
from rayflink.state.snapshots import StoredSnapshot

from ..backend_laws.model import check_machine
from ..backend_laws.subject import refused, same
from .model import TableHistory
from .subject import IDENTITY, KEYS, VALUES, Job, JobCheckpoints, MakeTable, Row, context_of, paths_of, restored

Law = Callable[[MakeTable], None]
"""Raises an AssertionError where the table does not obey it."""


def rows_of(numbers: range, turn: int) -> dict[Row, Row]:
    """Return rows with these numbers as keys, whose values depend on the turn."""
    return {
        (number, f"k{number % 7}"): (number * turn, f"v{turn}", number % 2 == 0, turn, (turn,)) for number in numbers
    }


def a_history_gives_what_a_dict_would_give(make_table: MakeTable) -> None:
    _histories(make_table, 8, 30)


def many_long_histories_give_what_a_dict_would_give(make_table: MakeTable) -> None:
    _histories(make_table, 40, 50)


def _histories(make_table: MakeTable, histories: int, steps: int) -> None:
    machine = type("TableHistoryOfThis", (TableHistory,), {"make_table": staticmethod(make_table)})
    check_machine(machine, histories, steps, shrinks=False)


def a_capture_is_of_its_moment_while_rows_change(make_table: MakeTable) -> None:
    job, checkpoints = Job(make_table, 1, 0, ManualClock(0)), JobCheckpoints()
    numbers = range(3000)
    job.upsert(rows_of(numbers, 0))
    for turn in range(1, 6):
        expected = job.rows(list(rows_of(numbers, 0)))
        number = checkpoints.next_number()
        captures = [job.subtasks[0].capture(number)]
        written: list[StoredSnapshot] = []
        writing = Thread(target=lambda: written.extend(checkpoints.write(number, captures)))  # noqa: B023  # joined
        writing.start()
        changes = 0
        while writing.is_alive() or not changes:
            some = range(changes * 500 % 3000, changes * 500 % 3000 + 400)
            job.remove(list(rows_of(some, 0))[::3])
            job.upsert(rows_of(some, turn))
            changes += 1
        writing.join()
        again = Job(make_table, 1, 0, job.clock, restored(checkpoints.storage, written, 1, True))
        same(f"rows of turn {turn}", again.rows(list(rows_of(numbers, 0))), expected)
        checkpoints.complete(number, written)
        job.subtasks[0].confirm(number)


def a_checkpoint_stores_what_changed(make_table: MakeTable) -> None:
    job, checkpoints = Job(make_table, 1, 0, ManualClock(0)), JobCheckpoints()
    job.upsert(rows_of(range(40_000), 0))
    first = _checkpoint(job, checkpoints)
    size = _stored_bytes(checkpoints, first)
    previous = paths_of(first)
    for turn in range(1, 4):
        job.upsert(rows_of(range(turn * 400, turn * 400 + 400), turn))
        snapshot = _checkpoint(job, checkpoints)
        fresh = paths_of(snapshot) - previous
        changed = sum(len(checkpoints.storage.read(path)) for path in fresh)
        same("whether older files are shared", previous <= paths_of(snapshot), True)
        same(f"whether {changed} bytes are few beside {size}", 0 < changed < size / 20, True)
        previous = paths_of(snapshot)
    unchanged = _checkpoint(job, checkpoints)
    same("files of a checkpoint without a change", paths_of(unchanged), previous)


def segments_stay_few_and_small(make_table: MakeTable) -> None:
    job, checkpoints = Job(make_table, 1, 0, ManualClock(0)), JobCheckpoints()
    job.upsert(rows_of(range(20_000), 0))
    size = _stored_bytes(checkpoints, _checkpoint(job, checkpoints))
    for turn in range(1, 60):
        job.upsert(rows_of(range(turn * 300, turn * 300 + 500), turn))
        snapshot = _checkpoint(job, checkpoints)
        same("number of files", len(paths_of(snapshot)) <= 20, True)
        same("whether they are bounded by the rows", _stored_bytes(checkpoints, snapshot) < 2.5 * size, True)
    again = Job(make_table, 2, 0, job.clock, restored(checkpoints.storage, [snapshot], 2, True))
    every = list(rows_of(range(20_000), 0))
    same("all rows", again.rows(every), job.rows(every))


def _checkpoint(job: Job, checkpoints: JobCheckpoints) -> StoredSnapshot:
    number = checkpoints.next_number()
    snapshots = checkpoints.write(number, [job.subtasks[0].capture(number)])
    checkpoints.complete(number, snapshots)
    job.subtasks[0].confirm(number)
    return snapshots[0]


def _stored_bytes(checkpoints: JobCheckpoints, snapshot: StoredSnapshot) -> int:
    return sum(len(checkpoints.storage.read(path)) for path in paths_of(snapshot))


def rows_expire_are_counted_and_come_anew(make_table: MakeTable) -> None:
    job = Job(make_table, 1, 1000, ManualClock(0))
    table, over = job.subtasks[0].table, [0]

    def count(rows: int) -> None:
        over[0] += rows

    table.expired = count
    first, second = rows_of(range(100), 1), rows_of(range(50, 100), 2)
    job.upsert(first)
    job.clock.advance(999)
    same("rows before their time is over", len(job.rows(list(first))), 100)
    job.upsert(second)
    job.clock.advance(1)
    same("rows whose time is not over", job.rows(list(first)), second)
    same("rows that expired", over[0], 50)
    job.upsert(dict(list(first.items())[:10]))
    job.clock.advance(998)
    same("rows that were written again", len(job.rows(list(first))), 60)
    for _ in range(60):
        job.clock.advance(100)
        job.sweep()
    same("rows in the end, and those that expired", (job.count(), over[0]), (0, 110))
    same("whether a sweep is due", table.sweep_at, None)


def rows_come_once_after_scaling_out_and_in(make_table: MakeTable) -> None:
    job, checkpoints = Job(make_table, 1, 0, ManualClock(0)), JobCheckpoints()
    rows = rows_of(range(40_000), 0)
    job.upsert(rows)
    for parallelism in (3, 2, 1):
        number = checkpoints.next_number()
        written = checkpoints.write(number, [subtask.capture(number) for subtask in job.subtasks])
        checkpoints.complete(number, written)
        snapshots = restored(checkpoints.storage, written, parallelism, True)
        job = Job(make_table, parallelism, 0, job.clock, snapshots)
        same(f"the number of rows at parallelism {parallelism}", job.count(), len(rows))
        changed = dict.fromkeys(list(rows)[parallelism::100], next(iter(rows.values())))
        job.upsert(changed)
        rows |= changed
    same("all rows", job.rows(list(rows)), rows)


def state_of_another_table_is_refused(make_table: MakeTable) -> None:
    job, checkpoints = Job(make_table, 1, 0, ManualClock(0)), JobCheckpoints()
    job.upsert(rows_of(range(10), 0))
    storage, snapshots = checkpoints.savepoint([job.subtasks[0].capture(1)])
    [[part]] = restored(storage, snapshots, 1, False)
    for keys, values, identity in (
        (KEYS, VALUES, "other rows"),
        (KEYS[:1], VALUES, IDENTITY),
        (KEYS, VALUES[::-1], IDENTITY),
    ):
        other = make_table(keys, values, 0, identity, context_of(job.clock))
        refused("state of another table", SnapshotMismatch, "keyed table", lambda: other.restore([part]))  # noqa: B023


LONG_KEYED_TABLE_LAWS: tuple[Law, ...] = (many_long_histories_give_what_a_dict_would_give, segments_stay_few_and_small)
"""The laws that take seconds."""
KEYED_TABLE_LAWS: tuple[Law, ...] = (
    a_history_gives_what_a_dict_would_give,
    a_capture_is_of_its_moment_while_rows_change,
    a_checkpoint_stores_what_changed,
    rows_expire_are_counted_and_come_anew,
    rows_come_once_after_scaling_out_and_in,
    state_of_another_table_is_refused,
    *LONG_KEYED_TABLE_LAWS,
)
"""All laws; the name of each says what it is."""


def check_keyed_table(make_table: MakeTable, laws: Iterable[Law] = KEYED_TABLE_LAWS) -> None:
    """Check that a keyed table obeys the laws.

    Args:
        make_table: ``make_table(keys, values, ttl_ms, identity, ctx)`` makes a new, empty table of these types of
            columns, open, with the snapshots that belong to it.
        laws: some of `KEYED_TABLE_LAWS`.

    Raises:
        AssertionError: a law is broken; its name comes first.
    """
    for law in laws:
        try:
            law(make_table)
        except Exception as error:
            raise AssertionError(f"{law.__name__}: {error or type(error).__name__}") from error


__all__ = ["KEYED_TABLE_LAWS", "LONG_KEYED_TABLE_LAWS", "Law", "check_keyed_table"]
