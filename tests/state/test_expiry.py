import functools
import operator
from typing import Any

import pytest

from rayflink.common.functions.state_ttl import StateTtlConfig
from rayflink.common.time import Duration, Time
from rayflink.common.typeinfo import Types
from rayflink.state.backend import KeyContext
from rayflink.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from rayflink.state.errors import SnapshotMismatch, StateError
from rayflink.state.handles import StateStore
from rayflink.state.memory import HashMapBackend
from rayflink.testing.backend_laws.expiry import World, ttl
from rayflink.testing.backend_laws.samples import Gather, add
from rayflink.testing.backend_laws.subject import Subject, snapshot_of


def world(config: StateTtlConfig, *snapshots: Any) -> World:
    return World(Subject(HashMapBackend), config, *snapshots)


def test_without_a_time_to_live_nothing_is_wrapped_and_a_disabled_one_is_none() -> None:
    disabled = ttl().set_update_type(StateTtlConfig.UpdateType.Disabled).build()
    assert not disabled.is_enabled()
    one = world(disabled)
    one.value().update(5)
    one.clock.advance(1_000)
    assert one.value().value() == 5
    assert list(one.backend.table(ValueStateDescriptor("v")).entries(range(128))) == [("k", None, 5)]


def test_a_snapshot_of_state_that_lives_for_ever_does_not_fit_state_that_expires() -> None:
    written = world(ttl().set_update_type(StateTtlConfig.UpdateType.Disabled).build())
    written.value().update(1)
    restored = world(ttl().build(), snapshot_of(written.backend))
    with pytest.raises(SnapshotMismatch, match="'v'.*holds value state, job declares expiring value state"):
        restored.value()


def test_wrong_times_to_live_are_refused_with_the_remedy() -> None:
    with pytest.raises(ValueError, match="above 0 ms, found 0 ms"):
        StateTtlConfig.new_builder(Time.milliseconds(0)).build()
    with pytest.raises(ValueError, match="1 key or more.*found 0"):
        ttl().cleanup_incrementally(0, False)
    with pytest.raises(TypeError, match="a StateTtlConfig is wanted, found 5; write for example"):
        ValueStateDescriptor("v").enable_time_to_live(5)  # type: ignore[arg-type]
    store = StateStore(HashMapBackend(range(128), 128), KeyContext())
    descriptor = ValueStateDescriptor("v")
    descriptor.enable_time_to_live(ttl().build())
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
    assert ttl().build().get_cleanup_strategies().get_incremental_cleanup_strategy() is None
    assert ttl().build().get_cleanup_strategies().get_rocksdb_compact_filter_cleanup_strategy() is None
    assert "UpdateType.OnCreateAndWrite" in repr(config) and "ttl=PT6S" in repr(config)


def test_a_float_in_state_keeps_the_precision_it_has_in_python() -> None:
    states, _ = Subject(HashMapBackend).store()
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


def test_descriptors_give_their_functions() -> None:
    function = Gather()
    reducing, aggregating = ReducingStateDescriptor("r", add), AggregatingStateDescriptor("a", function)
    assert reducing.get_reduce_function() is add and aggregating.get_agg_function() is function
    assert ValueStateDescriptor("v").get_name() == "v"
