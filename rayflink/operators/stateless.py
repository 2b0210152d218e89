"""Operators that look at one record at a time and remember nothing: map, flat_map, filter, project."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import compress, islice
from operator import itemgetter
from typing import Any

from rayflink.common.errors import described
from rayflink.common.functions.function_classes import as_filter, as_flat_map, as_map
from rayflink.common.records.aliasing import detached, detached_list
from rayflink.common.records.batches import ArrowBatch, Batch, Element, RowBatch
from rayflink.common.records.immutability import IMMUTABLE_TYPES
from rayflink.common.records.purity import holds_nothing
from rayflink.common.user_code.iterate_results import iterate_results

from .base import shortened
from .key_failures import NoSuchField
from .list_loops import ensure_all_taken, record_at
from .user_function import FunctionOperator, list_of, timestamps_of

CHUNK_RECORDS = 4096
"""Records after which a flat_map hands on what it has; a single result list may exceed it."""


class MapOperator(FunctionOperator):
    """Replaces each record by `function(record)`; timestamps stay.

    Args:
        function: a MapFunction or a callable.
    """

    def __init__(self, function: Any) -> None:
        self._function = as_map(function)
        super().__init__(self._function)

    def open(self) -> None:
        super().open()
        self._trusted = holds_nothing(self._function.call)

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        values = list_of(batch)
        iterator = iter(values)
        try:
            results = map_values(self._function.call, iterator, self._trusted)
        except Exception as error:
            raise self.failure("map", record_at(values, iterator)) from error
        return (RowBatch(results, timestamps_of(batch)),)


class FilterOperator(FunctionOperator):
    """Keeps the records for which `function(record)` is true.

    Args:
        function: a FilterFunction or a callable.
    """

    def __init__(self, function: Any) -> None:
        self._function = as_filter(function)
        super().__init__(self._function)

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        values = list_of(batch)
        stamps = timestamps_of(batch)
        iterator = iter(values)
        try:
            if stamps is None:
                passed = list(filter(self._function.call, iterator))
                ensure_all_taken(iterator)
                return (RowBatch(passed),)
            passes = list(map(bool, map(self._function.call, iterator)))
            ensure_all_taken(iterator)
        except Exception as error:
            raise self.failure("filter", record_at(values, iterator)) from error
        return (RowBatch(list(compress(values, passes)), list(compress(stamps, passes))),)


class FlatMapOperator(FunctionOperator):
    """Replaces each record by the elements of `function(record)`; each of them takes the record's timestamp.

    Lists and tuples are taken whole; other iterables are drawn from lazily, so that one record may give any number of
    results without ever holding more than a chunk of them.

    Args:
        function: a FlatMapFunction or a callable; its result is an iterable or None.
        chunk_records: results after which a batch is handed on.
    """

    def __init__(self, function: Any, chunk_records: int = CHUNK_RECORDS) -> None:
        self._function = as_flat_map(function)
        super().__init__(self._function)
        self._chunk_records = chunk_records

    def open(self) -> None:
        super().open()
        self._trusted = holds_nothing(self._function.call)

    def process(self, batch: Batch, input_index: int) -> Iterator[Element]:
        values, stamps = list_of(batch), timestamps_of(batch)
        iterator = iter(values)
        try:
            yield from flat_map_values(self._function.call, iterator, stamps, self._trusted, self._chunk_records)
        except Exception as error:
            raise self.failure("flat_map", record_at(values, iterator)) from error


def map_values(call: Callable[[Any], Any], iterator: Iterator[Any], trusted: bool) -> list[Any]:
    """Return the function's result for each record, each its own object; `trusted`: the function holds nothing."""
    if trusted:
        results = list(map(call, iterator))
        ensure_all_taken(iterator)
        return results
    immutable = IMMUTABLE_TYPES
    out: list[Any] = []
    append = out.append
    for value in iterator:
        result = call(value)
        append(result if type(result) in immutable else detached(result, value))
    return out


