import math
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.common.functions.function_classes import (
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    ReduceFunction,
)
from rayflink.common.records.batches import RowBatch, Watermark
from rayflink.common.types import Row
from rayflink.operators.base import UserCodeError
from rayflink.operators.keyed.aggregations import aggregation
from rayflink.operators.keyed.keyed_functions import keyed_map
from rayflink.operators.keyed.keyed_process import KeyedProcessOperator
from rayflink.operators.keyed.rolling import KeyedReduceOperator, KeyedSumOperator, keyed_aggregation
from rayflink.state.descriptors import MapStateDescriptor, ValueStateDescriptor
from rayflink.testing import HARDSHIPS
from tests.operators.laws import answers, context, run, started, verify

first = itemgetter(0)
AS_A_JOB = [name for name in HARDSHIPS if name.startswith("as a")]


def add(a: Any, b: Any) -> Any:
    return a[0], a[1] + b[1]


def values(out: list[Any]) -> list[Any]:
    return [value for _, value, _ in out]


def test_every_record_emits_the_reduction_of_its_key_so_far_in_order_of_arrival() -> None:
    given = [RowBatch([("a", 1), ("b", 2), ("a", 3)], [5, 6, 7]), RowBatch([("b", 1)], [8])]
    expected = [(None, ("a", 1), 5), (None, ("b", 2), 6), (None, ("a", 4), 7), (None, ("b", 3), 8)]
    verify(lambda: KeyedReduceOperator(first, add), given, expected)
    verify(lambda: KeyedSumOperator(first, 1), given, expected)


@pytest.mark.parametrize("kind", ["sum", "min", "max", "min_by", "max_by"])
@settings(max_examples=3, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(-5, 5)), max_size=12))
def test_built_in_aggregations_equal_a_naive_fold(kind: str, records: list[Any]) -> None:
    combine, seen, expected = aggregation(kind, 1), {}, []
    for key, number in records:
        seen[key] = combine(seen[key], (key, number)) if key in seen else (key, number)
        expected.append(seen[key])
    made = verify(lambda: keyed_aggregation(first, kind, 1), [RowBatch(records)], without=AS_A_JOB)
    assert values(made) == expected


def test_equal_keys_are_one_key_and_all_nan_are_one() -> None:
    keys = [1, True, 1.0, math.nan, float("nan"), (float("nan"),), (math.nan,)]
    records = [(index, 1) for index in range(len(keys))]
    out = verify(lambda: KeyedSumOperator(lambda record: keys[record[0]], 1), [RowBatch(records)])
    assert values(out) == [(0, 1), (0, 2), (0, 3), (3, 1), (3, 2), (5, 1), (5, 2)]


