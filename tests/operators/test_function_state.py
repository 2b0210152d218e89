"""Functions of any kind keep operator state: lists, union lists, broadcast maps, raw bytes; restored and rescaled."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rayflink.common.errors import InvalidFunction
from rayflink.common.functions.callables import as_async
from rayflink.common.functions.checkpointed_function import CheckpointedFunction, checkpointed_of
from rayflink.common.functions.function_classes import (
    AsyncFunction,
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ProcessWindowFunction,
    SinkFunction,
    SourceFunction,
)
from rayflink.common.functions.join_functions import CoGroupFunction, JoinFunction
from rayflink.connectors.hybrid_source import HybridSource, HybridSplit
from rayflink.connectors.iteration import IterationSplit, IteratorSource
from rayflink.operators.base import UserCodeError
from rayflink.operators.keyed.keyed_functions import keyed_map
from rayflink.operators.keyed.keyed_process import KeyedProcessOperator
from rayflink.operators.keyed.keyed_two_input import KeyedCoProcessOperator
from rayflink.operators.process import ProcessOperator
from rayflink.operators.sinks import SinkFunctionOperator
from rayflink.operators.sources import ReaderSourceOperator
from rayflink.operators.stateless import FilterOperator, FlatMapOperator, MapOperator
from rayflink.operators.two_input import CoMapOperator
from rayflink.operators.windows.assigners import TumblingEventTimeWindows
from rayflink.operators.windows.co_group_windows import CoGroupedRecords, JoinedRecords
from rayflink.operators.windows.window_factory import window_operator_of
from rayflink.operators.windows.window_functions import collecting
from rayflink.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from rayflink.state.errors import StateError, VersionMismatch
from rayflink.state.keys import key_hash
from rayflink.state.keys.key_groups import key_group
from rayflink.testing import OperatorHarness, Place, in2, rec, rescaled_snapshots, verify, wm
from tests.operators.laws import context
from tests.operators.write_back import write_back_backend

SEEN = ListStateDescriptor("seen")


class Seen(CheckpointedFunction):
    """Keeps what it was given, as list state; starts from what it is dealt."""

    def initialize_state(self, context: Any) -> None:
        self.kept = context.get_operator_state_store().get_list_state(SEEN)
        self.seen = list(self.kept.get())
        self.restored = context.is_restored()

    def snapshot_state(self, context: Any) -> None:
        self.kept.update(self.seen)

    def take(self, value: Any) -> Any:
        self.seen.append(value)
        return len(self.seen)


class SeenMap(MapFunction, Seen):
    def map(self, value: Any) -> Any:
        return self.take(value)


class SeenFlatMap(FlatMapFunction, Seen):
    def flat_map(self, value: Any) -> Any:
        yield self.take(value)


class SeenFilter(FilterFunction, Seen):
    def filter(self, value: Any) -> bool:
        return self.take(value) % 2 == 0


class SeenProcess(ProcessFunction, Seen):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield self.take(value)


class SeenKeyed(KeyedProcessFunction, Seen):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield self.take(value)


class SeenSink(SinkFunction, Seen):
    def invoke(self, value: Any) -> None:
        self.take(value)


class SeenCoMap(CoMapFunction, Seen):
    def map1(self, value: Any) -> Any:
        return self.take(value)

    map2 = map1


class SeenKeyedCo(KeyedCoProcessFunction, Seen):
    def process_element1(self, value: Any, ctx: Any) -> Any:
        yield self.take(value)

    process_element2 = process_element1


class SeenWindow(ProcessWindowFunction, Seen):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        return [self.take(tuple(elements))]


def identity(value: Any) -> Any:
    return value


def windows() -> Any:
    return window_operator_of(identity, collecting, SeenWindow(), TumblingEventTimeWindows.of(10))


ONE_INPUT: dict[str, Callable[[], Any]] = {
    "map": lambda: MapOperator(SeenMap()),
    "flat map": lambda: FlatMapOperator(SeenFlatMap()),
    "filter": lambda: FilterOperator(SeenFilter()),
    "process": lambda: ProcessOperator(SeenProcess()),
}
KEYED: dict[str, Callable[[], Any]] = {
    "keyed process": lambda: KeyedProcessOperator(identity, SeenKeyed()),
    "keyed map": lambda: keyed_map(identity, SeenMap()),
}
PARALLEL = ("three subtasks", "three subtasks become two")
"""Hardships under which a keyed operator whose results depend on its subtask has other results."""


@pytest.mark.parametrize("kind", [*ONE_INPUT, *KEYED])
@pytest.mark.spec("G01", "G02", "G33", "operator")
def test_list_state_of_a_function_of_each_kind_comes_back(kind: str) -> None:
    then = [rec(2), rec(4)] if kind == "filter" else [rec(n + 1) for n in range(4)]
    if kind == "filter":
        then = [rec("b"), rec("d")]
    without = (*PARALLEL, "as a job in this process", "as a simulated job") if kind in KEYED else ()
    verify({**ONE_INPUT, **KEYED}[kind], [rec(value) for value in "abcd"], then, without=without)


@pytest.mark.spec("G04", "other-operators")
def test_operators_of_one_task_do_not_see_each_others_state_of_one_name() -> None:
    make = lambda: [MapOperator(SeenMap()), MapOperator(SeenMap())]  # noqa: E731
    with OperatorHarness(make) as harness:
        for value in "ab":
            harness.process(value)
        with harness.restore(make, harness.snapshot()) as again:
            again.process("c")
            seen = [operator._user.checkpointed[0].seen for operator in again.operators]  # type: ignore[attr-defined]
    assert seen == [["a", "b", "c"], [1, 2, 3]]


def test_list_state_of_functions_of_two_inputs_and_of_windows_comes_back() -> None:
    given = [rec("a"), in2(rec("b")), rec("c")]
    verify(lambda: CoMapOperator(SeenCoMap()), given, [rec(1), rec(2), rec(3)])
    alone = (*PARALLEL, "as a job in this process", "as a simulated job")
    make = lambda: KeyedCoProcessOperator(identity, identity, SeenKeyedCo())  # noqa: E731
    verify(make, given, [rec(1), rec(2), rec(3)], without=alone)
    timed = [rec("a", 1), rec("b", 2), wm(9), rec("a", 11), wm(19)]
    verify(windows, timed, [rec(1, 9), rec(2, 9), wm(9), rec(3, 19), wm(19)], without=alone)


@pytest.mark.spec("G03", "registered", "G04", "same", "other-subtasks", "C35", "task-state")
def test_list_state_of_a_sink_comes_back_and_each_subtask_has_its_own() -> None:
    first, second = (OperatorHarness(lambda: SinkFunctionOperator(SeenSink()), place=Place(n, 2)) for n in range(2))
    first.process("a")
    second.process("b")
    with first.restore(lambda: SinkFunctionOperator(SeenSink()), first.snapshot()) as again:
        function = again.operators[0]._user.checkpointed[0]  # type: ignore[attr-defined]
        assert (function.seen, function.restored) == (["a"], True)
        again.process("c")
        assert function.seen == ["a", "c"]
    with second:
        function = second.operators[0]._user.checkpointed[0]  # type: ignore[attr-defined]
        assert (function.seen, function.restored) == (["b"], False)


class Modes(MapFunction, CheckpointedFunction):
    """Adds each value to a list and a union list, and to a broadcast map; gives what it started with."""

    def initialize_state(self, context: Any) -> None:
        store = context.get_operator_state_store()
        self.split = store.get_list_state(ListStateDescriptor("split"))
        self.union = store.get_union_list_state(ListStateDescriptor("union"))
        self.shared = store.get_broadcast_state(MapStateDescriptor("shared"))
        self.start = list(self.split), list(self.union), dict(self.shared.items())

    def snapshot_state(self, context: Any) -> None:
        self.shared.put("checkpoint", context.get_checkpoint_id())

    def map(self, value: Any) -> Any:
        self.split.add(value)
        self.union.add(value)
        return self.start


def after_rescale(make: Callable[[], Any], given: list[list[Any]], parallelism: int) -> list[Any]:
    """What each of the new subtasks gives for a first record."""
    snapshots = []
    for index, values in enumerate(given):
        with OperatorHarness(make, place=Place(index, len(given))) as harness:
            for value in values:
                harness.process(value)
            snapshots.append(harness.snapshot())
    found = []
    for index, snapshot in enumerate(rescaled_snapshots(snapshots, parallelism)):
        with OperatorHarness(make, place=Place(index, parallelism), restore=(snapshot,)) as harness:
            harness.process("probe")
            found += harness.output_values()
    return found


@pytest.mark.spec("G29", "G30", "G31", "X27", "X28")
def test_three_subtasks_become_five_and_two() -> None:
    make = lambda: MapOperator(Modes())  # noqa: E731
    given = [[1, 2], [3], [4]]
    union, shared = [1, 2, 3, 4], {"checkpoint": 1}
    assert after_rescale(make, given, 5) == [([n], union, shared) for n in (1, 2, 3, 4)] + [([], union, shared)]
    assert after_rescale(make, given, 2) == [([1, 2], union, shared), ([3, 4], union, shared)]
    assert after_rescale(make, given, 3) == [(row, union, shared) for row in given]


class Raw(CheckpointedFunction):
    """Keeps values in a form of its own: pickles, one partition each."""

    def initialize_state(self, context: Any) -> None:
        self.held = [pickle.loads(stream.read()) for stream in context.get_raw_operator_state_inputs()]

    def snapshot_state(self, context: Any) -> None:
        out = context.get_raw_operator_state_output()
        for value in self.held:
            out.start_new_partition()
            out.write(pickle.dumps(value))


class RawMap(MapFunction, Raw):
    def map(self, value: Any) -> Any:
        held = list(self.held)
        self.held.append(value)
        return held


class RawCounts(KeyedProcessFunction, CheckpointedFunction):
    """Counts by key in dicts of its own, written by key group."""

    def initialize_state(self, context: Any) -> None:
        self.counts: dict[int, dict[Any, int]] = {}
        for group, stream in context.get_raw_keyed_state_inputs():
            self.counts[group] = pickle.load(stream)

    def snapshot_state(self, context: Any) -> None:
        out = context.get_raw_keyed_operator_state_output()
        for group, counts in self.counts.items():
            out.start_new_key_group(group)
            out.write(pickle.dumps(counts))

    def process_element(self, value: Any, ctx: Any) -> Any:
        counts = self.counts.setdefault(key_group(key_hash(value), 128), {})
        counts[value] = counts.get(value, 0) + 1
        yield value, counts[value]


@pytest.mark.spec("G08")
def test_raw_state_is_given_back_as_it_was_written() -> None:
    verify(lambda: MapOperator(RawMap()), [rec(n) for n in range(3)], [rec([]), rec([0]), rec([0, 1])])
    assert after_rescale(lambda: MapOperator(RawMap()), [[1, 2], [3], [4]], 2) == [[1, 2], [3, 4]]


@pytest.mark.spec("G08")
def test_raw_keyed_state_follows_its_key_group() -> None:
    make = lambda: KeyedProcessOperator(identity, RawCounts())  # noqa: E731
    verify(make, [rec(c) for c in "abcabca"], [rec(pair) for pair in (
        ("a", 1), ("b", 1), ("c", 1), ("a", 2), ("b", 2), ("c", 2), ("a", 3)
    )])  # fmt: skip


def test_a_snapshot_is_a_copy_that_later_changes_do_not_reach() -> None:
    class Lists(MapFunction, CheckpointedFunction):
        def initialize_state(self, context: Any) -> None:
            self.state = context.get_operator_state_store().get_list_state(SEEN)

        def snapshot_state(self, context: Any) -> None:
            pass

        def map(self, value: Any) -> Any:
            self.state.add(value)
            value.append("later")
            return [list(entry) for entry in self.state.get()]

    with OperatorHarness(lambda: MapOperator(Lists())) as harness:
        harness.process(["a"])
        taken = harness.snapshot()
        harness.process(["b"])
        assert harness.output_values() == [[["a"]], [["a"], ["b"]]]
        with harness.restore(lambda: MapOperator(Lists()), taken) as again:
            again.process(["c"])
            assert again.output_values() == [[["a"], ["c"]]]


def test_keyed_state_is_at_hand_where_the_stream_is_keyed() -> None:
    class Both(KeyedProcessFunction, CheckpointedFunction):
        def initialize_state(self, context: Any) -> None:
            self.total = context.get_keyed_state_store().get_state(ValueStateDescriptor("total"))
            self.records = context.get_operator_state_store().get_list_state(SEEN)

        def snapshot_state(self, context: Any) -> None:
            pass

        def process_element(self, value: Any, ctx: Any) -> Any:
            self.total.update((self.total.value() or 0) + 1)
            self.records.add(value)
            yield value, self.total.value()

    make = lambda: KeyedProcessOperator(identity, Both())  # noqa: E731
    verify(make, [rec("a"), rec("b"), rec("a")], [rec(("a", 1)), rec(("b", 1)), rec(("a", 2))])


class Numbers(SourceFunction, CheckpointedFunction):
    """0 to 9; after a restore it goes on where it was, and looks at nothing before that."""

    def initialize_state(self, context: Any) -> None:
        self.offset = context.get_operator_state_store().get_list_state(ListStateDescriptor("offset"))
        self.next = next(iter(self.offset.get()), 0)

    def snapshot_state(self, context: Any) -> None:
        self.offset.update([self.next])

    def run(self) -> Any:
        while self.next < 10:
            self.next += 1
            yield self.next - 1


@pytest.mark.spec("G36")
@pytest.mark.parametrize("hybrid", [False, True])
def test_a_source_function_goes_on_from_its_own_state(hybrid: bool) -> None:
    def make() -> Any:
        source: Any = IteratorSource(Numbers())
        return ReaderSourceOperator(HybridSource.builder(source).build() if hybrid else source)

    split: Any = HybridSplit(0, IterationSplit()) if hybrid else IterationSplit()
    harness = OperatorHarness(make)
    harness.operators[0].add_splits([split])  # type: ignore[attr-defined]
    given = []
    for _ in range(3):
        harness.poll(2)
        given += harness.output_values()
        snapshot = harness.snapshot()
        harness = harness.restore(make, snapshot)
    harness.poll(100)
    given += harness.output_values()
    assert given == list(range(10))
    [(taken,)] = snapshot.values()
    assert pickle.loads(taken.lists["user/offset"][1][0][1:]) == 6
    assert taken.lists["source-splits"][0] == "split", "the position is list state as well, dealt out when rescaled"
    harness.close()


def test_an_async_source_function_has_no_state() -> None:
    class Async(Numbers):
        async def run(self) -> Any:
            yield 1

    with OperatorHarness(lambda: ReaderSourceOperator(IteratorSource(Async()))) as harness:
        harness.operators[0].add_splits([IterationSplit()])  # type: ignore[attr-defined]
        with pytest.raises(UserCodeError, match=r"run is async and Async keeps state.*make run\(\) plain"):
            harness.poll()


def refused(initialize: Callable[[Any], Any], wanted: str) -> None:
    class Wrong(MapFunction, CheckpointedFunction):
        def initialize_state(self, context: Any) -> None:
            initialize(context)

        def snapshot_state(self, context: Any) -> None:
            pass

        def map(self, value: Any) -> Any:
            return value

    with pytest.raises(UserCodeError, match=wanted):
        OperatorHarness(lambda: MapOperator(Wrong()))


def test_refusals_name_the_remedy() -> None:
    refused(lambda context: context.get_keyed_state_store(), r"initialize_state.*not keyed; call key_by")
    store = lambda context: context.get_operator_state_store()  # noqa: E731
    wrong = MapStateDescriptor("m")
    refused(
        lambda context: store(context).get_list_state(wrong), r"list state needs a ListStateDescriptor, found MapState"
    )

    def twice(context: Any) -> None:
        store(context).get_list_state(SEEN)
        store(context).get_union_list_state(SEEN)

    refused(twice, r"the name 'seen': split operator state, and union.*give each a name of its own")


def test_a_program_that_exits_in_getting_state_is_named_and_the_backend_is_closed() -> None:
    class Ends(SeenKeyed):
        def initialize_state(self, context: Any) -> None:
            raise SystemExit("bye")

    operator = KeyedProcessOperator(identity, Ends())
    closed = []

    def backend(ctx: Any) -> Any:
        made = write_back_backend(ctx)
        made.close = lambda: closed.append(made)  # type: ignore[method-assign]
        return made

    operator.create_backend = backend
    operator.setup(context())
    with pytest.raises(UserCodeError, match="failed in initialize_state: SystemExit: bye"):
        operator.initialize_state(())
    operator.close()
    operator.close()
    assert len(closed) == 1


def test_an_async_function_with_operator_state_is_refused() -> None:
    class Asks(AsyncFunction, Seen):
        async def async_invoke(self, value: Any) -> Any:
            return [value]

    with pytest.raises(InvalidFunction, match="Asks has initialize_state .* which would never be called"):
        as_async(Asks(), "ordered_wait")


def test_raw_keyed_state_needs_a_keyed_stream() -> None:
    class Wrong(SeenMap):
        def snapshot_state(self, context: Any) -> None:
            context.get_raw_keyed_operator_state_output()

    with (
        OperatorHarness(lambda: MapOperator(Wrong())) as harness,
        pytest.raises(UserCodeError, match=r"failed in snapshot_state.*not keyed; call key_by"),
    ):
        harness.snapshot()


def test_a_snapshot_of_another_layout_is_refused() -> None:
    make = lambda: MapOperator(SeenMap())  # noqa: E731
    with OperatorHarness(make) as harness:
        [(operator_id, (taken,))] = harness.snapshot().items()
        with pytest.raises(VersionMismatch, match="written as snapshot layout 9, this program reads layout 1"):
            harness.restore(make, {operator_id: (replace(taken, version=9),)})


def test_operator_state_does_not_expire_and_holds_to_its_type() -> None:
    from rayflink.common import Time, Types
    from rayflink.datastream.state import StateTtlConfig
    from rayflink.state.operator_state import OperatorStateStore

    expiring = ListStateDescriptor("l")
    expiring.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
    with pytest.raises(StateError, match="only keyed state supports; leave enable_time_to_live out"):
        OperatorStateStore().get_list_state(expiring)
    typed = OperatorStateStore().get_list_state(ListStateDescriptor("n", Types.INT()))
    with pytest.raises(Exception, match="state 'n'"):
        typed.add("no number")
    shared = OperatorStateStore().get_broadcast_state(MapStateDescriptor("m", Types.STRING(), Types.INT()))
    with pytest.raises(Exception, match="key of state 'm'"):
        shared.put(1, 1)


def test_functions_of_joins_keep_operator_state_as_well() -> None:
    class Counted(CoGroupFunction, Seen):
        def co_group(self, first: Any, second: Any) -> Any:
            return [self.take((first, second))]

    class CountedJoin(JoinFunction, Seen):
        def join(self, first: Any, second: Any) -> Any:
            return self.take((first, second))

    for function in (Counted(), CountedJoin()):
        wrapped = CoGroupedRecords(function if isinstance(function, Counted) else JoinedRecords(function))
        assert checkpointed_of(wrapped) == (function,)
