"""Checkpoints of the RocksDB backend: which files are stored, and what is left on the disk."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from errno import ENOENT, ENOTEMPTY
from operator import itemgetter
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Event, Thread
from typing import Any

import pytest

from rayflink.operators.keyed.rolling import KeyedReduceOperator
from rayflink.operators.rescaling import rescale
from rayflink.state.descriptors import ListStateDescriptor, ValueStateDescriptor
from rayflink.state.keys.key_groups import key_group, key_group_range
from rayflink.state.keys.key_hash import key_hash
from rayflink.state.memory import HashMapBackend
from rayflink.state.rocksdb.column_family import ColumnFamily, DatabaseError, scan_rows
from rayflink.state.rocksdb.rocksdb_backend import RocksDBBackend, StateMemory
from rayflink.state.rocksdb.rocksdb_store import RocksDBMemory
from rayflink.state.rocksdb.row_layout import Namespaces
from rayflink.state.snapshots import FileSlice, InlineSnapshots, KeyedParts, StoredSnapshot, loaded, stored
from rayflink.testing import OperatorHarness
from rayflink.testing.backend_laws.checkpoints import Checkpoints, restore_into
from rayflink.testing.harness import Place
from tests.state.rocksdb.late_links import late

VALUES = ValueStateDescriptor("v")


def backend(folder: Path, name: str = "a", memory: int = 100_000) -> RocksDBBackend:
    return RocksDBBackend(range(128), 128, "uid", folder / name, StateMemory(memory))


def put(state: RocksDBBackend, numbers: range, value: str) -> None:
    table = state.table(VALUES)
    for number in numbers:
        table.put(number, f"{value}{number}" * 10)


def checkpoint(state: RocksDBBackend, checkpoints: Checkpoints, is_complete: bool = True) -> KeyedParts:
    number = checkpoints.next_number()
    state.announce(number)
    while state.prepare(lambda: True) == 0:
        pass
    parts = checkpoints.write(number, state.capture(number))
    if is_complete:
        checkpoints.complete(number)
        state.confirm(number)
    else:
        state.abort(number)
    return parts


def shared(parts: KeyedParts) -> dict[str, FileSlice]:
    (database,) = parts.databases
    assert all(name.endswith(".sst") for name in database.shared)
    files = {name: blob for name, blob in database.files.items() if name in database.shared}
    assert all(isinstance(blob, FileSlice) for blob in files.values())
    return files  # type: ignore[return-value]


@pytest.mark.spec("G19", "incremental", "H17", "G18", "copied")
def test_a_checkpoint_stores_only_files_that_no_complete_one_has(tmp_path: Path) -> None:
    state, checkpoints = backend(tmp_path, memory=64 << 20), Checkpoints()
    put(state, range(20_000), "first")
    first = shared(checkpoint(state, checkpoints))
    put(state, range(50), "second")
    second = shared(checkpoint(state, checkpoints))
    assert first.items() <= second.items(), "no compaction was due, and nothing is stored twice"
    new = sum(blob.length for name, blob in second.items() if name not in first)
    assert 0 < new < sum(blob.length for blob in first.values()) / 20, f"{new} bytes"
    assert shared(checkpoint(state, checkpoints)) == second, "nothing has changed"
    state.close()


@pytest.mark.spec("G19", "only")
def test_checkpoints_of_state_in_memory_are_whole_each_time() -> None:
    state, checkpoints = HashMapBackend(range(128), 128), Checkpoints()
    table = state.table(VALUES)
    for number in range(1_000):
        table.put(number, f"{number}" * 10)
    first, second = (checkpoints.write(number, state.capture(number)) for number in (1, 2))
    assert first.databases == second.databases == ()
    assert sorted(first.groups) == sorted(second.groups) and len(first.groups) == 128


def test_a_checkpoint_refers_to_no_file_of_one_that_failed(tmp_path: Path) -> None:
    state, checkpoints = backend(tmp_path, memory=64 << 20), Checkpoints()
    put(state, range(20_000), "first")
    first = shared(checkpoint(state, checkpoints))
    put(state, range(50), "second")
    failed = shared(checkpoint(state, checkpoints, is_complete=False))
    (missed,) = failed.keys() - first.keys()
    third = shared(checkpoint(state, checkpoints))
    assert first.items() <= third.items() and third[missed].path != failed[missed].path
    state.close()


def test_files_of_one_job_are_shared_after_a_restore_and_those_of_another_are_not(tmp_path: Path) -> None:
    state, checkpoints = backend(tmp_path, memory=64 << 20), Checkpoints()
    put(state, range(20_000), "first")
    parts = checkpoint(state, checkpoints)
    for name, reusable in (("same job", True), ("another", False)):
        again = backend(tmp_path, name, memory=64 << 20)
        restore_into(again, checkpoints, [parts], reusable)
        put(again, range(10), "second")
        number = checkpoints.next_number()
        files = shared(checkpoints.write(number, again.capture(number)))
        common = shared(parts).items() & files.items()
        assert common == (shared(parts).items() if reusable else set())
        assert again.table(VALUES).get(11) == "first11" * 10
        again.close()
    state.close()


def test_with_several_pending_a_checkpoint_needs_only_files_of_complete_ones(tmp_path: Path) -> None:
    state, checkpoints = backend(tmp_path, memory=64 << 20), Checkpoints()
    put(state, range(20_000), "first")
    state.announce(1)
    while state.prepare(lambda: True) == 0:
        pass
    for number in (1, 2):
        checkpoints.write(number, state.capture(number))
    checkpoints.complete(1)
    state.confirm(1)
    third = checkpoints.write(3, state.capture(3))
    checkpoints.complete(2)  # the first is deleted, before anybody knows what the third refers to
    checkpoints.complete(3)
    again = restore_into(backend(tmp_path, "again"), checkpoints, [third])
    assert len(again.table(VALUES)) == 20_000
    again.close()
    state.close()


def test_timers_far_and_near_come_back_in_the_order_of_time(tmp_path: Path) -> None:
    checkpoints, parts, expected = Checkpoints(), [], set()
    for subtask in range(2):
        groups = key_group_range(subtask, 2, 128)
        half = RocksDBBackend(groups, 128, "uid", tmp_path / str(subtask), StateMemory(1))
        half.table(VALUES).put(next(key for key in range(99) if group_of(key) in groups), "some")
        half.table(VALUES).flush()
        timers = half.timers("t")
        for number in range(9_000):
            if group_of(number) in groups:
                time = number if subtask else 10 * number
                timers.register(time, number)
                expected.add((time, number, None))
        assert timers.far_from_ms is not None and len(timers.near) < 2_000
        number = checkpoints.next_number()
        parts.append(checkpoints.write(number, half.capture(number)))
        half.close()
    one = restore_into(backend(tmp_path, memory=1), checkpoints, parts)
    fired = list(one.timers("t").due(1 << 40))
    assert [time for time, _, _ in fired] == sorted(time for time, _, _ in fired)
    assert len(fired) == len(expected) and set(fired) == expected
    one.close()


def group_of(key: int) -> int:
    return key_group(key_hash(key), 128)


def test_far_timers_that_were_never_written_are_in_the_checkpoint(tmp_path: Path) -> None:
    state, checkpoints = backend(tmp_path, memory=4 << 20), Checkpoints()
    timers = state.timers("t")
    for number in range(2_000):
        timers.register(number, number)
    assert len(timers.near) < 2_000 and not state.store.is_open, "too many to be near, too few to be on their way"
    again = restore_into(backend(tmp_path, "again"), checkpoints, [checkpoint(state, checkpoints)])
    assert [key for _, key, _ in again.timers("t").due(5_000)] == list(range(2_000))
    again.close()
    state.close()


def test_state_of_few_bytes_is_whole_and_needs_no_database(tmp_path: Path) -> None:
    state, checkpoints = backend(tmp_path, memory=64 << 20), Checkpoints()
    put(state, range(1000), "some")
    state.announce(1)
    assert state.prepare(lambda: True) is None
    assert not checkpoint(state, checkpoints).databases and not state.store.is_open
    state.close()


def test_an_announced_capture_has_little_left_to_write(tmp_path: Path) -> None:
    state, checkpoints = backend(tmp_path, memory=64 << 20), Checkpoints()
    put(state, range(30_000), "some")
    table: Any = state.table(VALUES)
    assert state.prepare(lambda: True) is None, "nothing was announced"
    state.announce(1)
    steps = 0
    while state.prepare(lambda: False) == 0:
        steps += 1
    assert steps > 10 and state.store.is_open and not table.has_more_dirty_than(1000)
    put(state, range(2000), "more")
    assert (state.prepare(lambda: True) or 0) > 0 and not table.has_more_dirty_than(1000)
    parts = checkpoint(state, checkpoints)
    assert parts.databases and state.prepare(lambda: True) is None, "the capture ends it"
    again = restore_into(backend(tmp_path, "again"), checkpoints, [parts])
    assert again.table(VALUES).get(7) == "more7" * 10 and len(again.table(VALUES)) == 30_000
    again.close()
    state.close()


def test_a_keyed_operator_prepares_what_was_announced_while_it_works(tmp_path: Path) -> None:
    place = Place(config={"state.backend.rocksdb.memory.fixed-per-slot": "64 mb"})
    with OperatorHarness(lambda: KeyedReduceOperator(lambda text: text, max), place=place) as harness:
        (operator,) = harness.operators
        for number in range(3_000):
            harness.process("x" * 2_000 + str(number))
        assert operator.next_upkeep_ms() is None
        operator.announce(1)  # type: ignore[attr-defined]
        assert operator.next_upkeep_ms() == 0
        harness.set_processing_time(1_000)
        store = operator.backend.store  # type: ignore[attr-defined]
        assert store.is_open and (operator.next_upkeep_ms() or 0) > 1_000, "it goes on until the capture"
        harness.snapshot()
        assert operator.next_upkeep_ms() is None


def test_keyed_operators_start_from_the_files_of_databases_at_another_parallelism() -> None:
    def make() -> KeyedReduceOperator:
        return KeyedReduceOperator(itemgetter(0), lambda a, b: (a[0], a[1] + b[1]))

    def started(subtask: int, parallelism: int, state: StoredSnapshot | None) -> OperatorHarness:
        place = Place(subtask, parallelism, config={"state.backend.rocksdb.memory.fixed-per-slot": "1 b"})
        restore = () if state is None else ({"0" * 32: (loaded(state, inline, True),)},)
        return OperatorHarness(make, place=place, restore=restore)

    inline = InlineSnapshots(7, is_savepoint=False)
    states: list[StoredSnapshot | None] = [None]
    for turn, parallelism in enumerate((1, 3, 2)):
        written: list[StoredSnapshot | None] = []
        for subtask, state in enumerate(rescale(states, parallelism, 128)):
            with started(subtask, parallelism, state) as harness:
                mine = [n for n in range(300) if group_of(n) in key_group_range(subtask, parallelism, 128)]
                for number in mine:
                    harness.process((number, 1))
                assert harness.output_values() == [(number, turn + 1) for number in mine]
                (operator,) = harness.operators
                written.append(stored(operator.snapshot_state(turn), inline))  # type: ignore[arg-type]
                assert written[-1] is not None and written[-1].databases
        states = written


def test_links_stay_until_they_are_released_though_the_backend_is_closed(tmp_path: Path) -> None:
    state = backend(tmp_path)
    put(state, range(5_000), "some")
    captures = [state.capture(number) for number in (1, 2)]
    state.close()
    state.close()
    inline = InlineSnapshots(1, is_savepoint=False)
    parts = captures[0].write(inline)
    groups = captures[1].write(InlineSnapshots()).groups
    for capture in captures:
        assert list(tmp_path.iterdir())
        capture.release()
    assert not list(tmp_path.iterdir())
    for restored in ({"databases": parts.databases}, {"groups": groups}):
        again = backend(tmp_path, "again")
        again.restore_databases(restored.get("databases", ()), inline)
        again.restore([restored.get("groups", {})])
        assert len(again.table(VALUES)) == 5_000
        again.close()
    assert not list(tmp_path.iterdir())


def test_a_capture_does_not_wait_for_the_disk_and_excludes_later_writes(tmp_path: Path) -> None:
    state, checkpoints, may_flush = backend(tmp_path, memory=64 << 20), Checkpoints(), Event()
    put(state, range(3_000), "first")
    state.table(VALUES).flush()
    flushers = state.store._memory().flushers
    for _ in range(4):
        flushers.submit(may_flush.wait, 60)
    capture = state.capture(1)
    try:
        assert state.store.is_linking
        put(state, range(2_000, 4_000), "second")
        state.table(VALUES).remove_all(range(100))
        assert len(state.table(VALUES)) == 3_900 and state.table(VALUES).get(2_500) == "second2500" * 10
        assert state.store.is_linking, "reading and writing have not waited either"
    finally:
        may_flush.set()
    parts = checkpoints.write(1, capture)
    halves = [RocksDBBackend(key_group_range(n, 2, 128), 128, "uid", tmp_path / str(n), StateMemory(1)) for n in (0, 1)]
    found: dict[Any, Any] = {}
    for half in halves:
        restore_into(half, checkpoints, [parts])
        found |= {key: value for key, _, value in half.table(VALUES).entries(half.key_groups)}
        half.close()
    assert found == {number: f"first{number}" * 10 for number in range(3_000)}
    again = restore_into(backend(tmp_path, "again"), checkpoints, [checkpoint(state, checkpoints)])
    assert len(again.table(VALUES)) == 3_900 and again.table(VALUES).get(2_500) == "second2500" * 10
    again.close()
    state.close()


@pytest.mark.parametrize("all_are_read", [True, False])
def test_a_capture_writes_no_rows_itself_and_none_is_lost_before_another_thread_has(
    tmp_path: Path, all_are_read: bool
) -> None:
    state = RocksDBBackend(range(128), 128, "uid", tmp_path / "a", late(StateMemory(64 << 20)))
    checkpoints = Checkpoints()
    put(state, range(3_000), "first")
    values = state.table(VALUES)
    values.flush()
    put(state, range(2_000, 6_000), "second")
    capture = state.capture(1)
    on_disk = dict(scan_rows(state.store.column("state/v")._rows, b""))
    assert len(on_disk) == 3_000 and b"second" not in b"".join(on_disk.values())
    assert not all_are_read or len(values) == 6_000
    for _ in range(2):
        values.rotate()
        assert values.get(1) == "first1" * 10 and values.get(5_000) == "second5000" * 10
    put(state, range(5_000, 5_010), "third")
    values.remove_all(range(10))
    assert values.get(5_000) == "third5000" * 10 and values.get(5) is None and len(values) == 5_990
    parts = checkpoints.write(1, capture)
    assert len(values) == 5_990
    again = restore_into(backend(tmp_path, "again"), checkpoints, [parts])
    found = {key: value for key, _, value in again.table(VALUES).entries(range(128))}
    assert found == {n: f"{'first' if n < 2_000 else 'second'}{n}" * 10 for n in range(6_000)}
    again.close()
    state.close()


@pytest.mark.parametrize(
    "broken", ["rocksdict.Checkpoint", "rayflink.state.rocksdb.column_family.ColumnFamily.write_now"]
)
def test_files_that_cannot_be_made_fail_the_checkpoint_and_not_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def refuse(*given: Any) -> None:
        raise DatabaseError("make links to its files", "a", "the disk is gone")

    state, checkpoints = backend(tmp_path, memory=64 << 20), Checkpoints()
    put(state, range(100), "first")
    state.table(VALUES).flush()
    put(state, range(100, 3_000), "first")
    with monkeypatch.context() as patched:
        patched.setattr(broken, refuse)
        capture = state.capture(1)
        with pytest.raises(DatabaseError, match="could not make links to its files"):
            checkpoints.write(1, capture)
    state.abort(1)
    put(state, range(10), "second")
    again = restore_into(backend(tmp_path, "again"), checkpoints, [checkpoint(state, checkpoints)])
    assert len(again.table(VALUES)) == 3_000 and again.table(VALUES).get(5) == "second5" * 10
    again.close()
    state.close()


def test_links_that_fail_wait_for_the_memtables_that_are_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, may_flush = backend(tmp_path, memory=64 << 20), Event()
    put(state, range(3_000), "first")
    state.table(VALUES).flush()
    flush = ColumnFamily.flush
    monkeypatch.setattr(ColumnFamily, "flush", lambda column: flush(column) if may_flush.wait(60) else None)
    state.store.flush_in_background(1)
    monkeypatch.setattr(ColumnFamily, "write_now", lambda column, rows: 1 / 0)
    put(state, range(10), "second")
    capture = state.capture(1)
    failed = Thread(target=state.store.drain)
    failed.start()
    failed.join(0.05)
    assert failed.is_alive(), "the database may not be closed yet"
    may_flush.set()
    with pytest.raises(ZeroDivisionError):
        capture.write(InlineSnapshots(1, is_savepoint=False))
    failed.join()
    capture.release()
    state.close()


def test_two_threads_that_meet_a_class_of_windows_give_it_one_number() -> None:
    meeting = Barrier(2, timeout=0.1)

    class Meets(list[type]):
        def __len__(self) -> int:
            with suppress(BrokenBarrierError):
                meeting.wait()
            return super().__len__()

    namespaces = Namespaces()
    namespaces._classes = Meets()
    threads = [Thread(target=namespaces.encode, args=((1, 2),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert namespaces.classes == (tuple,)


@pytest.mark.parametrize("is_released_first", [True, False])
def test_a_backend_that_is_closed_while_files_are_made_leaves_nothing(tmp_path: Path, is_released_first: bool) -> None:
    state = RocksDBBackend(range(128), 128, "uid", tmp_path / "a", late(StateMemory(100_000)))
    put(state, range(3_000), "first")
    capture = state.capture(1)
    put(state, range(10), "second")
    if is_released_first:
        capture.release()
        state.close()
    else:
        state.close()
        assert (tmp_path / "a").exists(), "it may be read yet"
        capture.release()
    assert not (tmp_path / "a").exists()


def test_a_folder_that_is_gone_already_is_no_error(tmp_path: Path) -> None:
    state = backend(tmp_path)
    put(state, range(5_000), "some")
    capture = state.capture(1)
    state.store.drain()
    put(state, range(5_000, 9_000), "more")
    shutil.rmtree(tmp_path / "a")
    state.close()
    capture.release()


def test_a_folder_in_which_files_come_and_go_is_removed_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = backend(tmp_path)
    put(state, range(5_000), "some")
    comes_and_goes, rmtree = [FileNotFoundError(ENOENT, "gone"), OSError(ENOTEMPTY, "not empty")], shutil.rmtree

    def removed(folder: Path) -> None:
        if comes_and_goes:
            raise comes_and_goes.pop()
        rmtree(folder)

    monkeypatch.setattr(shutil, "rmtree", removed)
    state.close()
    assert not list(tmp_path.iterdir())


def test_a_database_that_cannot_be_closed_gives_back_its_memory_and_its_folder(tmp_path: Path) -> None:
    class Full:
        def __init__(self, opened: Any) -> None:
            self._opened = opened

        def close(self) -> None:
            self._opened.close()
            raise Exception("IO error: No space left on device")

    closed: list[str] = []
    memory = StateMemory(100_000, on_empty=lambda: closed.append("empty"))
    state = RocksDBBackend(range(128), 128, "uid", tmp_path / "a", memory)
    put(state, range(5_000), "some")
    state.store._opened = Full(state.store._opened)
    with pytest.raises(DatabaseError, match="could not close a database"):
        state.close()
    assert closed == ["empty"] and not list(tmp_path.iterdir())


def test_a_list_that_was_restored_grows_at_its_end(tmp_path: Path) -> None:
    lists, checkpoints = ListStateDescriptor("l"), Checkpoints()
    state = backend(tmp_path, memory=1)
    for number in range(1000):
        state.table(lists).append("k", number)
    parts = checkpoint(state, checkpoints)
    again = restore_into(backend(tmp_path, "again", memory=1), checkpoints, [parts])
    for number in range(1000, 2000):
        again.table(lists).append("k", number)
    assert again.table(lists).get("k") == list(range(2000))
    again.close()
    state.close()


def test_checkpoints_in_a_row_do_not_make_the_cache_seem_heavier(tmp_path: Path) -> None:
    state, checkpoints = backend(tmp_path, memory=8 << 20), Checkpoints()
    table: Any = state.table(VALUES)
    put(state, range(1_000), "x" * 20)
    table.write_some(10)
    weight = 0.0
    for turn in range(8):
        loaded = table.load(range(1_000))
        for key in range(1_000):
            loaded[key] = f"{turn}" * 200
        table.changed(range(1_000))
        checkpoint(state, checkpoints)
        weight = weight or table.estimated_bytes
    assert table.estimated_bytes < 1.2 * weight
    state.close()


@pytest.mark.parametrize("turn", range(3))
def test_threads_of_a_slot_share_its_memory(turn: int) -> None:
    opened: list[int] = []
    closed: list[str] = []
    memory = StateMemory(8 << 20, on_open=opened.append, on_empty=lambda: closed.append("empty"))

    def use(number: int) -> RocksDBMemory:
        memory.enter()
        return memory.native()

    memory.enter()
    with ThreadPoolExecutor(8) as pool:
        shared_by = set(map(id, pool.map(use, range(32))))
        list(pool.map(lambda number: memory.leave(), range(32)))
    assert len(shared_by) == 1 and len(opened) == 1 and not closed
    memory.leave()
    assert closed == ["empty"]
