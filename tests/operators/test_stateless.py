"""map, flat_map, filter, project."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common.functions.function_classes import (
    FilterFunction,
    FlatMapFunction,
    MapFunction,
    RichFunction,
    RuntimeContext,
)
from rayflink.common.records.batches import ArrowBatch, RowBatch
from rayflink.operators.base import UserCodeError
from rayflink.operators.stateless import FilterOperator, FlatMapOperator, MapOperator, ProjectOperator
from tests.operators.running import opened, run, under_every_split, values


@pytest.mark.spec("C02")
def test_map_flat_map_and_filter_work_record_by_record_under_every_split() -> None:
    numbers = lambda: [1, 2, 3, 4]  # noqa: E731
    stamps = [10, 20, 30, 40]
    assert under_every_split(lambda: MapOperator(lambda x: x * 2), numbers, stamps) == [
        (None, 2, 10), (None, 4, 20), (None, 6, 30), (None, 8, 40),
    ]  # fmt: skip
    assert under_every_split(lambda: FilterOperator(lambda x: x % 2), numbers, stamps) == [
        (None, 1, 10), (None, 3, 30),
    ]  # fmt: skip
    assert under_every_split(lambda: FlatMapOperator(lambda x: ["a"] * (x - 1)), numbers, stamps) == [
        (None, "a", 20), (None, "a", 30), (None, "a", 30), (None, "a", 40), (None, "a", 40), (None, "a", 40),
    ]  # fmt: skip


def test_records_without_timestamps_stay_without() -> None:
    for operator in (MapOperator(abs), FilterOperator(bool), FlatMapOperator(lambda x: [x])):
        assert run(operator, [RowBatch([1])]) == [(None, 1, None)]


@given(st.lists(st.integers(0, 30), max_size=12), st.integers(1, 9))
def test_a_generator_gives_the_same_whatever_the_chunk(counts: list[int], chunk: int) -> None:
    def repeat(count: int) -> Iterator[tuple[int, int]]:
        for index in range(count):
            yield count, index

    want = [(None, (count, i), 5) for count in counts for i in range(count)]
    assert run(FlatMapOperator(repeat, chunk), [RowBatch(counts, [5] * len(counts))]) == want
    bare = run(FlatMapOperator(repeat, chunk), [RowBatch(counts)])
    assert [value for _, value, _ in bare] == [value for _, value, _ in want]


def test_one_record_with_very_many_results_is_drawn_chunk_by_chunk() -> None:
    drawn = []

    def many(_: int) -> Iterator[int]:
        for index in range(10**9):
            drawn.append(index)
            yield index

    answers = iter(opened(FlatMapOperator(many, 100)).process(RowBatch([0]), 0))
    assert next(answers) == RowBatch(list(range(100)))
    assert len(drawn) == 100
    assert next(answers).values[0] == 100
    answers.close()  # type: ignore[attr-defined]
    assert len(drawn) == 200


def test_flat_map_takes_none_tuples_sets_and_strings() -> None:
    results = [None, (1, 2), [], {3}, "ab"]
    assert values(run(FlatMapOperator(lambda i: results[i]), [RowBatch([0, 1, 2, 3, 4])])) == [1, 2, 3, "a", "b"]


def test_function_objects_are_opened_with_their_context_and_closed_once() -> None:
    calls: list[str] = []

    class Numbered(MapFunction, RichFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            super().open(runtime_context)
            calls.append("open")

        def map(self, value: str) -> str:
            return f"{value}@{self.get_runtime_context().get_index_of_this_subtask()}"

        def close(self) -> None:
            calls.append("close")

    assert values(run(MapOperator(Numbered()), [RowBatch(["a", "b"])], subtask=3)) == ["a@3", "b@3"]
    assert calls == ["open", "close"]


def test_flat_map_and_filter_functions_are_taken_as_objects_too() -> None:
    class Words(FlatMapFunction):
        def flat_map(self, value: str) -> list[str]:
            return value.split()

    class Short(FilterFunction):
        def filter(self, value: str) -> bool:
            return len(value) < 3

    assert values(run(FlatMapOperator(Words()), [RowBatch(["to be", "or"])])) == ["to", "be", "or"]
    assert values(run(FilterOperator(Short()), [RowBatch(["to", "not"])])) == ["to"]


@pytest.mark.parametrize(
    ("operator", "where"),
    [
        (MapOperator(lambda x: 1 // x), "map"),
        (FilterOperator(lambda x: 1 // x), "filter"),
        (FlatMapOperator(lambda x: [1 // x]), "flat_map"),
        (FlatMapOperator(lambda x: (1 // x for _ in "a")), "flat_map"),
    ],
)
@pytest.mark.parametrize("timestamps", [None, [1, 2, 3]])
def test_a_failing_function_is_reported_with_record_operator_line_and_cause(
    operator: MapOperator, where: str, timestamps: list[int] | None
) -> None:
    with pytest.raises(UserCodeError) as failure:
        run(operator, [RowBatch([2, 0, 1], timestamps)], operator_name="halve", call_site="job.py:7")
    error = failure.value
    assert (error.operator, error.call_site, error.record, error.where) == ("halve", "job.py:7", "0", where)
    assert isinstance(error.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("method", ["open", "close"])
def test_failures_in_open_and_close_name_the_method(method: str) -> None:
    class Failing(MapFunction):
        def map(self, value: int) -> int:
            return value

        def open(self, runtime_context: RuntimeContext) -> None:
            if method == "open":
                raise OSError("no")

        def close(self) -> None:
            if method == "close":
                raise OSError("no")

    with pytest.raises(UserCodeError, match=f"failed in {method}: OSError: no"):
        run(MapOperator(Failing()), [RowBatch([1])])


def test_a_function_whose_open_failed_is_still_closed() -> None:
    closed = []

    class Failing(MapFunction):
        def map(self, value: int) -> int:
            return value

        def open(self, runtime_context: RuntimeContext) -> None:
            raise OSError("no")

        def close(self) -> None:
            closed.append(1)

    operator = MapOperator(Failing())
    with pytest.raises(UserCodeError):
        opened(operator)
    operator.close()
    operator.close()
    assert closed == [1]


def test_what_is_no_function_is_refused_with_the_remedy() -> None:
    class Doubled(MapFunction):
        def map(self, value: int) -> int:
            return 2 * value

    async def later(value: int) -> int:
        return value

    with pytest.raises(TypeError, match=re.escape("pass an instance: Doubled(...)")):
        MapOperator(Doubled)
    with pytest.raises(TypeError, match="use AsyncDataStream"):
        MapOperator(later)
    with pytest.raises(TypeError, match="a FilterFunction or a callable is wanted, found int"):
        FilterOperator(3)


def test_project_keeps_fields_of_rows_and_columns_of_arrow() -> None:
    assert under_every_split(lambda: ProjectOperator(2, 0), lambda: [(1, 2, 3), (4, 5, 6)]) == [
        (None, (3, 1), None), (None, (6, 4), None),
    ]  # fmt: skip
    assert values(run(ProjectOperator(1), [RowBatch([(1, 2)])])) == [(2,)]
    with pytest.raises(ValueError, match="at least one"):
        ProjectOperator()
    with pytest.raises(UserCodeError, match="failed in project on record"):
        run(ProjectOperator(1), [RowBatch([(1,)])])


def test_project_of_columns_stays_columns() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    batch = ArrowBatch(pyarrow.RecordBatch.from_pydict({"a": [1], "b": [2], "c": [3]}))
    (answer,) = opened(ProjectOperator(2, 0)).process(batch, 0)
    assert isinstance(answer, ArrowBatch) and answer.data.to_pydict() == {"c": [3], "a": [1]}


def test_columns_reach_a_row_function_as_rows_with_names_and_keep_timestamps() -> None:
    numpy, pyarrow = pytest.importorskip("numpy"), pytest.importorskip("pyarrow")
    batch = ArrowBatch(pyarrow.RecordBatch.from_pydict({"a": [1, 2], "b": ["x", None]}), numpy.array([7, 8]))
    out = run(MapOperator(lambda row: (row.a, row["b"])), [batch])
    assert out == [(None, (1, "x"), 7), (None, (2, None), 8)]
    assert all(type(stamp) is int for _, _, stamp in out)
