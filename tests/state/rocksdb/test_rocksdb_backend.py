"""The RocksDB backend: when it writes, what it caches in memory, and its limits."""

from pathlib import Path
from typing import Any

import pytest

from rayflink.state.backend import KeyContext
from rayflink.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from rayflink.state.errors import SerializationError
from rayflink.state.handles import StateStore
from rayflink.state.keys.key_groups import key_group_range
from rayflink.state.memory import HashMapBackend
from rayflink.state.rocksdb import dirty_rows as unwritten_rows
from rayflink.state.rocksdb.column_family import ColumnFamily, DatabaseError
from rayflink.state.rocksdb.rocksdb_backend import RocksDBBackend, StateMemory
from rayflink.testing import OperatorHarness
from rayflink.testing.backend_laws.subject import snapshot_of

ALL = range(128)


def backend(folder: Path, memory: int | StateMemory, groups: range = ALL) -> RocksDBBackend:
    shared = memory if isinstance(memory, StateMemory) else StateMemory(memory)
    return RocksDBBackend(groups, 128, "uid", folder / f"{groups.start}-{groups.stop}", shared)


def written(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the number of rows of each write from now on."""
    sizes: list[int] = []
    write = ColumnFamily.write

    def counted(self: ColumnFamily, puts: Any, deletes: Any = ()) -> None:
        put, deleted = list(puts), list(deletes)
        sizes.append(len(put) + len(deleted))
        write(self, put, deleted)

    monkeypatch.setattr(ColumnFamily, "write", counted)
    return sizes


@pytest.mark.spec("G22", "memory")
def test_state_that_fits_its_memory_never_touches_the_disk(tmp_path: Path) -> None:
    state = backend(tmp_path, 64 << 20)
    values, timers = state.table(ValueStateDescriptor("v")), state.timers("t")
    for number in range(20_000):
        values.put(number, number)
        timers.register(number, number)
    assert len(timers) == 20_000
    snapshot = snapshot_of(state)
    assert not state.store.is_open and not list(tmp_path.iterdir())
    assert sorted(snapshot) == list(ALL)
    state.close()


@pytest.mark.slow
@pytest.mark.spec("G21", "large", "G18", "local")
def test_state_of_twenty_times_its_memory_stays_within_it_and_is_all_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = StateMemory(8 << 20)
    state = backend(tmp_path, memory)
    sizes = written(monkeypatch)
    table = state.table(ValueStateDescriptor("v"))
    value = "x" * 4000
    for number in range(40_000):  # 160 MB
        table.put(number, f"{number}{value}")
        assert table.estimated_bytes <= memory.cache_bytes()
    assert memory.native().used < 1.5 * memory.native().size
    assert max(sizes) <= 8192, "no call has to wait for very many rows"
    for number in range(0, 40_000, 97):
        assert table.get(number) == f"{number}{value}"
    state.close()
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.spec("G20", "value", "V13", "value")
def test_a_value_beyond_two_gigabytes_is_refused_by_name_and_a_list_may_be_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert unwritten_rows.MAX_VALUE_BYTES == 2**31 - 1
    monkeypatch.setattr(unwritten_rows, "MAX_VALUE_BYTES", 5000)
    state = backend(tmp_path, 1)
    elements = state.table(ListStateDescriptor("elements"))
    for number in range(20_000):
        elements.append("k", number)
    assert elements.get("k") == list(range(20_000)), "a list lies in many rows"
    values = state.table(ValueStateDescriptor("notes"))
    with pytest.raises(SerializationError, match=r"bytes of state 'notes' of key 'k'.*keep at most 5000 bytes"):
        for text in ("x" * 6000, "y", "z"):
            values.put("k", text)
            values.put(text, text)
    state.close()


@pytest.mark.slow
@pytest.mark.spec("G28")
@pytest.mark.parametrize("kind", ["hashmap", "rocksdb"])
def test_keyed_state_goes_by_key_group_from_three_subtasks_to_four_and_to_two(tmp_path: Path, kind: str) -> None:
    memory = StateMemory(2_000)

    def subtasks(parallelism: int, parts: list[Any]) -> list[Any]:
        made: list[Any] = []
        for index in range(parallelism):
            groups = key_group_range(index, parallelism, 128)
            folder = tmp_path / f"{parallelism}"
            made.append(HashMapBackend(groups, 128) if kind == "hashmap" else backend(folder, memory, groups))
            made[-1].restore(parts)
        return made

    whole = HashMapBackend(ALL, 128)
    for number in range(3000):
        whole.table(ValueStateDescriptor("v")).put(number, -number)
        whole.map_table(MapStateDescriptor("m")).put(number, "x", number)
        whole.timers("t").register(number, number)
    parts = [snapshot_of(whole)]
    for parallelism in (3, 4, 2):
        made = subtasks(parallelism, parts)
        parts = [snapshot_of(one) for one in made]
        assert not set(parts[0]) & set(parts[1])
        held = [{key: value for key, _, value in one.table(ValueStateDescriptor("v")).entries(ALL)} for one in made]
        assert sum(map(len, held)) == 3000 and {k: v for one in held for k, v in one.items()} == {
            number: -number for number in range(3000)
        }
        assert all(len(one) > 3000 / parallelism / 2 for one in held), "keys are spread evenly"
        assert sum(len(one.timers("t")) for one in made) == 3000
        for one in made:
            one.close()


def test_adding_to_a_list_reads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = backend(tmp_path, 1)
    elements = state.table(ListStateDescriptor("l"))
    reads: list[Any] = []
    monkeypatch.setattr(ColumnFamily, "read", lambda self, row: reads.append(row))
    monkeypatch.setattr(ColumnFamily, "read_all", lambda self, rows: reads.append(rows))
    monkeypatch.setattr(ColumnFamily, "scan", lambda self, *given: reads.append(given))
    for number in range(500):
        for key in range(10):
            elements.append(key, number)
    assert state.store.is_open and not reads
    monkeypatch.undo()
    assert elements.get(3) == list(range(500))
    state.close()


@pytest.mark.slow
def test_many_timers_keep_few_in_memory_and_fire_in_order(tmp_path: Path) -> None:
    state = backend(tmp_path, 16 << 20)
    timers = state.timers("t")
    for number in range(300_000):
        timers.register(number * 7919 % 300_007, number)
    assert len(timers.near) <= 50_000
    times = []
    for time, _, _ in timers.due(1 << 40):
        times.append(time)
        if not len(times) % 10_000:
            assert len(timers.near) <= 60_000
    assert len(times) == 300_000 and times == sorted(times)
    assert timers.next_timestamp() is None
    state.close()


def test_a_window_that_ends_within_the_cache_is_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = StateMemory(1 << 20)
    state = backend(tmp_path, memory)
    table = state.table(ValueStateDescriptor("v"))
    for number in range(20_000):
        table.put(number, "x" * 100)  # older state, which fills the cache and the disk
    sizes = written(monkeypatch)
    for window in range(300):
        table.put("k", window, (window, window + 1))
        assert table.get("k", (window, window + 1)) == window
        table.remove_all(["k"], (window, window + 1))
    table.flush()
    assert sum(sizes) < 10_000, "what is left of the older state, and none of the windows'"
    assert table.get("k", (7, 8)) is None
    state.close()


def test_a_folder_that_cannot_be_made_names_the_option(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    state = RocksDBBackend(ALL, 128, "uid", tmp_path / "file" / "db", StateMemory(1))
    table = state.table(ValueStateDescriptor("v"))
    with pytest.raises(DatabaseError, match=r"could not open a database in .*localdir to another one"):
        for number in range(100):
            table.put(number, number)
    state.close()


def test_the_memory_of_a_slot_is_shared_and_given_back(tmp_path: Path) -> None:
    taken: list[str] = []
    memory = StateMemory(
        8 << 20, on_open=lambda size: taken.append(f"open {size}"), on_empty=lambda: taken.append("empty")
    )
    first, second = (backend(tmp_path / str(i), memory) for i in range(2))
    assert memory.cache_bytes() == 2 << 20
    for state in (first, second):
        table = state.table(ValueStateDescriptor("v"))
        for number in range(20_000):
            table.put(number, "x" * 100)
        assert state.store.is_open
    assert taken == [f"open {4 << 20}"]
    first.close()
    assert memory.cache_bytes() == 4 << 20
    second.close()
    assert taken[-1] == "empty"


@pytest.mark.slow
def test_handles_of_several_states_share_one_budget(tmp_path: Path) -> None:
    state, context = backend(tmp_path, 200_000), KeyContext()
    store = StateStore(state, context, "uid")
    value = store.get_state(ValueStateDescriptor("v"))
    listed = store.get_list_state(ListStateDescriptor("l"))
    mapped = store.get_map_state(MapStateDescriptor("m"))
    for turn in range(3):
        for key in range(3000):
            context.key = key
            assert value.value() == (turn or None)
            value.update(turn + 1)
            listed.add(turn)
            mapped.put(turn, key)
    for key in range(0, 3000, 11):
        context.key = key
        assert (value.value(), list(listed), dict(mapped.items())) == (3, [0, 1, 2], dict.fromkeys(range(3), key))
    state.close()


def test_an_operator_alone_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rayflink.operators.keyed.rolling import KeyedReduceOperator
    from rayflink.testing.harness import Place

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    place = Place(config={"state.backend.rocksdb.memory.fixed-per-slot": "1 b"})
    with OperatorHarness(lambda: KeyedReduceOperator(abs, max), place=place) as harness:
        for number in range(10):
            harness.process(number)
        assert list(tmp_path.iterdir())
    assert not list(tmp_path.iterdir())
