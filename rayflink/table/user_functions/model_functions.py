"""Functions that predict by a model of the provider `python`: a function or a class that the model names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence

from rayflink.common.types import Row
from rayflink.user_types import UserValue

from .function_classes import AsyncScalarFunction, FunctionContext, ScalarFunction

__all__ = ["AwaitedPrediction", "ColumnPrediction", "is_async"]


class _Model:
    """The function of a model, or the method `predict` of an object of its class, made in the task that calls it.

    Args:
        named: what the model names.
        options: of the model, for the class.
    """

    def __init__(self, named: Callable[..., UserValue], options: Mapping[str, str]) -> None:
        self._named, self._options = named, dict(options)
        self._object: object = None

    def opened(self) -> Callable[..., UserValue]:
        """Return what is called; an object is made here."""
        if not inspect.isclass(self._named):
            return self._named
        create: Callable[..., UserValue] = self._named
        self._object = model = create(self._options)
        predict: Callable[..., UserValue] = model.predict
        return predict

    def close(self) -> None:
        """Close the object, if it can be closed."""
        close = getattr(self._object, "close", None)
        if close is not None:
            close()


class ColumnPrediction(ScalarFunction):
    """Calls a model with columns, for which it gives columns.

    Args:
        named: the function or class.
        options: of the model.
        outputs: names of the columns that it gives.
    """

    def __init__(self, named: Callable[..., UserValue], options: Mapping[str, str], outputs: Sequence[str]) -> None:
        self._model, self._outputs = _Model(named, options), tuple(outputs)
        self._predict: Callable[..., UserValue] | None = None

    def open(self, function_context: FunctionContext) -> None:
        self._predict = self._model.opened()

    def eval(self, *columns: UserValue) -> UserValue:
        assert self._predict is not None, "open() is called before"
        return self._table(self._predict(*columns))

    def close(self) -> None:
        self._model.close()

    def is_deterministic(self) -> bool:
        return False

    def _table(self, result: UserValue) -> UserValue:
        """Return what a model gives as a table: it may be a mapping, a table or frame, or the only column."""
        import pyarrow

        if isinstance(result, Mapping):
            missing = [name for name in self._outputs if name not in result]
            if missing:
                raise ValueError(f"the model gives no column {missing[0]!r}; it gives {', '.join(map(str, result))}")
            return pyarrow.table({name: _column(result[name]) for name in self._outputs})
        if len(self._outputs) == 1 and not (hasattr(result, "columns") or hasattr(result, "column_names")):
            return pyarrow.table({self._outputs[0]: _column(result)})
        return result


class AwaitedPrediction(AsyncScalarFunction):
    """Calls an asynchronous model with the values of a row, for which it gives values; those of many rows are awaited.

    Args:
        named: the function or class.
        options: of the model.
        outputs: names of the columns that it gives.
    """

    def __init__(self, named: Callable[..., UserValue], options: Mapping[str, str], outputs: Sequence[str]) -> None:
        self._model, self._outputs = _Model(named, options), tuple(outputs)
        self._predict: Callable[..., UserValue] | None = None

    def open(self, function_context: FunctionContext) -> None:
        self._predict = self._model.opened()

    async def eval(self, *values: UserValue) -> Row:
        assert self._predict is not None, "open() is called before"
        result = await self._predict(*values)
        if isinstance(result, Mapping):
            return Row(*(result[name] for name in self._outputs))
        return Row(*result) if isinstance(result, (tuple, list, Row)) else Row(result)

    def close(self) -> None:
        self._model.close()

    def is_deterministic(self) -> bool:
        return False


def is_async(named: object) -> bool:
    """Return whether a model is called by `await`."""
    return inspect.iscoroutinefunction(getattr(named, "predict", None) if inspect.isclass(named) else named)


def _column(values: UserValue) -> UserValue:
    import pyarrow

    return values if isinstance(values, (pyarrow.Array, pyarrow.ChunkedArray)) else pyarrow.array(
        values, from_pandas=True
    )  # fmt: skip