def flat_map_values(
    call: Callable[[Any], Any], iterator: Iterator[Any], stamps: list[int] | None, trusted: bool, limit: int
) -> Iterator[RowBatch]:
    """Yield the function's results for all records, in batches of about `limit`, each result with its record's
    timestamp.
    """
    if stamps is not None:
        yield from _stamped(call, iterator, stamps, trusted, limit)
        return
    out: list[Any] = []
    for value in iterator:
        results = call(value)
        kind = type(results)
        if kind is list or kind is tuple:
            out += results if trusted else detached_list(results, value)
        elif results is not None:
            elements = iterate_results(results)
            while not draw(elements, value, out, limit):
                yield RowBatch(out)
                out = []
        if len(out) >= limit:
            yield RowBatch(out)
            out = []
    if out:
        yield RowBatch(out)


def _stamped(
    call: Callable[[Any], Any], iterator: Iterator[Any], stamps: list[int], trusted: bool, limit: int
) -> Iterator[RowBatch]:
    out: list[Any] = []
    out_stamps: list[int] = []
    for value, stamp in zip(iterator, stamps, strict=True):
        results = call(value)
        kind = type(results)
        if kind is list or kind is tuple:
            out += results if trusted else detached_list(results, value)
        elif results is not None:
            elements = iterate_results(results)
            while not draw(elements, value, out, limit):
                out_stamps += [stamp] * (len(out) - len(out_stamps))
                yield RowBatch(out, out_stamps)
                out, out_stamps = [], []
        out_stamps += [stamp] * (len(out) - len(out_stamps))
        if len(out) >= limit:
            yield RowBatch(out, out_stamps)
            out, out_stamps = [], []
    if out:
        yield RowBatch(out, out_stamps)


def draw(elements: Iterator[Any], record: Any, out: list[Any], limit: int) -> bool:
    """Append results to `out` until it holds `limit`; True when `elements` ended before that."""
    immutable, append = IMMUTABLE_TYPES, out.append
    for result in islice(elements, limit - len(out)):
        kind = type(result)
        if kind is tuple:
            for part in result:
                kind = type(part)
                if kind is not str and kind is not int and kind not in immutable:  # cheapest first
                    append(detached(result, record))
                    break
            else:
                append(result)
        elif kind in immutable:
            append(result)
        else:
            append(detached(result, record))
    return len(out) < limit


class ProjectOperator(FunctionOperator):
    """Keeps some fields of each record, by position, as a tuple; of columns, the columns.

    Args:
        indices: positions, in the order wanted.
    """

    def __init__(self, *indices: int) -> None:
        if not indices:
            raise ValueError("project needs at least one field position")
        self._indices = indices
        pick = itemgetter(*indices) if len(indices) > 1 else _single_field(indices[0])
        super().__init__(as_map(pick))
        self._pick = pick

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        if isinstance(batch, ArrowBatch):
            try:
                return (ArrowBatch(batch.data.select(list(self._indices)), batch.timestamps),)
            except IndexError as error:
                columns = shortened(batch.data.schema.names)
                raise self.failure("project", f"columns {columns}") from self._no_such_field(error)
        iterator = iter(batch.values)
        try:
            picked = list(map(self._pick, iterator))
            ensure_all_taken(iterator)
            return (RowBatch(picked, batch.timestamps),)
        except (LookupError, TypeError) as error:
            raise self.failure("project", record_at(batch.values, iterator)) from self._no_such_field(error)
        except Exception as error:
            raise self.failure("project", record_at(batch.values, iterator)) from error

    def _no_such_field(self, error: Exception) -> NoSuchField:
        fields = f"field{'s' if len(self._indices) > 1 else ''} {', '.join(map(str, self._indices))}"
        return NoSuchField("project", fields, described(error))


def _single_field(index: int) -> Callable[[Any], Any]:
    return lambda value: (value[index],)
