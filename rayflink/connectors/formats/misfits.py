"""The search for the record of a block that Arrow rejects: its error does not always say where."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow

LARGE = re.compile(rb"[0-9.][eE]\+?[0-9]")
"""Text in which a number may be larger than it looks."""


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
            at = compute.index(large, True).as_py()
            found = f"in column {name!r}: {sizes.column(name)[at]} is too large for {kind}"
            raise pyarrow.ArrowInvalid(f"Row #{at + 1}: {found}")


__all__ = ["LARGE", "first_failing", "refuse_large"]
