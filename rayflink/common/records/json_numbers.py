"""Strings as numbers, many at once, by the grammar of JSON, which Arrow's casts only exceed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow
    from numpy.typing import NDArray

_WHOLE = r"^-?(0|[1-9][0-9]*)$"
_ANY = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
_ZERO, _MINUS, _POINT = 48, 45, 46


def parsed_numbers(
    strings: pyarrow.StringArray, kind: pyarrow.DataType
) -> tuple[pyarrow.Array, NDArray[np.bool_] | None]:
    """Return strings as numbers, and which of them are finite numbers of JSON; None: all are.

    >>> import pyarrow
    >>> numbers, are_numbers = parsed_numbers(pyarrow.array(["17", "-3", "1.5", "007"]), pyarrow.int64())
    >>> numbers.to_pylist(), are_numbers.tolist()
    ([17, -3, 0, 0], [True, True, False, False])

    Args:
        strings: without nulls.
        kind: int64 or float64.

    Raises:
        pyarrow.ArrowInvalid: a whole number is too large for its type.
    """
    import pyarrow
    from pyarrow import compute

    is_whole = pyarrow.types.is_integer(kind)
    if look_like_numbers(strings, is_whole):
        try:
            numbers = strings.cast(kind)
        except pyarrow.ArrowInvalid:  # one is too large, or has two points
            pass
        else:
            if is_whole or np.isfinite(numbers.to_numpy()).all():
                return numbers, None
    good = compute.match_substring_regex(strings, _WHOLE if is_whole else _ANY)
    numbers = compute.if_else(good, strings, "0").cast(kind)
    if not is_whole:
        good = compute.and_(good, compute.is_finite(numbers))
    return numbers, good.to_numpy(zero_copy_only=False)


def look_like_numbers(strings: pyarrow.StringArray, is_whole: bool) -> bool:
    """Return whether strings are numbers of JSON if Arrow takes them for numbers.

    Arrow also takes zeros in front, points without digits beside them, hexadecimal numbers, and names such as `inf`.
    """
    if not len(strings):
        return True
    _, bounds_buffer, data_buffer = strings.buffers()
    bounds = np.frombuffer(bounds_buffer, np.int32)[strings.offset : strings.offset + len(strings) + 1]
    starts, ends = bounds[:-1], bounds[1:]
    if (ends <= starts).any():
        return False
    data = np.frombuffer(data_buffer, np.uint8)[: bounds[-1]]
    is_digit = data - np.uint8(_ZERO) < 10
    first = data.take(starts)
    if not is_digit[bounds[0] :].all():
        is_negative = first == _MINUS
        starts = starts + is_negative
        if (starts == ends).any():
            return False
        first = data.take(starts)
        if is_whole:
            if len(data) - bounds[0] - np.count_nonzero(is_digit[bounds[0] :]) != np.count_nonzero(is_negative):
                return False
        else:
            points = np.flatnonzero(data[bounds[0] :] == _POINT) + bounds[0]
            if not is_digit.take(ends - 1).all() or not is_digit.take(starts).all():
                return False
            if not (is_digit.take(points - 1) & is_digit.take(points + 1)).all():
                return False
    zero = np.flatnonzero((first == _ZERO) & (ends - starts > 1))
    return not is_digit.take(starts[zero] + 1).any()


__all__ = ["look_like_numbers", "parsed_numbers"]
