"""Times of timers and watermarks are plain ints of 64 bits; anything else is refused at the call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rayflink.common.records.batches import MAX_TIMESTAMP, MIN_TIMESTAMP, Watermark
from rayflink.state.timers import TimerQueue

Taken = Callable[[Any], Any]


class Seven:
    """A whole number that is no int, like numpy's."""

    def __index__(self) -> int:
        return 7

    __int__ = __index__

    def __lt__(self, other: int) -> bool:
        return 7 < other

    def __ge__(self, other: int) -> bool:
        return 7 >= other


def timer(timestamp: Any) -> int | None:
    timers = TimerQueue()
    timers.register(timestamp, "key")
    return timers.next_timestamp()


def watermark(timestamp: Any) -> int:
    return Watermark(timestamp).timestamp


@pytest.mark.parametrize("taken", [timer, watermark])
@pytest.mark.parametrize(
    ("timestamp", "error", "said"),
    [
        (None, TypeError, "an int of epoch milliseconds, found None of type NoneType"),
        (1.5, TypeError, "found 1.5 of type float"),
        ("x", TypeError, "found 'x' of type str"),
        (True, TypeError, "of type bool"),
        (2**70, ValueError, r"in \[-2\^63, 2\^63\) epoch milliseconds, found a number of 71 bits"),
        (MIN_TIMESTAMP - 1, ValueError, "of 64 bits"),
    ],
)
def test_a_time_that_is_no_int_of_64_bits_is_refused(taken: Taken, timestamp: Any, error: Any, said: str) -> None:
    with pytest.raises(error, match=said):
        taken(timestamp)


@pytest.mark.parametrize("taken", [timer, watermark])
@pytest.mark.parametrize("timestamp", [MIN_TIMESTAMP, -1, 0, MAX_TIMESTAMP])
def test_every_int_of_64_bits_is_a_time(taken: Taken, timestamp: int) -> None:
    assert taken(timestamp) == timestamp


def test_another_kind_of_whole_number_becomes_an_int() -> None:
    assert type(watermark(Seven())) is int
