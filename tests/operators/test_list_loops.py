"""A loop in C over a list: the record at which it raised, and a StopIteration that would lose records unseen."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.operators.list_loops import ensure_all_taken, record_at

LOOPS: dict[str, Callable[[Callable[[Any], Any], Iterator[Any]], Any]] = {
    "list of map": lambda call, values: list(map(call, values)),
    "list of filter": lambda call, values: list(filter(call, values)),
    "deque of map": lambda call, values: deque(map(call, values), maxlen=0),
    "extend": lambda call, values: [].extend(map(call, values)),
}


def raising(error: type[Exception], bad: int) -> Callable[[int], int]:
    def call(value: int) -> int:
        if value == bad:
            raise error
        return value

    return call


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
@given(st.integers(1, 9), st.data())
def test_the_record_is_the_one_at_which_the_function_raised(loop: Any, size: int, data: Any):
    values = list(range(size))
    bad = data.draw(st.sampled_from(values))
    iterator = iter(values)
    with pytest.raises(KeyError):
        loop(raising(KeyError, bad), iterator)
    assert record_at(values, iterator) == str(bad)


def test_a_loop_that_took_nothing_was_at_no_record():
    assert record_at([1, 2], iter([1, 2])) == "" == record_at([], iter([]))


def test_a_long_record_is_shortened():
    values = ["x" * 999]
    iterator = iter(values)
    next(iterator)
    assert record_at(values, iterator).startswith("'xxx") and "1001 characters" in record_at(values, iterator)


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
@given(st.integers(0, 9))
def test_a_loop_to_the_end_passes(loop: Any, size: int):
    iterator = iter(list(range(size)))
    loop(lambda value: value, iterator)
    ensure_all_taken(iterator)


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
@given(st.integers(1, 9), st.data())
def test_a_stop_iteration_of_the_function_is_found_at_every_record(loop: Any, size: int, data: Any):
    values = list(range(size))
    bad = data.draw(st.sampled_from(values))
    iterator = iter(values)
    loop(raising(StopIteration, bad), iterator)
    with pytest.raises(StopIteration, match=r"give next\(\) a default"):
        ensure_all_taken(iterator)
    assert record_at(values, iterator) == str(bad), "also the last one: the loop did not ask for more"
