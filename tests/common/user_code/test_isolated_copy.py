"""A copy shares nothing that changes, and everything there is one of in a process."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from types import ModuleType

import pyarrow
import pytest

from rayflink.common.user_code.isolated_copy import own_copy


def counter() -> Callable[[], int]:
    counts = [0]

    def count() -> int:
        counts[0] += 1
        return counts[0]

    return count


class Keeper:
    def __init__(self) -> None:
        self.kept: list[int] = []
        self.method = self.keep

    def keep(self, n: int) -> list[int]:
        self.kept.append(n)
        return self.kept


def test_what_a_closure_holds_is_copied() -> None:
    original = counter()
    assert (original(), original()) == (1, 2)
    copied = own_copy(original)
    assert (copied(), original(), own_copy(copied)()) == (3, 3, 4)


def test_what_a_partial_function_holds_is_copied() -> None:
    original = functools.partial(Keeper().keep, 5)
    copied = own_copy(original)
    copied()
    assert (len(copied()), len(original())) == (2, 1)


def test_bound_methods_take_their_object_along() -> None:
    keeper = Keeper()
    copied = own_copy(keeper)
    copied.method(1)
    assert (copied.kept, keeper.kept) == ([1], [])
    assert copied.method.__self__ is copied


def test_functions_that_share_a_variable_share_it_in_the_copy() -> None:
    value = 0

    def increase() -> None:
        nonlocal value
        value += 1

    def read() -> int:
        return value

    increase2, read2 = own_copy((increase, read))
    increase2()
    assert (read(), read2()) == (0, 1)


def test_functions_may_refer_to_themselves() -> None:
    def factorial(n: int) -> int:
        return n * factorial(n - 1) if n else 1

    copied = own_copy(factorial)
    assert copied is not factorial and copied(5) == 120
    assert copied.__closure__[0].cell_contents is copied


def test_defaults_and_attributes_are_copied_and_names_kept() -> None:
    def grow(n: int, seen: list[int] = [], *, more: list[int] = []) -> list[int]:  # noqa: B006
        """Grows."""
        seen.append(n)
        more.append(n)
        return seen + more

    grow.columns = ["a"]  # type: ignore[attr-defined]
    copied = own_copy(grow)
    assert copied(1) == [1, 1] and grow(2) == [2, 2]
    assert copied.columns == ["a"] and copied.columns is not grow.columns  # type: ignore[attr-defined]
    assert (copied.__name__, copied.__doc__, copied.__module__) == (grow.__name__, grow.__doc__, grow.__module__)


def test_a_variable_without_a_value_stays_without() -> None:
    def read() -> int:
        return later

    copied = own_copy(read)
    with pytest.raises(NameError):
        copied()
    later = 5
    assert read() == 5


def test_classes_modules_and_functions_that_hold_nothing_are_shared() -> None:
    class Local:
        pass

    plain = lambda n: n  # noqa: E731
    things = (Local, threading, len, plain, Keeper.keep)
    assert all(mine is theirs for mine, theirs in zip(own_copy(things), things, strict=True))
    assert type(own_copy(Local())) is Local


def test_what_cannot_be_copied_says_so() -> None:
    lock = threading.Lock()
    with pytest.raises(TypeError, match="lock"):
        own_copy(lambda: lock)


def test_columns_of_arrow_are_not_copied():
    class Holds:
        def __init__(self):
            self.blocks = [pyarrow.record_batch({"n": [1, 2]}), pyarrow.table({"n": [1]}), pyarrow.array([3])]

    holds = Holds()
    copied = own_copy(holds)
    assert copied.blocks is not holds.blocks
    assert all(copy is block for copy, block in zip(copied.blocks, holds.blocks, strict=True))


def test_functions_are_copied_while_another_thread_imports_arrow(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", ModuleType("pyarrow"))
    prices = {"apple": 2}
    copied = own_copy(lambda: prices)
    assert copied() == prices and copied() is not prices
