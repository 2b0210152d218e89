"""The search for the record of a block that Arrow rejects: its error does not always say where."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow

_EXPONENT = re.compile(rb"[0-9.][eE]\+?[0-9]")
_LONGEST_EXPONENT = 4


def first_failing(size: int, attempt: Callable[[int, int], Any]) -> int:
    """Return the index of the first of `size` items, of which one at least fails; halves are tried, not each.

    >>> first_failing(9, lambda first, behind: [1 / (number - 6) for number in range(first, behind)])
    6

    Args:
        attempt: takes a range of items, first and behind; raises where one of them fails.
    """
    first, behind = 0, size
    while behind - first > 1:
        middle = (first + behind) // 2
        try:
            attempt(first, middle)
        except (ValueError, ArithmeticError):
            behind = middle
        else:
            first = middle
    return first


def may_be_large(block: bytes | bytearray) -> bool:
    """Return whether text may have a number that is larger than it looks: one with an exponent.

    >>> may_be_large(b"1;1E30"), may_be_large(b"12;apple;1e-3")
    (True, False)
    """
    import numpy

    text = numpy.frombuffer(block, numpy.uint8)
    places = numpy.flatnonzero((text[1:] | 0x20) == ord("e"))  # of the byte before each e
    before = text[places]
    places = places[((before >= ord("0")) & (before <= ord("9"))) | (before == ord("."))]
    return any(_EXPONENT.match(block, place, place + _LONGEST_EXPONENT) for place in places.tolist())


def refuse_large(schema: pyarrow.Schema, sizes: pyarrow.RecordBatch | pyarrow.Table) -> None:
    """Check that decimals fit their columns: Arrow reads 1E+30 as another number where there are too few digits.

    Args:
        schema: of the decimals.
        sizes: the same numbers as floats.

    Raises:
        pyarrow.ArrowInvalid: one does not fit; names its row, from 1, and its column.
    """
    import pyarrow
    from pyarrow import compute

    for name in sizes.schema.names:
        kind = schema.field(name).type
        if not pyarrow.types.is_decimal(kind):
            continue
        limit = float(10 ** (kind.precision - kind.scale))
        large = compute.fill_null(compute.greater_equal(compute.abs(sizes.column(name)), limit), False)
        if compute.any(large).as_py():
            row_index = compute.index(large, True).as_py()
            problem = f"in column {name!r}: {sizes.column(name)[row_index]} is too large for {kind}"
            raise pyarrow.ArrowInvalid(f"Row #{row_index + 1}: {problem}")


__all__ = ["first_failing", "may_be_large", "refuse_large"]
