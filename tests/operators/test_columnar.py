"""map_batches, and Arrow rows as records and back."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import pytest

from rayflink.common.errors import PlanError
from rayflink.common.records.arrow_rows import arrow_to_rows, rows_to_arrow
from rayflink.common.records.batches import ArrowBatch, RowBatch
from rayflink.common.types import Row
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.operators.base import UserCodeError
from rayflink.operators.columnar import MapBatchesOperator, annotated_form
from tests.operators.running import opened, run

numpy = pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")
pd = pytest.importorskip("pandas")


def _batch(stamps: Any = None) -> ArrowBatch:
    return ArrowBatch(pa.RecordBatch.from_pydict({"a": [1, 2, 3]}), stamps)


def _out(operator: MapBatchesOperator, batch: Any) -> ArrowBatch:
    (answer,) = opened(operator).process(batch, 0)
    assert isinstance(answer, ArrowBatch) and isinstance(answer.data, pa.RecordBatch)
    return answer


@pytest.mark.parametrize(
    ("form", "kind"),
    [
        ("arrow", "RecordBatch"),
        ("table", "Table"),
        ("polars", "DataFrame"),
        ("pandas", "DataFrame"),
        (None, "RecordBatch"),
    ],
)
def test_the_function_gets_the_form_it_asks_for_and_may_return_it(form: str | None, kind: str) -> None:
    seen: list[Any] = []

    def same(data: Any) -> Any:
        seen.append(data)
        return data

    assert _out(MapBatchesOperator(same, form), _batch()).data.to_pydict() == {"a": [1, 2, 3]}
    assert type(seen[0]).__name__ == kind
    if form in ("polars", "pandas"):
        assert type(seen[0]).__module__.startswith(form)


def test_an_annotation_chooses_the_form() -> None:
    def as_polars(data: pl.DataFrame) -> pl.DataFrame:
        return data

    def as_pandas(data: pd.DataFrame) -> None: ...
    def as_table(data: pa.Table) -> None: ...
    def unknown(data: polars.DataFrame) -> None: ...  # type: ignore[name-defined] # noqa: F821

    class Method:
        def map(self, data: pl.DataFrame) -> Any:
            return data

    forms = [annotated_form(f) for f in (as_polars, as_pandas, as_table, unknown, Method().map, lambda data: data)]
    assert forms == ["polars", "pandas", "table", "polars", "polars", "arrow"]


def test_rows_keep_their_timestamps_while_their_number_stays() -> None:
    operator = MapBatchesOperator(lambda data: data.append_column("b", data.column("a")))
    answer = _out(operator, _batch(numpy.array([7, 8, 9])))
    assert answer.data.to_pydict() == {"a": [1, 2, 3], "b": [1, 2, 3]} and answer.timestamps.tolist() == [7, 8, 9]


def test_another_number_of_rows_needs_the_timestamps_as_a_column() -> None:
    stamps = numpy.array([7, 8, 9])
    with pytest.raises(UserCodeError, match="3 rows with timestamps became 1 rows.*pass timestamp_column="):
        _out(MapBatchesOperator(lambda data: data.slice(1, 1)), _batch(stamps))
    answer = _out(MapBatchesOperator(lambda data: data.slice(1, 1), timestamp_column="t"), _batch(stamps))
    assert answer.data.to_pydict() == {"a": [2]} and answer.timestamps.tolist() == [8]
    with pytest.raises(UserCodeError, match="no column 't'"):
        _out(MapBatchesOperator(lambda data: data.select(["a"]), timestamp_column="t"), _batch(stamps))
    with pytest.raises(UserCodeError, match="a column of the records already"):
        _out(MapBatchesOperator(lambda data: data, timestamp_column="a"), _batch(stamps))


def test_rows_become_columns_for_the_function_and_rows_again_after_it() -> None:
    def doubled(data: pl.DataFrame) -> pl.DataFrame:
        return data.with_columns(pl.col("f1") * 2)

    out = run(MapBatchesOperator(doubled), [RowBatch([("x", 1), ("y", 2)], [5, 6])])
    assert out == [(None, Row(f0="x", f1=2), 5), (None, Row(f0="y", f1=4), 6)]


def test_other_results_and_forms_are_refused() -> None:
    with pytest.raises(UserCodeError, match="is wanted as result of map_batches, found int"):
        _out(MapBatchesOperator(lambda data: 3), _batch())
    with pytest.raises(ValueError, match="form must be one of arrow, table, polars, pandas, found 'numpy'"):
        MapBatchesOperator(lambda data: data, "numpy")


@pytest.mark.parametrize("form", ["pandas", "polars"])
def test_a_form_whose_package_is_missing_is_refused_in_the_users_line(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def annotated(data: Any) -> Any:
        return data

    annotated.__annotations__["data"] = f"{form}.DataFrame"
    numbers = StreamExecutionEnvironment({"execution.target": "local"}).from_collection([1])
    monkeypatch.setitem(sys.modules, form, None)
    for wanted in ((annotated,), (lambda data: data, form), (lambda data: data, form, None, 2)):
        with pytest.raises(PlanError, match=f"takes {form}, which is not installed; run `pip install {form}`"):
            numbers.map_batches(*wanted)


def test_an_empty_result_keeps_its_schema() -> None:
    answer = _out(MapBatchesOperator(lambda table: table.slice(0, 0), "table"), _batch())
    assert answer.data.num_rows == 0 and answer.data.schema.names == ["a"]


class Point(NamedTuple):
    x: int
    y: int


@pytest.mark.parametrize(
    ("rows", "want"),
    [
        ([Row(a=1, b="x"), Row(a=None, b="y")], {"a": [1, None], "b": ["x", "y"]}),
        ([Row(1, 2)], {"f0": [1], "f1": [2]}),
        ([(1, "a"), [2, "b"]], {"f0": [1, 2], "f1": ["a", "b"]}),
        ([Point(1, 2)], {"x": [1], "y": [2]}),
        ([{"a": 1}, {"a": 2, "b": 3}], {"a": [1, 2]}),
        (["x", "y"], {"value": ["x", "y"]}),
    ],
)
def test_records_of_any_kind_become_columns(rows: list[Any], want: dict[str, list[Any]]) -> None:
    assert rows_to_arrow(rows).to_pydict() == want


def test_named_rows_go_to_arrow_and_back_by_name() -> None:
    rows = [Row(a=1, b="x"), Row(b="y", a=2)]
    assert arrow_to_rows(rows_to_arrow(rows)) == rows
    schema = pa.schema([("b", pa.string()), ("a", pa.int16())])
    assert rows_to_arrow(rows, schema).to_pydict() == {"b": ["x", "y"], "a": [1, 2]}
    assert rows_to_arrow([], schema).schema == schema


def test_records_that_fit_no_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="differ in their number of fields: 2 and 1"):
        rows_to_arrow([(1, 2), (3,)])
    with pytest.raises(ValueError, match="records have 2 fields, but 1 columns are wanted"):
        rows_to_arrow([(1, 2)], names=["a"])
    twice = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(ValueError, match="equal names"):
        arrow_to_rows(twice)


def test_a_moment_that_python_lacks_is_told_with_its_column():
    far = pa.RecordBatch.from_arrays([pa.array([1 << 58], pa.timestamp("us", "UTC"))], names=["at"])
    with pytest.raises(ValueError, match=r"column 'at' \(timestamp\[us, tz=UTC\]\) has a value .* lacks .*cast"):
        arrow_to_rows(far)
