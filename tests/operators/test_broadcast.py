"""Broadcast process operators: state that a broadcast stream writes alike in every subtask, and the other reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from rayflink.common.functions.broadcast_functions import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedStateFunction,
)
from rayflink.common.functions.checkpointed_function import CheckpointedFunction
from rayflink.common.managed_memory import Allowance, MemoryManager
from rayflink.common.output_tag import OutputTag
from rayflink.operators.base import UserCodeError
from rayflink.operators.broadcast import BroadcastProcessOperator
from rayflink.operators.broadcast_first import BroadcastFirst
from rayflink.operators.keyed.keyed_backends import hashmap_backend
from rayflink.operators.keyed.keyed_broadcast import KeyedBroadcastProcessOperator
from rayflink.operators.keyed.sorted_input import SortedInput
from rayflink.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from rayflink.state.rocksdb.rocksdb_backend import RocksDBBackend, StateMemory
from rayflink.testing import (
    HARDSHIPS,
    MAX_WATERMARK,
    TO_ALL,
    OperatorHarness,
    Place,
    at,
    end,
    in2,
    rec,
    rescaled_snapshots,
    side,
    verify,
    wm,
)
from rayflink.testing.elements import row_batch
from tests.operators.write_back import write_back_backend

RULES = MapStateDescriptor("rules")
OTHER = MapStateDescriptor("other")
REFUSED = OutputTag("refused")
NOT_AS_A_JOB = [name for name in HARDSHIPS if name.startswith("as a")]


def first(value: Any) -> Any:
    return value[0]


class Rated(BroadcastProcessFunction):
    """(currency, amount) in the currency of the rates; of an unknown currency to a side output."""

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        rate = ctx.get_broadcast_state(RULES).get(value[0])
        if rate is None:
            yield REFUSED, value
        else:
            yield value[0], value[1] * rate, ctx.timestamp(), ctx.current_watermark(), ctx.current_processing_time()

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        ctx.get_broadcast_state(RULES).put(*value)


RATED_GIVEN = [
    rec(("usd", 5), 1), in2(rec(("usd", 2), 2)), in2(rec(("eur", 1), 3)), rec(("usd", 5), 4), wm(4), in2(wm(3)),
    rec(("eur", 7), 6), at(50), in2(rec(("usd", 3), 7)), rec(("usd", 5), 8), rec(("yen", 1), 9), in2(wm(9)), wm(9),
]  # fmt: skip
RATED_THEN = [
    side(REFUSED, ("usd", 5), 1), rec(("usd", 10, 4, -(2**63), 0), 4), wm(3), rec(("eur", 7, 6, 3, 0), 6),
    rec(("usd", 15, 8, 3, 50), 8), side(REFUSED, ("yen", 1), 9), wm(4), wm(9),
]  # fmt: skip


@pytest.mark.spec("G37", "G04", "same")
def test_a_large_stream_is_joined_with_a_small_broadcast_one_under_every_hardship() -> None:
    plain = [rec((c, n)) for c, n in zip("abcabc", range(6), strict=True)]
    given = [in2(rec(("a", 1))), in2(rec(("b", 10))), *plain, in2(rec(("c", 5))), in2(rec(("a", 2))), *plain]

    class Joined(Rated):
        def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
            state = ctx.get_broadcast_state(RULES)
            yield value, state.get(value[0]), sorted(state.items())

    def joined(rules: dict[str, int]) -> list[Any]:
        return [rec((value, rules.get(value[0]), sorted(rules.items()))) for value in (step.value for step in plain)]

    then = [*joined({"a": 1, "b": 10}), *joined({"a": 2, "b": 10, "c": 5})]
    verify(lambda: BroadcastProcessOperator(Joined(), RULES), given, then, key=(first, TO_ALL))


def test_contexts_know_times_and_side_outputs_keep_the_timestamp() -> None:
    without = [
        "restored after each step",
        "restored after each record",
        *NOT_AS_A_JOB,
    ]  # the watermark is no state here
    verify(lambda: BroadcastProcessOperator(Rated(), RULES), RATED_GIVEN, RATED_THEN, without=without)
    without_watermarks = [step for step in RATED_GIVEN if "wm" not in repr(step) and "at" not in repr(step)]
    verify(lambda: BroadcastProcessOperator(Rated(), RULES), without_watermarks, key=(first, TO_ALL))


def test_a_pair_of_functions_will_do_and_the_broadcast_side_gives_records_too() -> None:
    def look(value: Any, ctx: Any) -> Any:
        yield value, list(ctx.get_broadcast_state(RULES))

    def keep(value: Any, ctx: Any) -> Any:
        state = ctx.get_broadcast_state(RULES)
        state[value] = True
        yield "kept", value
        yield REFUSED, value

    given = [rec(1), in2(rec("x", 5)), rec(2)]
    then = [rec((1, [])), rec(("kept", "x"), 5), side(REFUSED, "x", 5), rec((2, ["x"]))]
    verify(lambda: BroadcastProcessOperator((look, keep), RULES), given, then)


class Limits(KeyedBroadcastProcessFunction):
    """Sums amounts by key; tells when the sum passes the limit of the broadcast rules, and what it is at a timer."""

    def open(self, runtime_context: Any) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total"))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        self.total.update((self.total.value() or 0) + value[1])
        ctx.timer_service().register_event_time_timer(100)
        if self.total.value() > (ctx.get_broadcast_state(RULES).get("limit") or 10**9):
            yield ctx.get_current_key(), self.total.value(), ctx.timestamp(), ctx.current_watermark()

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        ctx.get_broadcast_state(RULES).put("limit", value)
        over: list[Any] = []

        def look(key: Any, total: Any) -> None:
            if total.value() > value:
                over.append((key, total.value()))
                total.update(0)

        ctx.apply_to_keyed_state(ValueStateDescriptor("total"), look)
        for key, total in sorted(over):
            yield "reset", key, total, ctx.timestamp(), ctx.current_watermark()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        limit = ctx.get_broadcast_state(RULES).get("limit")
        yield "timer", ctx.get_current_key(), self.total.value(), limit, ctx.time_domain().name, ctx.current_watermark()


LIMITS_GIVEN = [
    rec(("a", 5), 1), rec(("b", 9), 2), in2(rec(7, 3)), rec(("a", 3), 4), rec(("c", 1), 5), wm(5), in2(wm(5)),
    in2(rec(2, 6)), rec(("b", 3), 7), wm(100), in2(wm(101)), rec(("c", 1), 101), rec(("c", 1), 102),
]  # fmt: skip
LIMITS_THEN = [
    rec(("reset", "b", 9, 3, -(2**63)), 3), rec(("a", 8, 4, -(2**63)), 4), wm(5), rec(("reset", "a", 8, 6, 5), 6),
    rec(("b", 3, 7, 5), 7), rec(("timer", "a", 0, 2, "EVENT_TIME", 100), 100),
    rec(("timer", "b", 3, 2, "EVENT_TIME", 100), 100), rec(("timer", "c", 1, 2, "EVENT_TIME", 100), 100), wm(100),
    rec(("c", 3, 102, 100), 102),
]  # fmt: skip


def limits() -> KeyedBroadcastProcessOperator:
    return KeyedBroadcastProcessOperator(first, Limits(), RULES)


def on_write_back(make: Callable[[], Any]) -> Callable[[], Any]:
    def changed() -> Any:
        operator = make()
        operator.create_backend = write_back_backend
        return operator

    return changed


@pytest.mark.spec("G37")
def test_rules_steer_a_keyed_stream_under_every_hardship() -> None:
    verify(limits, LIMITS_GIVEN, LIMITS_THEN)
    verify(on_write_back(limits), LIMITS_GIVEN, LIMITS_THEN, without=NOT_AS_A_JOB)


def test_both_sides_of_a_keyed_function_and_its_timers_give_to_side_outputs() -> None:
    class Sides(Limits):
        def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
            ctx.timer_service().register_event_time_timer(9)
            ctx.timer_service().register_event_time_timer(10)
            ctx.timer_service().delete_event_time_timer(9)
            yield REFUSED, value

        def process_broadcast_element(self, value: Any, ctx: Any) -> Iterable[Any]:
            yield REFUSED, ("rule", value)
            yield "rule", ctx.timestamp(), ctx.current_processing_time()

        def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
            yield REFUSED, ("timer", ctx.get_current_key(), ctx.timestamp())

    given = [rec(("a", 1), 1), in2(rec(7, 3)), in2(rec(8)), wm(10), in2(wm(10))]
    then = [
        side(REFUSED, ("a", 1), 1), side(REFUSED, ("rule", 7), 3), rec(("rule", 3, 0), 3), side(REFUSED, ("rule", 8)),
        rec(("rule", None, 0)), side(REFUSED, ("timer", "a", 10), 10), wm(10),
    ]  # fmt: skip
    parallel = [name for name in HARDSHIPS if name.startswith("three")]
    make = lambda: KeyedBroadcastProcessOperator(first, Sides(), RULES)  # noqa: E731
    verify(make, given, then, without=[*parallel, *NOT_AS_A_JOB])


def test_timers_of_processing_time_fire_on_the_keyed_side() -> None:
    class Timed(Limits):
        def process_element(self, value: Any, ctx: Any) -> None:
            ctx.timer_service().register_processing_time_timer(ctx.current_processing_time() + 10)
            self.total.update(value[1])

    given = [at(5), rec(("a", 1)), rec(("b", 2)), in2(rec(9)), at(15)]
    then = [rec(("timer", key, n, 9, "PROCESSING_TIME", -(2**63))) for key, n in (("a", 1), ("b", 2))]
    verify(lambda: KeyedBroadcastProcessOperator(first, Timed(), RULES), given, then)


class AllKinds(KeyedBroadcastProcessFunction):
    """Keeps each value in state of every kind; a broadcast record lists what each key has."""

    kinds = (
        ListStateDescriptor("list"),
        MapStateDescriptor("map"),
        ReducingStateDescriptor("sum", lambda a, b: a + b),
    )

    def open(self, runtime_context: Any) -> None:
        elements, entries, total = self.kinds
        self.elements = runtime_context.get_list_state(elements)
        self.entries = runtime_context.get_map_state(entries)
        self.total = runtime_context.get_reducing_state(total)

    def process_element(self, value: Any, ctx: Any) -> None:
        self.elements.add(value[1])
        self.entries.put(value[1], "x")
        self.total.add(value[1])

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        found: list[Any] = []
        elements, entries, total = self.kinds
        ctx.apply_to_keyed_state(elements, lambda key, state: found.append((key, sorted(state))))
        ctx.apply_to_keyed_state(entries, lambda key, state: found.append((key, sorted(state.items()))))

        class Look(KeyedStateFunction):
            def process(self, key: Any, state: Any) -> None:
                found.append((key, state.get()))
                state.clear()

        ctx.apply_to_keyed_state(total, Look())
        yield from sorted(found, key=repr)


def test_a_broadcast_record_reaches_every_key_of_states_of_every_kind() -> None:
    given = [rec(("a", 1)), rec(("b", 2)), rec(("a", 3)), in2(rec("?")), rec(("b", 4)), in2(rec("?"))]
    then = [
        ("a", 4), ("a", [(1, "x"), (3, "x")]), ("a", [1, 3]), ("b", 2), ("b", [(2, "x")]), ("b", [2]),
        ("a", [(1, "x"), (3, "x")]), ("a", [1, 3]), ("b", 4), ("b", [(2, "x"), (4, "x")]), ("b", [2, 4]),
    ]  # fmt: skip
    make = lambda: KeyedBroadcastProcessOperator(first, AllKinds(), RULES)  # noqa: E731
    verify(make, given, list(map(rec, then)))
    verify(on_write_back(make), given, list(map(rec, then)), without=NOT_AS_A_JOB)


class Emptied(KeyedBroadcastProcessFunction):
    """Keeps a value and a map a key, of some keys nothing any more; a broadcast record lists the keys of each state."""

    value, entries = ValueStateDescriptor("value"), MapStateDescriptor("entries")

    def open(self, runtime_context: Any) -> None:
        self.kept = runtime_context.get_state(self.value)
        self.map = runtime_context.get_map_state(self.entries)

    def process_element(self, value: Any, ctx: Any) -> None:
        if value[1] is None:
            self.kept.clear()
            self.map.remove("k")
        else:
            self.kept.update(value[1])
            self.map.put("k", value[1])

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        for descriptor in (self.value, self.entries):
            found: list[Any] = []
            ctx.apply_to_keyed_state(descriptor, lambda key, state, found=found: found.append(key))
            yield sorted(found)


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_each_key_that_has_state_is_met_once_and_no_other(backend: str, tmp_path: Any) -> None:
    def operator() -> Any:
        made = KeyedBroadcastProcessOperator(first, Emptied(), RULES)
        if backend == "rocksdb":  # with so little memory that nearly all is on disk
            made.create_backend = lambda ctx: RocksDBBackend(
                range(128), 128, ctx.operator_id, tmp_path / "state", StateMemory(20_000)
            )
        else:
            made.create_backend = hashmap_backend
        return made

    keys = [f"key {n}" for n in range(300)]
    with OperatorHarness(operator, inputs=2) as harness:
        for part in (keys[:200], keys[100:]):
            harness.process_batch(row_batch([rec((key, "x" * 200)) for key in part]))
        harness.process_batch(row_batch([rec((key, None)) for key in keys[::3]]))
        harness.process("?", input_index=1)
        left = sorted(set(keys) - set(keys[::3]))
        assert harness.output_values() == [left, left]


def test_the_broadcast_side_has_no_current_key() -> None:
    class Wrong(Limits):
        def process_broadcast_element(self, value: Any, ctx: Any) -> None:
            ctx.apply_to_keyed_state(ValueStateDescriptor("total"), lambda key, state: None)
            self.total.value()

    with OperatorHarness(lambda: KeyedBroadcastProcessOperator(first, Wrong(), RULES), inputs=2) as harness:
        harness.process(("a", 1))
        with pytest.raises(UserCodeError, match=r"process_broadcast_element on record 5.*without a current key"):
            harness.process(5, input_index=1)


def snapshots_of(make: Callable[[], Any], parallelism: int) -> list[Any]:
    """Of that many subtasks that all got the same broadcast records, and each its part of the others."""
    taken = []
    for index in range(parallelism):
        with OperatorHarness(make, 2, Place(index, parallelism)) as harness:
            for rate in (("usd", 2), ("eur", 3)):
                harness.process(rate, input_index=1)
            taken.append(harness.snapshot())
    return taken


@pytest.mark.spec("G31", "X28")
@pytest.mark.parametrize("parallelism", [1, 2, 3, 5])
def test_every_new_subtask_gets_one_copy_and_a_smaller_job_loses_nothing(parallelism: int) -> None:
    make = lambda: BroadcastProcessOperator(Rated(), RULES)  # noqa: E731
    for index, snapshot in enumerate(rescaled_snapshots(snapshots_of(make, 3), parallelism)):
        with OperatorHarness(make, 2, Place(index, parallelism), (snapshot,)) as harness:
            harness.process(("usd", 5))
            harness.process(("eur", 5))
            assert [value[:2] for value in harness.output_values()] == [("usd", 10), ("eur", 15)]
            [(again,)] = harness.snapshot().values()
            assert len(again.lists["user/rules"][1]) == 2, "one copy, not one a former subtask"


class Counting(CheckpointedFunction):
    """Counts the records of the subtask in list state."""

    def initialize_state(self, context: Any) -> None:
        self.kept = context.get_operator_state_store().get_list_state(ListStateDescriptor("count"))
        self.count = sum(self.kept.get())

    def snapshot_state(self, context: Any) -> None:
        self.kept.update([self.count])

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        self.count += 1
        yield self.count, dict(ctx.get_broadcast_state(RULES).items())

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        self.count += 1
        ctx.get_broadcast_state(RULES).put(value, self.count)


def test_broadcast_functions_keep_list_state_beside_broadcast_state() -> None:
    class Plain(Counting, BroadcastProcessFunction):
        pass

    class Keyed(Counting, KeyedBroadcastProcessFunction):
        pass

    given = [rec("a"), in2(rec("r")), rec("b"), in2(rec("s"))]
    then = [rec((1, {})), rec((3, {"r": 2}))]
    verify(lambda: BroadcastProcessOperator(Plain(), RULES), given, then)
    parallel = [name for name in HARDSHIPS if name.startswith("three")]
    keyed = lambda: KeyedBroadcastProcessOperator(first, Keyed(), RULES)  # noqa: E731
    verify(keyed, given, then, without=[*parallel, *NOT_AS_A_JOB])


# mistakes


def fails(call: Callable[[Any], Any], wanted: str, keyed: bool = False, broadcast_side: bool = False) -> None:
    def wrong(value: Any, ctx: Any) -> None:
        call(ctx)

    def make() -> Any:
        if keyed:
            return KeyedBroadcastProcessOperator(first, (wrong, wrong), RULES, OTHER)
        return BroadcastProcessOperator((wrong, wrong), RULES, OTHER)

    with (
        OperatorHarness(make, inputs=2) as harness,
        pytest.raises(UserCodeError, match=wanted),
    ):
        harness.process(("a", 1), input_index=int(broadcast_side))


@pytest.mark.parametrize("keyed", [False, True])
def test_a_state_that_was_not_declared_names_those_that_were(keyed: bool) -> None:
    for is_broadcast in (False, True):
        wanted = r"given 'x', but the stream was broadcast with 'rules', 'other'; give broadcast\(...\) a descriptor"
        fails(lambda ctx: ctx.get_broadcast_state(MapStateDescriptor("x")), wanted, keyed, is_broadcast)
        fails(lambda ctx: ctx.get_broadcast_state("rules"), "no MapStateDescriptor", keyed, is_broadcast)


@pytest.mark.parametrize("keyed", [False, True])
def test_the_side_that_is_not_broadcast_cannot_write(keyed: bool) -> None:
    writes: dict[str, Callable[[Any], Any]] = {
        "put": lambda state: state.put(1, 2),
        "put_all": lambda state: state.put_all({1: 2}),
        "remove": lambda state: state.remove(1),
        "clear": lambda state: state.clear(),
        "put ": lambda state: state.__setitem__(1, 2),
        "remove ": lambda state: state.__delitem__(1),
    }
    for name, write in writes.items():
        wanted = f"{name.strip()} of broadcast state 'rules' .*only be read.*; write it in process_broadcast_element"
        fails(lambda ctx, write=write: write(ctx.get_broadcast_state(RULES)), wanted, keyed)


def test_apply_to_keyed_state_wants_a_descriptor() -> None:
    def call(ctx: Any) -> None:
        ctx.apply_to_keyed_state("total", print)

    fails(call, "apply_to_keyed_state was given 'total', wanted a state descriptor", keyed=True, broadcast_side=True)
    aggregating = AggregatingStateDescriptor("total", None)
    with OperatorHarness(limits, inputs=2) as harness:
        harness.process(("a", 1))
        with pytest.raises(Exception, match="'total'.*value state.*aggregating state"):
            harness.operators[0].apply_to_keys(aggregating, print)  # type: ignore[attr-defined]


def test_values_that_are_given_out_may_be_changed_and_state_stays() -> None:
    def look(value: Any, ctx: Any) -> Any:
        rules = ctx.get_broadcast_state(RULES).get("r")
        yield list(rules)
        rules.append(value)

    given = [in2(rec([1])), rec(2), rec(3)]
    keep = lambda value, ctx: ctx.get_broadcast_state(RULES).put("r", value)  # noqa: E731
    verify(lambda: BroadcastProcessOperator((look, keep), RULES), given, [rec([1]), rec([1])])


# batch mode


def through(make: Callable[[], Any], given: list[Any]) -> list[Any]:
    with OperatorHarness(make, inputs=2) as harness:
        for step in given:
            step(harness) if callable(step) else harness.give(step)
        return harness.take()


def ends(index: int) -> Callable[[OperatorHarness], None]:
    return lambda harness: harness.end_input(index)


def test_in_batch_mode_the_broadcast_side_is_read_first() -> None:
    make = BroadcastFirst(lambda: BroadcastProcessOperator(Rated(), RULES))
    early = [rec(("usd", 5), 1), rec(("eur", 5))]
    given = [*early, in2(rec(("usd", 2))), in2(rec(("eur", 3)))]
    *found, last = through(make, [*given, ends(1), rec(("usd", 6)), ends(0)])
    assert [entry.value[:2] for entry in found] == [("usd", 10), ("eur", 15), ("usd", 12)] and last == MAX_WATERMARK
    *found, last = through(make, [*given, ends(0), ends(1)])
    assert [entry.value[:2] for entry in found] == [("usd", 10), ("eur", 15)] and last == MAX_WATERMARK
    stamps = [entry.timestamp for entry in through(make, [*given, ends(1)])]
    assert stamps == [1, None]


def test_in_batch_mode_sorted_keyed_records_see_all_rules() -> None:
    given = [rec(("b", 9), 2), rec(("a", 5), 1), in2(rec(7)), in2(rec(4)), rec(("b", 1), 3)]
    found = through(SortedInput(limits), [*given, end()])
    assert [entry.value[:3] for entry in found[:-1]] == [
        ("a", 5, 1), ("timer", "a", 5), ("b", 9, 2), ("b", 10, 3), ("timer", "b", 10),
    ]  # fmt: skip


def test_records_that_wait_go_to_disk_where_memory_is_short(tmp_path: Any) -> None:
    folder = tmp_path / "spilled"
    memory = Allowance(MemoryManager(1 << 16), "attempt", 1 << 16)

    def make() -> Any:
        operator = BroadcastFirst(lambda: BroadcastProcessOperator(Rated(), RULES))()
        setup = operator.setup
        operator.setup = lambda ctx: setup(  # type: ignore[method-assign]
            replace(ctx, managed_memory=memory, spill_folder=str(folder))
        )
        return operator

    with OperatorHarness(make, inputs=2) as harness:
        for start in range(0, 5_000, 1000):
            harness.process_batch(row_batch([rec(("usd", n), n) for n in range(start, start + 1000)]))
        assert any(folder.iterdir())
        harness.process(("usd", 2), input_index=1)
        harness.end_input(1)
        assert [(e.value[1], e.timestamp) for e in harness.take()] == [(2 * n, n) for n in range(5_000)]
    assert not folder.exists()
