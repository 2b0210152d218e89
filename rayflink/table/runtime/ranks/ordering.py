"""Rows in an order, by columns: numbers that are ordered as their values, packed into one where they fit.

Nulls have the place that a key names. NaN is the greatest number, and both zeros are equal. Strings are ordered by
their UTF-8.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ..aggregates.reductions import has_numpy_type, to_numpy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

OrderKey = tuple[int, bool, bool]
"""(number of a column, descending, nulls first)."""

_PACKED_BITS = 63
_SHORT_DIGITS = 18
"""Decimals of this many digits fit into 64 bits."""


def order_numbers(columns: Sequence[pa.Array], keys: Sequence[OrderKey]) -> list[Numbers]:
    """Return numbers whose lexicographic order is that of the rows: int64[n] each, the most significant first."""
    significant: list[Numbers] = []
    for column, descending, nulls_first in keys:
        values = columns[column]
        numbers = _numbers(values)
        if descending:
            numbers = ~numbers
        if values.null_count:
            is_valid = values.is_valid().to_numpy(zero_copy_only=False)
            significant.append((is_valid if nulls_first else ~is_valid).astype(np.int64))
            numbers = np.where(is_valid, numbers, numbers[np.argmax(is_valid)])
        significant.append(numbers)
    return significant


def _numbers(values: pa.Array) -> Numbers:
    """Return numbers that are ordered as the values; the number in place of a null is undefined."""
    kind = values.type
    if types.is_floating(kind):
        return _float_numbers(to_numpy(values).astype(np.float64))
    if has_numpy_type(kind):
        integers: Numbers = to_numpy(values).astype(np.int64)
        return integers
    if types.is_decimal128(kind) and kind.precision <= _SHORT_DIGITS and len(values):
        words = np.frombuffer(values.buffers()[1], dtype="<i8")
        low: Numbers = words[2 * values.offset : 2 * (values.offset + len(values)) : 2].astype(np.int64)
        return low
    encoded = pc.dictionary_encode(values)
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    ranks = np.zeros(max(len(order), 1), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    indices = encoded.indices
    indices = indices.fill_null(0) if indices.null_count else indices
    numbers: Numbers = ranks[indices.to_numpy(zero_copy_only=False)]
    return numbers


def _float_numbers(values: NDArray[np.float64]) -> Numbers:
    bits: Numbers = np.where(np.isnan(values), np.nan, values + 0.0).view(np.int64)  # -0.0 + 0.0 is 0.0
    return np.where(bits < 0, ~bits ^ np.int64(-(2**63)), bits)


def order_of(numbers: Sequence[Numbers], rows: int) -> NDArray[np.intp]:
    """Return the row numbers in ascending order, equal rows in their own order: intp[rows].

    Args:
        numbers: int64[rows] each, the most significant first.
    """
    if rows < 2:
        return np.arange(rows, dtype=np.intp)
    row_bits = (rows - 1).bit_length()
    spans = [_Span(part) for part in numbers]
    for index in sorted(range(len(spans)), key=lambda index: -spans[index].bits):
        if row_bits + sum(span.bits for span in spans) > _PACKED_BITS and spans[index].bits > row_bits:
            spans[index] = _Span(_ranks(spans[index].numbers))
    if row_bits + sum(span.bits for span in spans) > _PACKED_BITS:
        return np.lexsort([span.numbers for span in reversed(spans)])
    packed = np.zeros(rows, dtype=np.int64)
    for span in spans:
        if span.bits:
            packed <<= span.bits
            packed |= span.numbers - span.least
    packed <<= row_bits
    packed |= np.arange(rows)
    packed.sort()
    packed &= (1 << row_bits) - 1
    return packed


class _Span:
    """Numbers, and how many bits tell them apart."""

    def __init__(self, numbers: Numbers) -> None:
        self.numbers, self.least = numbers, int(numbers.min())
        self.bits = (int(numbers.max()) - self.least).bit_length()


def _ranks(numbers: Numbers) -> Numbers:
    """Return the number of lesser values for each number."""
    order = np.argsort(numbers)
    ranks = np.zeros(len(numbers), dtype=np.int64)
    ranks[order[1:]] = np.cumsum(np.diff(numbers[order]) != 0)
    return ranks


def places_in_groups(sorted_codes: NDArray[Any]) -> Numbers:
    """Return the place of each row in its group, from 0, where rows of a group stand together: int64[n]."""
    rows = len(sorted_codes)
    numbers = np.arange(rows)
    if not rows:
        return numbers
    begins = np.concatenate([[0], np.flatnonzero(np.diff(sorted_codes)) + 1])
    places: Numbers = numbers - np.repeat(begins, np.diff(np.append(begins, rows)))
    return places


__all__ = ["OrderKey", "order_numbers", "order_of", "places_in_groups"]