class Counting(KeyedProcessFunction):
    """Counts by key, and says what the key is, also by a timer."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))
        self.maps = runtime_context.get_map_state(MapStateDescriptor("maps"))

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        self.maps.put(ctx.get_current_key(), self.count.value())
        ctx.timer_service().register_event_time_timer(50)
        yield ctx.get_current_key(), self.count.value()

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield "timer", ctx.get_current_key(), dict(self.maps.items())[ctx.get_current_key()]


LISTS = [[1], (1,), [True], "a", ("a", [1.0]), ("a", [1]), [[]], [[], 2], [1]]


def test_lists_are_keys_that_differ_from_tuples() -> None:
    given = [RowBatch([(key, 1) for key in LISTS], [5] * len(LISTS)), Watermark(60)]
    out = verify(lambda: KeyedSumOperator(first, 1), given)
    assert [total for _, total in values(out[:-1])] == [1, 1, 2, 1, 1, 2, 1, 1, 3]
    verify(lambda: KeyedProcessOperator(first, Counting()), given, [
        *((None, (key, count), 5) for key, count in zip(LISTS, [1, 1, 2, 1, 1, 2, 1, 1, 3], strict=True)),
        *((None, ("timer", key, count), 50) for key, count in [
            ([1], 3), ((1,), 1), ("a", 1), (("a", [1]), 2), ([[]], 1), ([[], 2], 1),
        ]),
        Watermark(60),
    ])  # fmt: skip


def test_min_by_keeps_the_first_of_equal_records_and_min_its_other_fields() -> None:
    records = [("k", 3, "x"), ("k", 1, "y"), ("k", 1, "z")]
    assert values(verify(lambda: keyed_aggregation(first, "min_by", 1), [RowBatch(records)])) == [
        ("k", 3, "x"), ("k", 1, "y"), ("k", 1, "y"),
    ]  # fmt: skip
    assert values(verify(lambda: keyed_aggregation(first, "min", 1), [RowBatch(records)])) == [
        ("k", 3, "x"), ("k", 1, "x"), ("k", 1, "x"),
    ]  # fmt: skip


def test_fields_are_found_by_name_in_rows_and_bare_values_are_their_own_field() -> None:
    rows = [Row(k="a", n=1), Row(k="a", n=2)]
    assert values(verify(lambda: keyed_aggregation(lambda r: r["k"], "sum", "n"), [RowBatch(rows)])) == [
        Row(k="a", n=1), Row(k="a", n=3),
    ]  # fmt: skip
    assert values(verify(lambda: keyed_aggregation(lambda n: n % 2, "max"), [RowBatch([1, 5, 3])])) == [1, 5, 5]


def test_pairs_and_longer_records_may_be_mixed_in_one_sum() -> None:
    records = [("a", 1), ("b", 1, "x"), ("a", 2, "y"), ("b", 1)]
    out = verify(lambda: KeyedSumOperator(first, 1), [RowBatch(records)])
    assert values(out) == [("a", 1), ("b", 1, "x"), ("a", 3), ("b", 2, "x")]


def test_what_was_emitted_is_not_the_object_in_state() -> None:
    def extend(a: Any, b: Any) -> Any:
        a[1].extend(b[1])
        return a

    records = [("a", [1]), ("a", [2]), ("a", [3])]
    operator = started(lambda: KeyedReduceOperator(first, extend), context())
    out = [value for element in answers(operator, RowBatch(records)) for value in element.values]
    assert out == [("a", [1]), ("a", [1, 2]), ("a", [1, 2, 3])]
    for value in out:
        value[1].clear()  # as a chained consumer may
    (more,) = answers(operator, RowBatch([("a", [4])]))
    assert more.values == [("a", [1, 2, 3, 4])]


def test_a_mutable_sum_leaves_earlier_results_alone() -> None:
    out = verify(lambda: KeyedSumOperator(first, 1), [RowBatch([("a", [1]), ("a", [2]), ("a", [3])])])
    assert values(out) == [("a", [1]), ("a", [1, 2]), ("a", [1, 2, 3])]


def test_functions_and_selectors_may_be_objects_with_a_life_cycle() -> None:
    calls = []

    class Called:
        def open(self, runtime_context: Any) -> None:
            calls.append("open")

        def close(self) -> None:
            calls.append("close")

    class Upper(Called, MapFunction):  # type: ignore[type-arg]
        def map(self, value: Any) -> Any:
            return value.upper()

    class Longest(Called, ReduceFunction):
        def reduce(self, value1: Any, value2: Any) -> Any:
            return max(value1, value2, key=len)

    class Initial(KeySelector):
        def get_key(self, value: Any) -> Any:
            return value[0]

    out = run(lambda: KeyedReduceOperator(Initial(), Longest()), [RowBatch(["ab", "abc", "a"])])
    assert values(out) == ["ab", "abc", "abc"]
    assert calls == ["open", "close"]
    assert values(run(lambda: keyed_map(Initial(), Upper()), [RowBatch(["ab"])])) == ["AB"]
    assert calls == ["open", "close"] * 2


def test_a_failing_reduce_names_the_record_and_the_method() -> None:
    operator = started(lambda: KeyedReduceOperator(first, lambda a, b: a[1] / 0), context(call_site="job.py:7"))
    with pytest.raises(UserCodeError, match=r"created at job.py:7.*failed in reduce on record \('a', 2\)") as failure:
        list(answers(operator, RowBatch([("a", 1), ("b", 1), ("a", 2)])))
    assert isinstance(failure.value.__cause__, ZeroDivisionError)


def test_a_failing_sum_and_a_failing_selector_name_the_record() -> None:
    operator = started(lambda: KeyedSumOperator(first, 1), context())
    with pytest.raises(UserCodeError, match=r"failed in sum on record \('a', 'x'\)"):
        list(answers(operator, RowBatch([("a", 1), ("a", "x")])))
    with pytest.raises(UserCodeError, match=r"Could not extract key from \(\) in "):
        list(answers(operator, RowBatch([("a", 1), ()])))


@pytest.mark.parametrize("kind", ["sum", "max"])
def test_a_record_without_the_field_is_an_error_with_a_remedy(kind: str) -> None:
    operator = started(lambda: keyed_aggregation(first, kind, 7), context())
    with pytest.raises(UserCodeError, match="has no field 7; aggregate by a field it has"):
        list(answers(operator, RowBatch([("a", 1)])))


@pytest.mark.parametrize("key", [[{}], {"a": 1}, {"a"}])
def test_a_value_that_cannot_be_a_key_is_refused_with_a_remedy(key: Any) -> None:
    for make in (lambda: KeyedSumOperator(first, 1), lambda: KeyedReduceOperator(first, add)):
        with pytest.raises(UserCodeError, match="cannot be a key.*use tuple"):
            list(answers(started(make, context()), RowBatch([(key, 1)])))


def test_a_key_that_contains_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(UserCodeError, match="key is a list nested too deeply, which cannot be a key"):
        list(answers(started(lambda: KeyedSumOperator(first, 1), context()), RowBatch([(endless, 1)])))


@pytest.mark.parametrize(("kind", "position", "error"), [("mean", 1, ValueError), ("sum", 1.5, TypeError)])
def test_an_unknown_aggregation_or_position_is_refused(kind: str, position: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        keyed_aggregation(first, kind, position)


class Numbered(ReduceFunction):
    """Adds, and counts in state how often it was called for the key."""

    def open(self, runtime_context: Any) -> None:
        self.calls = runtime_context.get_state(ValueStateDescriptor("calls"))
        self.seen = runtime_context.get_map_state(MapStateDescriptor("seen"))

    def reduce(self, value1: Any, value2: Any) -> Any:
        self.calls.update((self.calls.value() or 0) + 1)
        self.seen.put(value2[1], True)
        return value1[0], value1[1] + value2[1], self.calls.value(), sorted(self.seen.keys())


@pytest.mark.spec("G01")
def test_a_reduce_function_sees_the_state_of_the_records_key() -> None:
    given = [RowBatch([("a", 1), ("b", 2), ("a", 3), ("a", 4)]), RowBatch([("b", 5), ("a", 1)])]
    out = verify(lambda: KeyedReduceOperator(first, Numbered()), given)
    assert values(out) == [
        ("a", 1), ("b", 2), ("a", 4, 1, [3]), ("a", 8, 2, [3, 4]), ("b", 7, 1, [5]), ("a", 9, 3, [1, 3, 4]),
    ]  # fmt: skip


def test_a_reduce_function_may_get_its_state_when_it_is_restored() -> None:
    class Counted(ReduceFunction):
        def initialize_state(self, context: Any) -> None:
            self.calls = context.get_keyed_state_store().get_state(ValueStateDescriptor("calls"))

        def snapshot_state(self, context: Any) -> None: ...

        def reduce(self, value1: Any, value2: Any) -> Any:
            self.calls.update((self.calls.value() or 0) + 1)
            return value1[0], self.calls.value()

    out = verify(lambda: KeyedReduceOperator(first, Counted()), [RowBatch([("a", 1), (1, 2), ("a", 3), (True, 4)])])
    assert values(out) == [("a", 1), (1, 2), ("a", 1), (1, 1)]


def test_a_state_with_the_name_of_the_operators_own_is_refused() -> None:
    class Clashing(ReduceFunction):
        def open(self, runtime_context: Any) -> None:
            runtime_context.get_state(ValueStateDescriptor(KeyedReduceOperator.state_name))

        def reduce(self, value1: Any, value2: Any) -> Any:
            return value1

    with pytest.raises(UserCodeError) as failure:
        started(lambda: KeyedReduceOperator(first, Clashing()), context())
    assert "state '_op_state' is the operator's own" in str(failure.value.__cause__)
