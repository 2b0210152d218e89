"""Rolling reduce and sum on keyed streams: every record updates its key's value and emits it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rayflink.common.functions.function_classes import Function, as_reduce
from rayflink.common.records.batches import Batch, Element, RowBatch
from rayflink.common.records.purity import holds_nothing
from rayflink.common.records.row_columns import Coded, RowColumns, in_use
from rayflink.state.backend import NO_KEY
from rayflink.state.descriptors import ValueStateDescriptor
from rayflink.state.value_isolation import IMMUTABLE_TYPES, is_immutable, isolated

from ..base import OperatorSnapshot, UserCodeError, shortened
from ..user_function import list_of, timestamps_of
from .aggregations import Position, aggregation, field_of, misfit
from .keyed_operator import KeyedOperator

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LARGEST = 1 << 62
"""Totals below it fit into 64 bits, whatever one batch adds."""
ABSENT: Any = object()
"""Stands for the value of a key that has none."""


class KeyedReduceOperator(KeyedOperator):
    """Emits, for each record, the reduction of all records of its key so far; the first is emitted as it is.

    The result keeps the record's timestamp. The emitted object is never the one in state, unless it is immutable.

    Args:
        key_selector: a KeySelector or a callable.
        function: a ReduceFunction or a callable of the old value and the record. What has an `open` of its own may use
            the state of the record's key.
    """

    state_name = "_op_state"
    gives_running_results = True
    where = "reduce"
    position: Position | None = None
    """The field every record must have; None: whatever the function wants."""

    def __init__(self, key_selector: Any, function: Any) -> None:
        self._function = as_reduce(function)
        super().__init__(key_selector, self._function)
        self._sets_key = bool(self._function.checkpointed) or has_open(function)

    def declare_state(self) -> None:
        self._table = self.backend.table(ValueStateDescriptor(self.state_name))

    def open(self) -> None:
        super().open()
        self._trusted = holds_nothing(self._function.call)

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        keys = self.keys_of(batch)
        table = self._table
        state = table.load(keys)
        results = self.reduce_batch(keys, list_of(batch), state)
        if table.tracks_changes:
            table.changed(keys)
        return (RowBatch(results, timestamps_of(batch)),)

    def reduce_batch(self, keys: list[Any], values: list[Any], state: dict[Any, Any]) -> list[Any]:
        """Return the results of a batch, one a record; `state` is brought up to date."""
        get, absent, immutable, reduce = state.get, ABSENT, IMMUTABLE_TYPES, self._function.call
        context, sets_key = self.context, self._sets_key
        results: list[Any] = []
        emit = results.append
        key = value = None
        try:
            for key, value in zip(keys, values, strict=True):
                if sets_key:
                    context.key = key = self.canonical(key, value)
                old = get(key, absent)
                if old is absent:
                    key = self.canonical(key, value)
                    old = get(key, absent)
                    if self.position is not None:
                        field_of(value, self.position)  # a first record is not combined; it must have the field too
                result = value if old is absent else reduce(old, value)
                kind = result.__class__
                if kind is tuple and len(result) == 2:
                    first, second = result
                    shared = first.__class__ in immutable and second.__class__ in immutable or is_immutable(result)
                else:
                    shared = kind in immutable or is_immutable(result)
                state[key] = result if shared else isolated(result)
                emit(result if shared or self._trusted else isolated(result))
        except UserCodeError:
            raise
        except Exception as error:
            raise self.failure(self.where, shortened(value)) from error
        context.key = NO_KEY
        return results


class KeyedSumOperator(KeyedReduceOperator):
    """The rolling sum of one field, with a loop of its own for pairs.

    Args:
        key_selector: a KeySelector or a callable.
        position: index or name of the field.
    """

    where = "sum"

    def __init__(self, key_selector: Any, position: Position = 0) -> None:
        super().__init__(key_selector, aggregation("sum", position))
        self.position = position
        self._pairs_only = position == 1
        """True while the sum is the second field and all values in state are immutable pairs."""

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        super().initialize_state(snapshots)
        if self._pairs_only and snapshots:
            self._pairs_only = not self._table.tracks_changes and all(map(_is_pair, self._table.load(()).values()))

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        if isinstance(batch, RowColumns) and self._pairs_only:
            results = self._sum_columns(batch)
            if results is not None:
                return (results,)
        return super().process(batch, input_index)

    def _sum_columns(self, batch: RowColumns) -> RowColumns | None:
        """Return the results, where the batch is (string key, whole number) and so is the state of its keys."""
        if batch.key_column != 0 or len(batch.columns) != 2:
            return None
        strings, numbers = batch.columns
        if not isinstance(strings, Coded) or isinstance(numbers, (Coded, list)) or numbers.dtype.kind != "i":
            return None
        keys, codes = in_use(strings)
        self.check_keys(keys, batch)
        table = self._table
        state = table.load(keys)
        olds = [state.get(key, (key, 0)) for key in keys]
        firsts = [old[0] for old in olds]
        totals = [old[1] for old in olds]
        if {*map(type, firsts)} != {str} or {*map(type, totals)} != {int}:
            return None
        summed = running_sums(codes, numbers, totals)
        if summed is None:
            return None
        sums, totals = summed
        state.update(zip(keys, zip(firsts, totals, strict=True), strict=True))
        if table.tracks_changes:
            table.changed(keys)
        return RowColumns((Coded(firsts, codes), sums), batch.stamps)

    def reduce_batch(self, keys: list[Any], values: list[Any], state: dict[Any, Any]) -> list[Any]:
        """Return the results of a batch, one a record; `state` is brought up to date."""
        if not self._pairs_only:
            return super().reduce_batch(keys, values, state)
        get, immutable = state.get, IMMUTABLE_TYPES
        results: list[Any] = []
        emit = results.append
        key = value = old = None
        try:
            for key, value in zip(keys, values, strict=True):
                old = get(key)
                if old is not None:
                    total = old[1] + value[1]
                    if total.__class__ in immutable:
                        state[key] = result = (old[0], total)
                        emit(result)
                        continue
                results += super().reduce_batch([key], [value], state)
                if not _is_pair(results[-1]):
                    self._pairs_only = False  # for good: what is in state need not be a pair any more
                    break
        except UserCodeError:
            raise
        except TypeError as error:
            failure = self.failure(self.where, shortened(value))
            raise failure from (error if old is None else misfit("sum", 1, old, value))
        except Exception as error:
            raise self.failure(self.where, shortened(value)) from error
        done = len(results)
        return results if done == len(keys) else results + super().reduce_batch(keys[done:], values[done:], state)


def has_open(function: Any) -> bool:
    """Return whether a function has an `open` of its own, where it may have asked for state."""
    opens = getattr(function, "open", Function.open)
    return getattr(opens, "__func__", opens) is not Function.open


def _is_pair(value: Any) -> bool:
    return type(value) is tuple and len(value) == 2 and is_immutable(value)


def running_sums(
    codes: NDArray[np.uint16], numbers: NDArray[np.int64], totals: list[int]
) -> tuple[NDArray[np.int64], list[int]] | None:
    """Return the total of its key after each row, as if rows were added one by one.

    Args:
        codes: [n] each row's key, in [0, len(totals)); every key occurs.
        numbers: [n] what each row adds; n >= 1.
        totals: of each key before the first row.

    Returns: int64[n] totals after each row, and the new totals; None where some total may need more than 64 bits.
    """
    import numpy as np

    most = max(abs(int(numbers.min())), abs(int(numbers.max()))) * len(numbers)
    if most + max(max(totals), -min(totals)) >= _LARGEST:
        return None
    order = np.argsort(codes, kind="stable")  # equal keys side by side, in the order they came
    added = np.cumsum(numbers[order])
    counts = np.bincount(codes, minlength=len(totals))
    ends = np.cumsum(counts)
    before = np.empty(len(totals), np.int64)  # what other keys added in front of this one
    before[0] = 0
    before[1:] = added[ends[:-1] - 1]
    added += np.repeat(np.array(totals, np.int64) - before, counts)
    results = np.empty(len(numbers), np.int64)
    results[order] = added
    return results, added[ends - 1].tolist()


def keyed_aggregation(key_selector: Any, kind: str, position: Position = 0) -> KeyedReduceOperator:
    """Return the operator of a built-in rolling aggregation.

    Args:
        key_selector: a KeySelector or a callable.
        kind: sum, min, max, min_by or max_by.
        position: index or name of the field.

    Raises:
        ValueError: there is no such kind.
    """
    if kind == "sum":
        return KeyedSumOperator(key_selector, position)
    operator = KeyedReduceOperator(key_selector, aggregation(kind, position))
    operator.where, operator.position = kind, position
    return operator


__all__ = ["ABSENT", "KeyedReduceOperator", "KeyedSumOperator", "has_open", "keyed_aggregation", "running_sums"]
