from __future__ import annotations

import threading
import time
from collections import namedtuple
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.common.errors import described, shorten
from rayflink.common.text_output import bounded_text
from rayflink.common.text_output.bounded_text import MOST_CHARACTERS, TookTooLong, bounded_repr, bounded_str
from rayflink.common.types import Row
from rayflink.common.user_code.tracebacks import full_traceback, users_traceback
from rayflink.operators.base import shortened

Point = namedtuple("Point", "x y")


@dataclass
class Order:
    name: str
    secret: str = field(repr=False, default="s")
    lines: list[int] = field(default_factory=list)


class Named(tuple):
    def __repr__(self):
        return "Named"


HUGE = "\x00" * 10**7
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates() | st.decimals()
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.tuples(inner)
        | st.dictionaries(st.text(), inner)
        | st.builds(Point, inner, inner)
        | st.builds(lambda lines: Order("a", lines=lines), st.lists(inner))
    ),
)


@settings(max_examples=25)
@given(VALUES)
def test_a_short_value_is_written_as_repr_writes_it(value):
    text = repr(value)
    assert bounded_repr(value, MOST_CHARACTERS) == (text, "")
    assert shortened(value, 10) == (text if len(text) <= 10 else f"{text[:10]}... ({len(text)} characters)")


def test_values_of_other_types_are_written_as_repr_writes_them():
    loop: list[object] = [1]
    loop.append({"self": loop})
    values = [
        loop, set(), {3}, frozenset(), frozenset({2}), np.arange(5), np.float64(2.5), Row(a=1, b="x"), Row(1, None),
        Named((1, 2)), object, date(2026, 1, 2), Decimal("1.50"), bytearray(b"x"), type("Mine", (list,), {})([1, 2]),
    ]  # fmt: skip
    for value in values:
        assert "".join(bounded_repr(value, 1000)) == repr(value)


@pytest.mark.parametrize("value", [
    HUGE, [HUGE], {"key": HUGE.encode()}, (1, Point(HUGE, 2)), Order(HUGE), Row(a=HUGE), list(range(10**6)),
], ids=["str", "list", "bytes", "namedtuple", "dataclass", "row", "elements"])  # fmt: skip
def test_a_huge_value_costs_no_copy_of_it(value):
    begun = time.thread_time()
    text = shorten(value)
    assert len(text) == 200 and text.endswith(f"... (more than {MOST_CHARACTERS} characters)")
    assert time.thread_time() - begun < 0.04, "its whole text takes longer"


@pytest.fixture
def leave(monkeypatch):
    """An event; what waits for it ends with the test, and is waited for only a moment."""
    monkeypatch.setattr(bounded_text, "DEADLINE_S", 0.05)
    event = threading.Event()
    yield event
    event.set()
    late = bounded_text._CALLS._late
    if late is not None:
        late.join()


def test_a_repr_that_does_not_return_delays_nobody(leave):
    class Slow:
        def __repr__(self):
            leave.wait(20)
            return "slow"

    class Quick:
        def __repr__(self):
            return "quick"

    assert shorten([1, Slow()]) == "<list whose repr takes more than 1 s>"
    assert shortened(Slow()) == "<Slow whose repr is left out, as one before it still runs>"
    leave.set()
    bounded_text._CALLS._late.join()
    bounded_text.DEADLINE_S = 10  # a machine with much to do is slow, too
    assert shorten(Quick()) == "quick"


def test_an_error_whose_text_does_not_return_is_reported_with_its_frames(leave):
    class Slow(Exception):
        def __str__(self):
            leave.wait(20)
            return "slow"

    def fails():
        raise Slow(object())

    with pytest.raises(Slow) as caught:
        fails()
    with pytest.raises(TookTooLong):
        bounded_str(caught.value)
    leave.set()
    bounded_text._CALLS._late.join()
    leave.clear()
    message = users_traceback(caught.value)
    last = message.splitlines()[-1]
    plain = [ModuleNotFoundError("no m", name="m"), KeyError("k"), ValueError("v", None), OSError(2, "no")]
    assert [bounded_str(error) for error in plain] == ["no m", "'k'", "('v', None)", "[Errno 2] no"]
    assert "in fails" in message and last.endswith("Slow: <its str() is left out, as one before it still runs>")


def with_a_cause() -> ValueError:
    try:
        try:
            raise KeyError("k" * 10**6)
        except KeyError as key:
            if hasattr(key, "add_note"):
                key.add_note("n" * 10**6)
            raise ValueError("x\n" * 10**6) from key
    except ValueError as error:
        return error


def test_the_text_of_an_error_is_cut():
    error = with_a_cause()
    said = described(error)
    full, users = full_traceback(error), users_traceback(error)
    assert len(said) < 11_000 and said.endswith("... (2000000 characters)")
    for message in (full, users):
        is_whole = "KeyError" in message and "the direct cause" in message
        assert is_whole and len(message) < 100_000
