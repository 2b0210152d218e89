import functools
import operator
from typing import Any

import pytest

from rayflink.common.state_ttl import StateTtlConfig
from rayflink.common.time import Duration, Time
from rayflink.common.typeinfo import Types
from rayflink.state.backend import KeyContext
from rayflink.state.clock import ManualClock
from rayflink.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from rayflink.state.errors import SnapshotMismatch, StateError
from rayflink.state.handles import StateStore
from rayflink.state.memory import HashMapBackend
from tests.operators.write_back import WriteBackBackend
from tests.state.test_backend_handles import Gather

BACKENDS = pytest.mark.parametrize("make", [HashMapBackend, WriteBackBackend])


def kept(ttl_ms: int = 10) -> StateTtlConfig.Builder:
    """A time to live with nothing that cleans up but reading."""
    return StateTtlConfig.new_builder(Time.milliseconds(ttl_ms)).disable_cleanup_in_background()


class World:
    """A backend, a clock that is moved by hand, and the handles of one key."""

    def __init__(self, make: Any, config: StateTtlConfig, snapshot: Any = None, clock: Any = None) -> None:
        self.clock = clock or ManualClock(100)
        self.config, self.make = config, make
        self.backend = make(range(128), 128)
        self.context = KeyContext(self.clock.now_ms)
        self.context.key = "k"
        self.store = StateStore(self.backend, self.context, "uid-1", True)
        if snapshot is not None:
            self.backend.restore([snapshot])

    def expiring(self, descriptor: StateDescriptor) -> StateDescriptor:
        descriptor.enable_time_to_live(self.config)
        return descriptor

    def value(self) -> Any:
        return self.store.get_state(self.expiring(ValueStateDescriptor("v")))

    def list(self) -> Any:
        return self.store.get_list_state(self.expiring(ListStateDescriptor("l")))

    def map(self) -> Any:
        return self.store.get_map_state(self.expiring(MapStateDescriptor("m")))

    def stored(self, name: str) -> int:
        """Keys that the table of a state has an entry for."""
        return len(self.backend._tables[name][1])

    def restored(self) -> "World":
        return World(self.make, self.config, self.backend.snapshot(), self.clock)


@BACKENDS
@pytest.mark.spec("G10", "G11")
def test_a_value_expires_when_its_time_has_passed_since_it_was_written_and_a_read_removes_it(make: Any) -> None:
    world = World(make, kept().build())
    value = world.value()
    value.update(1)
    world.clock.advance(9)
    assert value.value() == 1
    world.clock.advance(1)
    assert world.stored("v") == 1
    assert value.value() is None
    assert world.stored("v") == 0
    value.update(2)
    world.clock.advance(9)
    value.update(3)
    world.clock.advance(9)
    assert value.value() == 3


@BACKENDS
@pytest.mark.spec("G10")
def test_reading_counts_as_access_only_where_the_update_type_says_so(make: Any) -> None:
    for builder, alive in ((kept(), False), (kept().update_ttl_on_read_and_write(), True)):
        world = World(make, builder.build())
        value, listed, mapped = world.value(), world.list(), world.map()
        value.update(1)
        listed.add(1)
        mapped.put("x", 1)
        world.clock.advance(6)
        assert (value.value(), list(listed), mapped.get("x")) == (1, [1], 1)
        world.clock.advance(6)
        assert (value.value() == 1, list(listed) == [1], mapped.contains("x")) == (alive,) * 3


@BACKENDS
@pytest.mark.spec("G10")
def test_an_expired_value_is_given_once_more_where_it_is_visible_until_cleaned_up(make: Any) -> None:
    world = World(make, kept().return_expired_if_not_cleaned_up().build())
    value, listed, mapped = world.value(), world.list(), world.map()
    value.update(1)
    listed.add(1)
    mapped.put("x", 1)
    world.clock.advance(6)
    listed.add(2)
    mapped.put("y", 2)
    world.clock.advance(6)
    assert (value.value(), value.value()) == (1, None)
    assert (mapped.get("x"), mapped.get("x"), mapped.get("y")) == (1, None, 2)
    assert (list(listed), list(listed)) == ([1, 2], [1, 2]), "a list keeps its elements until all have expired"
    world.clock.advance(6)
    assert (list(listed), list(listed)) == ([1, 2], [])


