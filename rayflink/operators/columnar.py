"""map_batches: a user's function on whole batches of columns, as Arrow, polars or pandas."""

from __future__ import annotations

import importlib.util
import typing
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from rayflink.common.errors import PlanError
from rayflink.common.functions.function_classes import as_map
from rayflink.common.records.arrow_rows import rows_to_arrow
from rayflink.common.records.batches import ArrowBatch, Batch, Element

from .user_function import FunctionOperator

if TYPE_CHECKING:
    import pyarrow

FORMS = ("arrow", "table", "polars", "pandas")


class MapBatchesOperator(FunctionOperator):
    """Replaces each batch by `function(batch)`, which may have more, fewer or other rows.

    What is one batch depends on the flow of records; the function must not rely on it.

    Args:
        function: takes and returns a pyarrow RecordBatch or Table, or a polars or pandas DataFrame.
        form: what it takes: "arrow", "table", "polars" or "pandas"; None: by its annotation, "arrow" without one.
        timestamp_column: name under which the function finds and must return the rows' timestamps, int64 epoch
            milliseconds; None: rows keep their timestamps, which needs as many rows out as in.

    Raises:
        ValueError: `form` is unknown.
        PlanError: the package of the form is not installed.
    """

    def __init__(self, function: Any, form: str | None = None, timestamp_column: str | None = None) -> None:
        if form is not None and form not in FORMS:
            raise ValueError(f"form must be one of {', '.join(FORMS)}, found {form!r}")
        self._function = as_map(function)
        super().__init__(self._function)
        self._form = form or annotated_form(self._function.call)
        check_installed(self._form)
        self._timestamp_column = timestamp_column

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        data = batch.data if isinstance(batch, ArrowBatch) else rows_to_arrow(batch.values)
        stamps = batch.timestamps
        try:
            if self._timestamp_column is not None and stamps is not None:
                data = with_column(data, self._timestamp_column, stamps)
            result = from_form(self._function.call(to_form(data, self._form)))
            stamps, result = timed_result(result, stamps, data.num_rows, self._timestamp_column)
        except Exception as error:
            raise self.failure("map_batches", f"{data.num_rows} rows of {data.schema.names}") from error
        return (ArrowBatch(result, stamps),)


def timed_result(
    result: pyarrow.RecordBatch, stamps: Any, rows_in: int, column: str | None
) -> tuple[Any, pyarrow.RecordBatch]:
    """Return the timestamps of a result, and the result without the column that held them.

    Args:
        stamps: of the `rows_in` rows that went in; None: they had none.
        column: where the result has its timestamps; None: it has those of the rows that went in.

    Raises:
        ValueError: it is unknown which row has which timestamp.
    """
    import numpy

    if stamps is None:
        return None, result
    if column is not None:
        if column not in result.schema.names:
            raise ValueError(f"the result has no column {column!r} for its timestamps, only {result.schema.names}")
        times = result.column(column).to_numpy(zero_copy_only=False).astype("int64")
        return times, result.drop_columns([column])
    if result.num_rows != rows_in:
        raise ValueError(
            f"{rows_in} rows with timestamps became {result.num_rows} rows, and which row has which timestamp is "
            "unknown; pass timestamp_column="
        )
    return numpy.asarray(stamps, dtype="int64"), result


def annotated_form(call: Callable[..., Any]) -> str:
    """Return the form that a function's first parameter is annotated with, or "arrow"."""
    target = call if hasattr(call, "__annotations__") else getattr(call, "__call__", call)  # noqa: B004
    try:
        hints: dict[str, Any] = typing.get_type_hints(target)
    except Exception:  # an annotation whose names are not there at run time: its text says enough
        hints = dict(getattr(target, "__annotations__", {}))
    first = next((hint for name, hint in hints.items() if name not in ("return", "self")), None)
    text = first if isinstance(first, str) else f"{getattr(first, '__module__', '')}.{getattr(first, '__name__', '')}"
    if text.startswith(("polars", "pl.")):
        return "polars"
    if text.startswith(("pandas", "pd.")):
        return "pandas"
    return "table" if text.startswith(("pyarrow", "pa.")) and text.endswith("Table") else "arrow"


def check_installed(form: str) -> None:
    """Look for the package of a form, also in the user's line, long before the first batch.

    Raises:
        PlanError: it is not installed.
    """
    if form in ("pandas", "polars") and importlib.util.find_spec(form) is None:
        problem = f"a function of map_batches takes {form}, which is not installed"
        raise PlanError(problem, f"run `pip install {form}` here and on every node, or take the form 'arrow'")


def to_form(data: pyarrow.RecordBatch, form: str) -> Any:
    """Return columns in the form a user's function takes."""
    import pyarrow

    if form == "arrow":
        return data
    if form == "pandas":
        return data.to_pandas()
    table = pyarrow.Table.from_batches([data])
    if form == "table":
        return table
    import polars

    return polars.from_arrow(table)


def from_form(result: Any, caller: str = "map_batches") -> pyarrow.RecordBatch:
    """Return a result in any of the forms as one RecordBatch.

    Args:
        caller: name of what returned it, for messages.

    Raises:
        TypeError: the result is in none of them.
    """
    import pyarrow

    if isinstance(result, pyarrow.RecordBatch):
        return result
    origin = type(result).__module__.partition(".")[0]
    if origin == "polars" and hasattr(result, "to_arrow"):
        result = result.to_arrow()
    elif origin == "pandas" and hasattr(result, "columns"):
        result = pyarrow.Table.from_pandas(result, preserve_index=False)
    if not isinstance(result, pyarrow.Table):
        wanted = "a pyarrow RecordBatch or Table, or a polars or pandas DataFrame"
        raise TypeError(f"{wanted} is wanted as result of {caller}, found {type(result).__name__}")
    batches = result.combine_chunks().to_batches()
    return batches[0] if batches else pyarrow.RecordBatch.from_pylist([], schema=result.schema)


def with_column(data: pyarrow.RecordBatch, name: str, stamps: Any) -> pyarrow.RecordBatch:
    """Return the rows with their timestamps as a further column.

    Raises:
        ValueError: they have a column of that name.
    """
    import pyarrow

    if name in data.schema.names:
        raise ValueError(f"timestamp_column {name!r} is a column of the records already; use another name")
    return data.append_column(name, pyarrow.array(stamps, pyarrow.int64()))
