"""Process functions without keys, and functions on two streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rayflink.common import Types
from rayflink.common.errors import InvalidTypesError
from rayflink.common.functions.function_classes import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    OutputTag,
    ProcessFunction,
    TimerService,
)
from rayflink.common.records.batches import MIN_TIMESTAMP, RowBatch, Watermark
from rayflink.operators.base import UserCodeError
from rayflink.operators.process import ProcessOperator
from rayflink.operators.two_input import CoFlatMapOperator, CoMapOperator, CoProcessOperator
from tests.operators.running import FixedClock, opened, records, run, under_every_split, values

LATE = OutputTag("late")


class Reading(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        timers = ctx.timer_service()
        yield value, ctx.timestamp(), timers.current_watermark(), timers.current_processing_time()


@pytest.mark.spec("C22", "reads", "changes-nothing")
def test_a_process_function_reads_timestamp_watermark_and_clock_and_changes_none() -> None:
    operator = opened(ProcessOperator(Reading()), clock=FixedClock(77))
    assert records(operator.process(RowBatch(["a"], [5]), 0)) == [(None, ("a", 5, MIN_TIMESTAMP, 77), 5)]
    assert list(operator.process_watermark(Watermark(9))) == [Watermark(9)]
    assert records(operator.process(RowBatch(["b"]), 0)) == [(None, ("b", None, 9, 77), None)]
    public = {name for name in dir(ProcessFunction.Context) if not name.startswith("_")}
    assert public == {"timestamp", "timer_service"}
    assert {name for name in dir(TimerService) if not name.startswith("_")} == {
        "current_processing_time", "current_watermark", "register_processing_time_timer",
        "register_event_time_timer", "delete_processing_time_timer", "delete_event_time_timer",
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["register", "delete"])
@pytest.mark.parametrize("domain", ["processing", "event"])
def test_timers_without_keys_are_refused_with_the_remedy(kind: str, domain: str) -> None:
    def timing(value: int, ctx: Any) -> None:
        getattr(ctx.timer_service(), f"{kind}_{domain}_time_timer")(value)

    with pytest.raises(UserCodeError, match=r"only be (set|deleted) on a keyed stream; call key_by") as failure:
        run(ProcessOperator(timing), [RowBatch([3])])
    assert (failure.value.where, failure.value.record) == ("process_element", "3")


def _sorted_out(value: int, ctx: Any) -> Iterator[Any]:
    yield value
    if value % 2:
        yield LATE, [value]
        yield OutputTag("other"), value


@pytest.mark.spec("C17", "tag")
def test_tagged_results_go_to_their_side_output_only_and_keep_timestamps() -> None:
    for batches in ([RowBatch([1, 2, 3], [10, 20, 30])], [RowBatch([n], [n * 10]) for n in (1, 2, 3)]):
        out = run(ProcessOperator(_sorted_out), batches)
        assert [(v, t) for tag, v, t in out if tag is None] == [(1, 10), (2, 20), (3, 30)]
        assert [(v, t) for tag, v, t in out if tag == "late"] == [([1], 10), ([3], 30)]
        assert [(v, t) for tag, v, t in out if tag == "other"] == [(1, 10), (3, 30)]


def test_pairs_without_a_tag_are_records() -> None:
    out = run(ProcessOperator(lambda value, ctx: [(value, "late")]), [RowBatch(["late"])])
    assert out == [(None, ("late", "late"), None)]


def test_a_record_with_very_many_results_is_drawn_batch_by_batch() -> None:
    drawn = []

    def many(value: int, ctx: Any) -> Iterator[int]:
        for index in range(10**9):
            drawn.append(index)
            yield index

    answers = iter(opened(ProcessOperator(many)).process(RowBatch([0]), 0))
    assert len(next(answers)) == len(drawn)
    assert len(drawn) < 10_000
    answers.close()  # type: ignore[attr-defined]


def test_a_process_function_that_yields_one_list_repeatedly_gives_distinct_records() -> None:
    def growing(value: int, ctx: Any) -> Iterator[Any]:
        kept: list[int] = []
        for index in range(value):
            kept.append(index)
            yield kept
            yield LATE, kept

    out = run(ProcessOperator(growing), [RowBatch([3])])
    assert values(out) == values(out, "late") == [[0], [0, 1], [0, 1, 2]]


def test_a_process_function_obeys_the_law_of_batches() -> None:
    class Counting(ProcessFunction):
        def __init__(self) -> None:
            self.count = 0

        def process_element(self, value: int, ctx: ProcessFunction.Context) -> Iterator[Any]:
            self.count += 1
            yield from [(value, self.count)] * (value % 3)

    out = under_every_split(lambda: ProcessOperator(Counting()), lambda: [1, 2, 3, 4, 5], [1, 2, 3, 4, 5])
    assert out == [
        (None, (1, 1), 1), (None, (2, 2), 2), (None, (2, 2), 2),
        (None, (4, 4), 4), (None, (5, 5), 5), (None, (5, 5), 5),
    ]  # fmt: skip


class Shared(CoMapFunction):
    """Both maps count with one counter."""

    def __init__(self) -> None:
        self.count = 0

    def map1(self, value: str) -> Any:
        self.count += 1
        return None if value == "skip" else ("one", value, self.count)

    def map2(self, value: str) -> Any:
        self.count += 10
        return "two", value, self.count


@pytest.mark.spec("C14", "C15", "X67")
def test_both_maps_of_a_co_map_update_the_one_counter_of_their_instance() -> None:
    first, second = Shared(), Shared()  # of the two subtasks
    out = run(CoMapOperator(first), [(0, RowBatch(["a"], [1])), (1, RowBatch(["b"], [2])), (0, RowBatch(["c"], [3]))])
    assert out == [(None, ("one", "a", 1), 1), (None, ("two", "b", 11), 2), (None, ("one", "c", 12), 3)]
    assert values(run(CoMapOperator(second), [(1, RowBatch(["x"]))], subtask=1)) == [("two", "x", 10)]


def test_a_none_of_a_co_map_is_no_record() -> None:
    out = run(CoMapOperator(Shared()), [(0, RowBatch(["a", "skip", "b"], [1, 2, 3]))])
    assert out == [(None, ("one", "a", 1), 1), (None, ("one", "b", 3), 3)]


@pytest.mark.spec("C15")
def test_co_flat_map_uses_the_function_of_each_stream() -> None:
    class Both(CoFlatMapFunction):
        def flat_map1(self, value: str) -> list[str]:
            return value.split()

        def flat_map2(self, value: int) -> Iterator[int]:
            yield from range(value)

    batches = [(0, RowBatch(["a b"], [1])), (1, RowBatch([2], [2])), (0, RowBatch(["c"], [3]))]
    want = [(None, "a", 1), (None, "b", 1), (None, 0, 2), (None, 1, 2), (None, "c", 3)]
    assert run(CoFlatMapOperator(Both()), batches) == want
    assert values(run(CoFlatMapOperator((str.split, range)), batches)) == ["a", "b", 0, 1, "c"]


@pytest.mark.spec("C14")
def test_a_co_process_function_lets_one_stream_steer_the_other() -> None:
    class Blocking(CoProcessFunction):
        def __init__(self) -> None:
            self.blocked: set[str] = set()

        def process_element1(self, value: str, ctx: CoProcessFunction.Context) -> Iterator[Any]:
            if value in self.blocked:
                yield LATE, (value, ctx.timestamp())
            else:
                yield value

        def process_element2(self, value: str, ctx: CoProcessFunction.Context) -> None:
            self.blocked.add(value)

    batches = [(0, RowBatch(["a", "b"], [1, 2])), (1, RowBatch(["a"], [3])), (0, RowBatch(["a", "b"], [4, 5]))]
    out = run(CoProcessOperator(Blocking()), batches)
    assert out == [(None, "a", 1), (None, "b", 2), (None, "b", 5), ("late", ("a", 4), 4)]


@pytest.mark.parametrize("index", [0, 1])
def test_failures_on_two_streams_name_the_method_of_the_stream(index: int) -> None:
    pair = (lambda x: 1 // x, lambda x: 1 // x)
    for operator, where in ((CoMapOperator(pair), "map"), (CoFlatMapOperator(pair), "flat_map")):
        with pytest.raises(UserCodeError) as failure:
            run(operator, [(index, RowBatch([0]))])
        assert (failure.value.where, failure.value.record) == (f"{where}{index + 1}", "0")


def test_one_callable_for_two_streams_is_refused() -> None:
    with pytest.raises(TypeError, match="or a pair of callables of 1 argument"):
        CoMapOperator(lambda value: value)


def test_output_tags_are_equal_by_id_and_need_one() -> None:
    assert OutputTag("a") == OutputTag("a", [int]) and OutputTag("a") != OutputTag("b")
    assert len({OutputTag("a"), OutputTag("a")}) == 1
    with pytest.raises(ValueError, match="non-empty string"):
        OutputTag("")


def test_the_type_of_an_output_tag_may_be_a_hint_or_a_list_of_the_fields_of_a_row() -> None:
    assert OutputTag("a").type_info is None and OutputTag("a", Types.INT()).type_info == Types.INT()
    assert OutputTag("a", str).type_info == Types.STRING()
    assert OutputTag("a", [int, Types.STRING()]).type_info == Types.ROW([Types.BIG_INT(), Types.STRING()])
    with pytest.raises(InvalidTypesError, match="'str' is not a type"):
        OutputTag("a", "str")