@BACKENDS
@pytest.mark.spec("G10")
def test_elements_of_lists_and_values_of_maps_expire_one_by_one(make: Any) -> None:
    world = World(make, kept().build())
    listed, mapped = world.list(), world.map()
    for number in range(3):
        listed.add(number)
        mapped.put(number, number)
        world.clock.advance(4)
    assert list(listed) == [1, 2]
    assert list(mapped.items()) == [(1, 1), (2, 2)] and not mapped.contains(0)
    listed.update([7, *listed])
    world.clock.advance(6)
    assert list(listed) == [7, 1, 2] and list(mapped.keys()) == []
    assert mapped.is_empty() and world.stored("m") == 0


@BACKENDS
def test_reducing_and_aggregating_state_begin_anew_after_they_expired(make: Any) -> None:
    world = World(make, kept().build())
    total = world.store.get_reducing_state(world.expiring(ReducingStateDescriptor("r", lambda a, b: a + b)))
    gathered = world.store.get_aggregating_state(world.expiring(AggregatingStateDescriptor("a", Gather())))
    for step_ms in (9, 9, 10, 0):
        total.add(1)
        gathered.add(step_ms)
        world.clock.advance(step_ms)
    assert (total.get(), gathered.get()) == (1, [0]), "each add is an access; after 10 ms without one all is gone"


@BACKENDS
def test_the_last_access_is_in_the_snapshot_and_a_restored_value_is_as_old_as_it_was(make: Any) -> None:
    world = World(make, kept().build())
    world.value().update(1)
    world.list().add(1)
    world.map().put("x", 1)
    world.clock.advance(6)
    again = world.restored()
    assert (again.value().value(), list(again.list()), again.map().get("x")) == (1, [1], 1)
    again.clock.advance(4)
    assert (again.value().value(), list(again.list()), again.map().get("x")) == (None, [], None)


@BACKENDS
@pytest.mark.spec("G12")
def test_a_full_snapshot_leaves_out_what_expired_and_the_state_itself_keeps_it(make: Any) -> None:
    whole, cleaned = kept().return_expired_if_not_cleaned_up(), kept().return_expired_if_not_cleaned_up()
    for builder, left in ((whole, [[1, 2], 1, [1, 2]]), (cleaned.cleanup_full_snapshot(), [[2], None, [2]])):
        world = World(make, builder.build())
        listed, value, mapped = world.list(), world.value(), world.map()
        value.update(1)
        for number in (1, 2):
            listed.add(number)
            mapped.put(number, number)
            world.clock.advance(6)
        again = world.restored()
        assert [list(again.list()), again.value().value(), list(again.map().values())] == left
        assert [list(listed), value.value(), list(mapped.values())] == [[1, 2], 1, [1, 2]]


@BACKENDS
@pytest.mark.spec("G13")
@pytest.mark.parametrize("size", [1, 3])
def test_each_access_looks_at_some_other_keys_and_forgets_what_expired_there(make: Any, size: int) -> None:
    world = World(make, kept().cleanup_incrementally(size, False).build())
    handles = {"v": world.value(), "l": world.list(), "m": world.map()}
    for number in range(6):
        world.context.key = number
        handles["v"].update(1)
        handles["l"].add(1)
        handles["m"].put("x", 1)
    world.clock.advance(10)
    world.context.key = "another"
    accesses = 0
    while any(world.stored(name) for name in handles):
        accesses += 1
        for handle in handles.values():
            handle.clear()
        assert accesses <= 6 / size + 6, "a walk that was under way, and one over the six keys"
    assert accesses >= 6 / size


def test_without_a_time_to_live_nothing_is_wrapped_and_a_disabled_one_changes_nothing() -> None:
    disabled = kept().set_update_type(StateTtlConfig.UpdateType.Disabled).build()
    assert not disabled.is_enabled()
    world = World(HashMapBackend, disabled)
    world.value().update(5)
    world.clock.advance(1_000)
    assert world.value().value() == 5
    assert list(world.backend._tables["v"][1].rows()) == [("k", None, 5)]


def test_a_snapshot_of_state_that_lives_for_ever_does_not_fit_state_that_expires() -> None:
    written = World(HashMapBackend, kept().set_update_type(StateTtlConfig.UpdateType.Disabled).build())
    written.value().update(1)
    restored = World(HashMapBackend, kept().build(), written.backend.snapshot())
    with pytest.raises(SnapshotMismatch, match="'v'.*holds value state, job declares expiring value state"):
        restored.value()


