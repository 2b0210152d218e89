from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common.functions.function_classes import (
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    TimeDomain,
)
from rayflink.common.output_tag import OutputTag
from rayflink.common.records.batches import MAX_TIMESTAMP, MIN_TIMESTAMP, RowBatch, Watermark
from rayflink.operators.base import UserCodeError
from rayflink.operators.keyed.keyed_process import KeyedProcessOperator
from rayflink.operators.keyed.keyed_two_input import KeyedCoProcessOperator
from rayflink.state.descriptors import ValueStateDescriptor
from rayflink.state.handles import NoCurrentKeyError
from rayflink.state.timers import TimerQueue
from tests.operators.laws import answers, context, flat, now, run, snapshot_of, started, verify

first = itemgetter(0)
END = Watermark(MAX_TIMESTAMP)


class Script(KeyedProcessFunction):
    """Records (key, do, time): sets or deletes a timer; a timer emits its key and time."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        getattr(ctx.timer_service(), value[1])(value[2])

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.get_current_key(), timestamp, ctx.time_domain().name, ctx.timer_service().current_watermark()


def setting(*records: Any) -> RowBatch:
    return RowBatch([(key, "register_event_time_timer", time) for key, time in records])


@pytest.mark.spec("E11", "E12", "E28")
def test_timers_at_or_before_the_watermark_fire_in_order_of_time_and_before_it() -> None:
    verify(
        lambda: KeyedProcessOperator(first, Script()),
        [setting(("a", 5), ("b", 3), ("a", 5), ("b", 9)), Watermark(2), Watermark(5), END],
        [
            Watermark(2), (None, ("b", 3, "EVENT_TIME", 5), 3), (None, ("a", 5, "EVENT_TIME", 5), 5), Watermark(5),
            (None, ("b", 9, "EVENT_TIME", MAX_TIMESTAMP), 9), END,
        ],
    )  # fmt: skip


def test_equal_timers_fire_in_the_order_they_were_set_also_after_a_restore() -> None:
    keys = ["1", "2", "1", "3", "2", "5", "4"]
    out = verify(lambda: KeyedProcessOperator(first, Script()), [setting(*((key, 7) for key in keys)), END])
    assert [value[0] for _, value, _ in out[:-1]] == ["1", "2", "3", "5", "4"]


@pytest.mark.spec("E28", "E29")
def test_processing_time_timers_fire_without_a_timestamp_and_deleted_ones_do_not() -> None:
    service = "register_processing_time_timer"
    records = RowBatch([("a", service, 5), ("b", service, 3), ("c", service, 4),
                        ("c", "delete_processing_time_timer", 4)])  # fmt: skip
    verify(
        lambda: KeyedProcessOperator(first, Script()),
        [records, now(2), now(4), now(5)],
        [
            (None, ("b", 3, "PROCESSING_TIME", MIN_TIMESTAMP), None),
            (None, ("a", 5, "PROCESSING_TIME", MIN_TIMESTAMP), None),
        ],
    )
    operator = started(lambda: KeyedProcessOperator(first, Script()), context())
    assert operator.next_processing_time() is None
    flat(answers(operator, records))
    assert operator.next_processing_time() == 3


@pytest.mark.spec("E29")
def test_a_timer_set_by_a_timer_fires_in_the_same_advance_when_it_is_due() -> None:
    class Chained(Script):
        def on_timer(self, timestamp: int, ctx: Any) -> Any:
            if timestamp < 5:
                ctx.timer_service().register_event_time_timer(timestamp + 2)
                ctx.timer_service().delete_event_time_timer(4)
            yield timestamp

    steps = [setting(("a", 1), ("a", 4), ("b", 4)), Watermark(4), Watermark(5)]
    out = verify(lambda: KeyedProcessOperator(first, Chained()), steps)
    assert out == [(None, 1, 1), (None, 3, 3), (None, 4, 4), Watermark(4), (None, 5, 5), Watermark(5)]


@pytest.mark.spec("E29")
def test_a_processing_time_timer_set_by_a_timer_fires_in_the_same_advance() -> None:
    class Chained(Script):
        def on_timer(self, timestamp: int, ctx: Any) -> Any:
            if timestamp < 5:
                ctx.timer_service().register_processing_time_timer(timestamp + 2)
            yield ctx.get_current_key(), timestamp

    operator = started(lambda: KeyedProcessOperator(first, Chained()), context())
    service = "register_processing_time_timer"
    flat(answers(operator, RowBatch([("a", service, 1), ("b", service, 4), ("b", service, 9)])))
    fired = [value for _, value, _ in flat(answers(operator, now(4)))]
    assert fired == [("a", 1), ("a", 3), ("b", 4)]
    assert operator.next_processing_time() == 5
    assert [value for _, value, _ in flat(answers(operator, now(8)))] == [("a", 5), ("b", 6)]
    assert operator.next_processing_time() == 9


@pytest.mark.spec("G06", "scoped", "G07")
def test_state_is_that_of_the_key_and_side_outputs_keep_the_timestamp() -> None:
    class Count(KeyedProcessFunction):
        def open(self, runtime_context: Any) -> None:
            self.count = runtime_context.get_state(ValueStateDescriptor("count"))

        def process_element(self, value: Any, ctx: Any) -> Any:
            self.count.update((self.count.value() or 0) + 1)
            yield ctx.get_current_key(), self.count.value(), ctx.timestamp()
            yield OutputTag("seen"), value

    given = [RowBatch([("a",), ("b",), ("a",)], [1, 2, 3]), RowBatch([("a",)])]
    out = verify(lambda: KeyedProcessOperator(first, Count()), given)
    assert [entry for entry in out if entry[0] is None] == [
        (None, ("a", 1, 1), 1), (None, ("b", 1, 2), 2), (None, ("a", 2, 3), 3), (None, ("a", 3, None), None),
    ]  # fmt: skip
    assert [entry for entry in out if entry[0]] == [
        ("seen", ("a",), 1), ("seen", ("b",), 2), ("seen", ("a",), 3), ("seen", ("a",), None),
    ]  # fmt: skip


@pytest.mark.spec("E32")
def test_state_in_open_has_no_key_and_restored_timers_wait_for_the_clock() -> None:
    class Eager(KeyedProcessFunction):
        def open(self, runtime_context: Any) -> None:
            runtime_context.get_state(ValueStateDescriptor("x")).value()

        def process_element(self, value: Any, ctx: Any) -> Any:
            return None

    with pytest.raises(UserCodeError, match="failed in open.*without a current key") as failure:
        started(lambda: KeyedProcessOperator(first, Eager()), context())
    assert isinstance(failure.value.__cause__, NoCurrentKeyError)

    fired = []

    class Watch(Script):
        def open(self, runtime_context: Any) -> None:
            fired.append("open")

        def on_timer(self, timestamp: int, ctx: Any) -> Any:
            fired.append(timestamp)

    operator = started(lambda: KeyedProcessOperator(first, Watch()), context())
    flat(answers(operator, setting(("a", 1))))
    again = started(lambda: KeyedProcessOperator(first, Watch()), context(), (snapshot_of(operator),))
    assert fired == ["open", "open"]
    flat(answers(again, END))
    assert fired == ["open", "open", 1]


def test_a_function_of_many_results_and_a_firing_of_many_timers_stop_between_batches() -> None:
    class Many(Script):
        def process_element(self, value: Any, ctx: Any) -> Any:
            yield from range(10_000) if value[1] is None else (super().process_element(value, ctx) or ())

    operator = started(lambda: KeyedProcessOperator(first, Many()), context())
    assert [len(element) for element in answers(operator, RowBatch([("a", None)]))] == [4096, 4096, 1808]
    flat(answers(operator, setting(*((key, 1) for key in range(5000)))))
    firing = iter(answers(operator, Watermark(1)))
    assert len(next(batch for batch in firing if len(batch))) == 4096
    rest = started(lambda: KeyedProcessOperator(first, Many()), context(), (snapshot_of(operator),))
    assert len(flat(answers(rest, Watermark(2)))) == 904 + 1
    assert [element for element in firing if isinstance(element, Watermark)] == [Watermark(1)]


def test_failures_name_the_record_or_the_timer() -> None:
    class Broken(Script):
        def on_timer(self, timestamp: int, ctx: Any) -> Any:
            yield 1 / 0

    operator = started(lambda: KeyedProcessOperator(first, Broken()), context())
    flat(answers(operator, setting(("a", 7))))
    with pytest.raises(UserCodeError, match="failed in on_timer on record timer 7 of key 'a'"):
        flat(answers(operator, END))
    with pytest.raises(UserCodeError, match=r"failed in process_element on record \('a', 'nothing', 1\)"):
        run(lambda: KeyedProcessOperator(first, Script()), [RowBatch([("a", "nothing", 1)])])
    assert TimeDomain.EVENT_TIME.value == 0


def test_a_key_selector_of_the_second_input_that_fails_is_named() -> None:
    class Broken(KeySelector):  # type: ignore[type-arg]
        def open(self, runtime_context: Any) -> None:
            if fails == "open":
                raise ZeroDivisionError

        def close(self) -> None:
            raise ZeroDivisionError

        def get_key(self, value: Any) -> Any:
            return value

    class Nothing(KeyedCoProcessFunction):  # type: ignore[type-arg]
        def process_element1(self, value: Any, ctx: Any) -> None: ...

        def process_element2(self, value: Any, ctx: Any) -> None: ...

    for fails in ("open", "close"):
        with pytest.raises(UserCodeError, match=f"'tested'.*failed in {fails} of the key selector"):
            started(lambda: KeyedCoProcessOperator(first, Broken(), Nothing()), context()).close()


actions = st.sampled_from(["register", "delete", "due"])
operations = st.lists(
    st.tuples(actions, st.integers(0, 6), st.sampled_from("abc"), st.sampled_from([None, "ns"])), max_size=40
)


@given(operations)
def test_a_queue_equals_a_set_that_fires_by_time(steps: list[Any]) -> None:
    queue, model = TimerQueue(), set()
    for what, timestamp, key, namespace in steps:
        if what == "register":
            queue.register(timestamp, key, namespace)
            model.add((timestamp, key, namespace))
        elif what == "delete":
            queue.delete(timestamp, key, namespace)
            model.discard((timestamp, key, namespace))
        else:
            fired = list(queue.due(timestamp))
            assert set(fired) == {timer for timer in model if timer[0] <= timestamp} and len(fired) == len(set(fired))
            assert [timer[0] for timer in fired] == sorted(timer[0] for timer in fired)
            model -= set(fired)
        assert set(queue) == model and len(queue) == len(model)
        assert queue.next_timestamp() == min((timer[0] for timer in model), default=None)


def test_an_earlier_timer_set_while_equal_ones_fire_goes_before_the_rest() -> None:
    queue = TimerQueue()
    for key in "abc":
        queue.register(5, key)
    fired = []
    for timestamp, key, _ in queue.due(5):
        fired.append((timestamp, key))
        if (timestamp, key) == (5, "a"):
            queue.register(3, "z")
            queue.delete(5, "b")
            queue.register(5, "d")
    assert fired == [(5, "a"), (3, "z"), (5, "c"), (5, "d")]


def test_times_whose_timers_were_deleted_do_not_pile_up() -> None:
    queue = TimerQueue()
    for timestamp in range(10_000):
        queue.register(timestamp, "k")
        queue.delete(timestamp, "k")
    assert len(queue._heap) < 200
    queue.clear()
    assert not queue._heap


def test_keys_are_taken_out_in_pieces_and_what_was_not_taken_stays() -> None:
    queue = TimerQueue()
    for key in range(5):
        queue.register(1, key, "w")
    pieces = queue.due_keys(1, 2)
    assert next(pieces) == (1, "w", [0, 1])
    assert [key for _, key, _ in queue] == [2, 3, 4]
    assert list(pieces) == [(1, "w", [2, 3]), (1, "w", [4])]
    assert queue.next_timestamp() is None
