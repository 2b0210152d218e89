"""The harness agrees with operators that are right, and catches each way of being wrong by its own hardship."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest

from rayflink.common.functions.function_classes import KeyedCoProcessFunction
from rayflink.common.output_tag import OutputTag
from rayflink.common.records.batches import Batch, Element, RowBatch, Tagged, Watermark, rows_of
from rayflink.operators.base import Operator, OperatorSnapshot
from rayflink.operators.capabilities import PreBarrier
from rayflink.operators.keyed.keyed_two_input import KeyedCoProcessOperator
from rayflink.operators.keyed.rolling import KeyedReduceOperator
from rayflink.operators.process import ProcessOperator
from rayflink.operators.stateless import FilterOperator, FlatMapOperator, MapOperator
from rayflink.operators.two_input import CoMapOperator
from rayflink.state.descriptors import ListStateDescriptor
from rayflink.state.snapshots import InlineSnapshots, loaded, stored
from rayflink.testing import HARDSHIPS, MAX_WATERMARK, active, at, columns, end, idle, in2, rec, side, verify, wm


def add(left: tuple[str, int], right: tuple[str, int]) -> tuple[str, int]:
    return left[0], left[1] + right[1]


def rolling() -> Operator:
    return KeyedReduceOperator(lambda pair: pair[0], add)


def test_a_right_operator_passes_every_hardship():
    verify(
        rolling,
        elements=[rec(("a", 1), 1), rec(("b", 5), 2), rec(("a", 2), 3), wm(3), rec(("b", 1), 4), end()],
        then=[rec(("a", 1), 1), rec(("b", 5), 2), rec(("a", 3), 3), wm(3), rec(("b", 6), 4), MAX_WATERMARK],
    )


def test_records_without_timestamps_stay_without():
    verify(lambda: MapOperator(len), elements=[rec("ab"), rec("c", 4)], then=[rec(2), rec(1, 4)])


def test_several_operators_run_as_a_chain():
    verify(
        lambda: [FlatMapOperator(str.split), FilterOperator(lambda word: word != "b"), MapOperator(str.upper)],
        elements=[rec("a b c", 1), wm(1), rec("b", 2), rec("d a", 3)],
        then=[rec("A", 1), rec("C", 1), wm(1), rec("D", 3), rec("A", 3)],
    )


def test_side_outputs_are_compared_by_themselves_between_the_watermarks():
    odd = OutputTag("odd")

    def sort(n: int, ctx: Any) -> Iterable[Any]:
        yield (odd, n) if n % 2 else n

    given = [rec(1), rec(2), rec(3), wm(5), rec(5)]
    verify(lambda: ProcessOperator(sort), given, then=[rec(2), side(odd, 1), side("odd", 3), wm(5), side(odd, 5)])
    with pytest.raises(AssertionError, match="side output 'odd' differs"):
        verify(lambda: ProcessOperator(sort), given, then=[rec(2), side(odd, 1), wm(5), side(odd, 3), side(odd, 5)])


def test_a_side_output_that_the_case_does_not_name_is_shown():
    with pytest.raises(AssertionError, match=r"(?s)side output 'late' differs.*\+ side\('late', 1\)"):
        verify(lambda: ProcessOperator(lambda n, ctx: [(OutputTag("late"), n)]), elements=[rec(1)], then=[])


def test_the_watermark_of_two_inputs_is_the_smaller_one():
    verify(
        lambda: CoMapOperator((str.upper, str)),
        elements=[rec("a", 1), in2(rec(7, 2)), wm(10), in2(wm(6)), in2(wm(12)), in2(idle()), wm(15), in2(active())],
        then=[rec("A", 1), rec("7", 2), wm(6), wm(10), wm(15)],
    )


def test_idleness_reaches_the_operator():
    verify(lambda: MapOperator(str), elements=[wm(1), idle(), active(), wm(2)], then=[wm(1), idle(), active(), wm(2)])


def test_arrow_batches_are_given_as_columns_and_seen_as_rows():
    table = pa.record_batch({"n": [1, 2, 3]})
    verify(lambda: MapOperator(lambda row: row.n + 1), elements=[columns(table)], then=[rec(2), rec(3), rec(4)])


def test_two_inputs_moments_and_watermarks_in_a_row_keep_their_order_in_a_job():
    class Witness(KeyedCoProcessFunction):
        """Tells each input, and each firing, with the times it knows."""

        def _told(self, what: str, value: Any, ctx: Any) -> tuple[str, Any, int, int]:
            timers = ctx.timer_service()
            return what, value, timers.current_processing_time(), timers.current_watermark()

        def process_element1(self, value: Any, ctx: Any) -> Iterable[Any]:
            ctx.timer_service().register_processing_time_timer(value[1])
            yield self._told("first", value, ctx)

        def process_element2(self, value: Any, ctx: Any) -> Iterable[Any]:
            ctx.timer_service().register_event_time_timer(value[1])
            yield self._told("second", value, ctx)

        def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
            yield self._told("timer", timestamp, ctx)

    def key(value: Any) -> Any:
        return value[0]

    given = [
        rec(("a", 7)), in2(rec(("b", 5))), at(3), rec(("b", 9)), wm(4), in2(wm(5)), wm(6), wm(8), in2(wm(8)), at(8),
        in2(rec(("a", 9))), at(9), in2(rec(("a", 10))), rec(("c", 20)), wm(30), in2(wm(9)), in2(idle()), wm(31),
    ]  # fmt: skip
    verify(lambda: KeyedCoProcessOperator(key, key, Witness()), given)


# planted faults: an operator that breaks one law is caught by the hardship that is there for it


class Broken(Operator):
    """Passes records on; subclasses break one law."""

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        return (batch,)


class GroupsByValue(Broken):
    """Reorders across keys within a batch."""

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        return (RowBatch(sorted(rows_of(batch))),)


class CountsBatches(Broken):
    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        self.seen = getattr(self, "seen", 0) + 1
        return (RowBatch([(value, self.seen) for value in rows_of(batch)]),)


class ForgetsItsState(Broken):
    """Keeps a sum that no snapshot holds."""

    total = 0

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        for value in rows_of(batch):
            self.total += value
            yield RowBatch([self.total])


class ResetsOnSnapshot(ForgetsItsState):
    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot | None:
        self.total, total = 0, self.total
        return OperatorSnapshot(lists={"total": ("split", (str(total).encode(),))})

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        for snapshot in snapshots:
            self.total = int(snapshot.lists["total"][1][0])


class Unique:
    """Stays itself when copied, and becomes another when it travels."""

    def __deepcopy__(self, memo: Any) -> Unique:
        return self


THE_OBJECT = Unique()


class KnowsTheObject(Broken):
    """Takes its input for the very object the program had."""

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        return (RowBatch([value is THE_OBJECT for value in rows_of(batch)]),)


class CountsCheckpoints(Broken, PreBarrier):
    """Adds to its output what was not in its input."""

    def prepare_snapshot(self, checkpoint_id: int) -> Iterable[Element]:
        return (RowBatch([f"checkpoint {checkpoint_id}"]),)


class WatermarkBeforeItsTimer(KeyedReduceOperator):
    """Passes a watermark on before what it causes."""

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        yield watermark
        yield RowBatch([("timer", watermark.timestamp)])


class StateOfTheTask(KeyedReduceOperator):
    """Mixes the records of all keys of its subtask."""

    last: Any = None

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        for value in rows_of(batch):
            self.last, last = value, self.last
            yield RowBatch([(value, last)])


def records(*values: Any) -> list[Any]:
    return [rec(value) for value in values]


ALL_BUT = {name: [other for other in HARDSHIPS if other != name] for name in HARDSHIPS}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("operator", "given", "hardship"),
    [
        (GroupsByValue, records(3, 1, 2), "in one batch"),
        (GroupsByValue, records(3, 1, 2, 0), "random splits"),
        (CountsBatches, records(1, 1), "in one batch"),
        (ResetsOnSnapshot, [rec(1), wm(1), rec(2)], "a snapshot after each step"),
        (ForgetsItsState, [rec(1), wm(1), rec(2)], "restored after each step"),
        (ForgetsItsState, records(1, 2), "restored after each record"),
        (KnowsTheObject, [rec(THE_OBJECT)], "as a job in this process"),
        (CountsBatches, records(*range(100)), "as a job in this process"),
        (CountsBatches, records(*range(100)), "as a simulated job"),
        (CountsCheckpoints, records(*range(100)), "as a simulated job"),
    ],
)
def test_a_broken_law_is_caught_by_its_hardship(operator, given, hardship):
    with pytest.raises(AssertionError, match=f"^{hardship}"):
        verify(operator, given, without=ALL_BUT[hardship])


def test_one_batch_and_one_record_a_batch_are_compared_with_what_is_expected():
    for hardship in ("in one batch", "one record a batch"):
        with pytest.raises(AssertionError, match=f"^{hardship}: the main output differs"):
            verify(Broken, elements=records(1), then=records(2), without=ALL_BUT[hardship])


def test_a_watermark_before_its_timer_is_caught():
    make = lambda: WatermarkBeforeItsTimer(lambda pair: pair[0], add)  # noqa: E731
    with pytest.raises(AssertionError, match=r"- wm\(5\)"):
        verify(make, elements=[wm(5)], then=[rec(("timer", 5)), wm(5)])


def test_state_that_is_not_by_key_is_caught_by_three_subtasks():
    make = lambda: StateOfTheTask(lambda pair: pair[0], add)  # noqa: E731
    given = [rec((key, 1)) for key in "abcdefgh"]
    with pytest.raises(AssertionError, match=r"^three subtasks \(after"):
        verify(make, given, without=ALL_BUT["three subtasks"])


def test_keyed_state_that_stays_behind_on_a_rescale_is_caught():
    class KeepsItsGroups(KeyedReduceOperator):
        def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot | None:
            whole = super().snapshot_state(checkpoint_id)
            assert whole is not None
            inline = InlineSnapshots()
            keyed = loaded(stored(whole, inline), inline).keyed
            return OperatorSnapshot({g: data for g, data in keyed.items() if g % 3 == 0})

    given = [rec((key, 1)) for key in "abcdefgh" * 2]
    with pytest.raises(AssertionError, match="^three subtasks become two"):
        verify(lambda: KeepsItsGroups(lambda pair: pair[0], add), given, without=ALL_BUT["three subtasks become two"])


def test_split_lists_are_dealt_once_at_a_rescale():
    class Gathers(KeyedReduceOperator):
        """Keeps records in operator state; gives them at the end."""

        kept = ListStateDescriptor("kept")

        def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
            self.function_state.store.get_list_state(self.kept).add_all(rows_of(batch))
            return ()

        def finish(self) -> Iterable[Element]:
            return (RowBatch(list(self.function_state.store.get_list_state(self.kept))),)

    given = [*(rec((key, 1)) for key in "abcdefgh"), end()]
    verify(lambda: Gathers(lambda pair: pair[0], add), given, [MAX_WATERMARK, *given[:-1]])


@pytest.mark.slow
def test_values_that_user_code_changes_are_fresh_in_every_run():
    def grow(value: list[int]) -> list[int]:
        value.append(0)
        return value

    verify(lambda: MapOperator(grow), elements=[rec([1]), rec([2])], then=[rec([1, 0]), rec([2, 0])])


def test_the_difference_names_the_hardship_and_shows_both_sides():
    with pytest.raises(AssertionError) as caught:
        verify(lambda: MapOperator(lambda n: n + 1), elements=[rec(1, 5), wm(6)], then=[rec(3, 5), wm(6)])
    assert str(caught.value).splitlines() == [
        "in one batch: the main output differs (- expected, + found)",
        "  - rec(3, 5)",
        "  + rec(2, 5)",
        "    wm(6)",
    ]


def test_hardships_left_out_must_exist():
    with pytest.raises(ValueError, match="found .'on mars'. in without; the hardships are in one batch"):
        verify(Broken, [], [], without=["on mars"])


def test_time_and_the_end_belong_to_both_inputs():
    with pytest.raises(TypeError, match="write it without in2"):
        in2(at(5))  # type: ignore[arg-type]


@pytest.mark.slow
def test_an_unexpected_side_output_of_a_batch_counts_its_records():
    class Sends(Broken):
        def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
            yield Tagged("t", batch)

    verify(Sends, elements=records(1, 2), then=[side("t", 1), side("t", 2)])