def test_wrong_times_to_live_are_refused_with_the_remedy() -> None:
    with pytest.raises(ValueError, match="above 0 ms, found 0 ms"):
        StateTtlConfig.new_builder(Time.milliseconds(0)).build()
    with pytest.raises(ValueError, match="1 key or more.*found 0"):
        kept().cleanup_incrementally(0, False)
    with pytest.raises(TypeError, match="a StateTtlConfig is wanted, found 5; write for example"):
        ValueStateDescriptor("v").enable_time_to_live(5)  # type: ignore[arg-type]
    store = StateStore(HashMapBackend(range(128), 128), KeyContext())
    descriptor = ValueStateDescriptor("v")
    descriptor.enable_time_to_live(kept().build())
    handle = store.get_state(descriptor)
    store._context.key = "k"
    with pytest.raises(StateError, match="where there is no clock"):
        handle.update(1)


def test_a_config_says_what_it_was_built_from() -> None:
    config = (
        StateTtlConfig.new_builder(Duration.of_seconds(5)).set_ttl(Duration.of_seconds(6))
        .update_ttl_on_create_and_write().never_return_expired().use_processing_time()
        .cleanup_in_rocksdb_compact_filter(20, Duration.of_days(2)).build()
    )  # fmt: skip
    cleanup = config.get_cleanup_strategies()
    assert config.get_ttl() == Duration.of_seconds(6)
    assert config.get_update_type() is StateTtlConfig.UpdateType.OnCreateAndWrite
    assert config.get_state_visibility() is StateTtlConfig.StateVisibility.NeverReturnExpired
    assert config.get_ttl_time_characteristic() is StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
    assert cleanup.is_cleanup_in_background() and not cleanup.in_full_snapshot()
    incremental = cleanup.get_incremental_cleanup_strategy()
    rocksdb = cleanup.get_rocksdb_compact_filter_cleanup_strategy()
    assert incremental is not None and rocksdb is not None
    assert (incremental.get_cleanup_size(), incremental.run_cleanup_for_every_record()) == (5, False)
    assert rocksdb.get_query_time_after_num_entries() == 20
    assert rocksdb.get_periodic_compaction_time() == Duration.of_days(2)
    assert kept().build().get_cleanup_strategies().get_incremental_cleanup_strategy() is None
    assert kept().build().get_cleanup_strategies().get_rocksdb_compact_filter_cleanup_strategy() is None
    assert "UpdateType.OnCreateAndWrite" in repr(config) and "ttl=PT6S" in repr(config)


@BACKENDS
def test_a_float_in_state_keeps_the_precision_it_has_in_python(make: Any) -> None:
    world = World(make, kept().build())
    states = world.store
    states.get_state(ValueStateDescriptor("f", Types.FLOAT())).update(0.1)
    assert states.get_state(ValueStateDescriptor("f", Types.FLOAT())).value() == 0.1
    pair = states.get_state(ValueStateDescriptor("t", Types.TUPLE([Types.STRING(), Types.FLOAT()])))
    pair.update(("a", 0.1))
    assert pair.value() == ("a", 0.1)
    listed = states.get_list_state(ListStateDescriptor("fs", Types.LIST(Types.FLOAT())))
    listed.add([0.1, 1])
    assert list(listed) == [[0.1, 1.0]] and type(next(listed.get())[1]) is float
    total = states.get_reducing_state(ReducingStateDescriptor("fr", lambda a, b: a + b, Types.FLOAT()))
    for _ in range(10):
        total.add(0.1)
    assert total.get() == functools.reduce(operator.add, [0.1] * 10)  # sum() is more exact from Python 3.12 on


@pytest.mark.spec("G34")
def test_descriptors_give_their_functions_and_handles_absorb_other_namespaces() -> None:
    world = World(HashMapBackend, kept().build())

    def add(a: int, b: int) -> int:
        return a + b

    function = Gather()
    function.merge = lambda a, b: a + b  # type: ignore[attr-defined]
    reducing, aggregating = ReducingStateDescriptor("r", add), AggregatingStateDescriptor("a", function)
    assert reducing.get_reduce_function() is add and aggregating.get_agg_function() is function
    assert ValueStateDescriptor("v").get_name() == "v"
    total, gathered = world.store.get_reducing_state(reducing), world.store.get_aggregating_state(aggregating)
    listed = world.store.get_list_state(ListStateDescriptor("l"))
    for namespace in (1, 2, 3):
        world.context.namespace = namespace
        total.add(namespace)
        gathered.add(namespace)
        listed.add(namespace)
    world.context.namespace = "mine"
    for handle in (total, gathered, listed):
        handle.absorb(3, [1, 2, "empty"])
    assert world.context.namespace == "mine"
    world.context.namespace = 3
    assert (total.get(), gathered.get(), list(listed)) == (6, [3, 1, 2], [3, 1, 2])
    world.context.namespace = 1
    assert (total.get(), gathered.get(), list(listed)) == (None, None, [])
