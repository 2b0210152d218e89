"""The running sum of each key over a batch held as columns, all keys at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LARGEST = 1 << 62


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
