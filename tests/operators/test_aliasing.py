"""A function that hands out one object again and again gives what record-by-record engines give."""

from __future__ import annotations

import copy
import functools
import json
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest

from rayflink.common.functions.function_classes import FlatMapFunction, MapFunction
from rayflink.common.records.aliasing import AliasingError, detached
from rayflink.common.records.batches import RowBatch
from rayflink.common.records.purity import holds_nothing
from rayflink.common.types import Row
from rayflink.operators.base import UserCodeError
from rayflink.operators.stateless import FlatMapOperator, MapOperator
from tests.operators.running import run, under_every_split, values


@dataclass
class Track:
    points: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Frozen:
    points: list[int]


class Named(NamedTuple):
    points: list[int]


class Slotted:
    __slots__ = ("points",)

    def __init__(self, points: list[int]) -> None:
        self.points = points

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Slotted) and other.points == self.points


class Holding(MapFunction):
    """Returns `shape(self.kept)`, where `self.kept` grows with each record."""

    def __init__(self, kept: Any, grow: Callable[[Any, int], None], shape: Callable[[Any], Any]) -> None:
        self.kept, self.grow, self.shape = kept, grow, shape

    def map(self, value: int) -> Any:
        self.grow(self.kept, value)
        return self.shape(self.kept)


def _append(kept: Any, value: int) -> None:
    kept.append(value)


def _put(kept: Any, value: int) -> None:
    kept["n"] = value


SHAPES: dict[str, tuple[Callable[[], Any], Callable[[Any, int], None], Callable[[Any], Any]]] = {
    "list": (list, _append, lambda kept: kept),
    "dict": (dict, _put, lambda kept: kept),
    "bytearray": (bytearray, _append, lambda kept: kept),
    "deque": (deque, _append, lambda kept: kept),
    "row": (lambda: Row(n=0), _put, lambda kept: kept),
    "dataclass": (Track, lambda kept, value: kept.points.append(value), lambda kept: kept),
    "in a tuple": (list, _append, lambda kept: ("k", kept)),
    "deep in tuples": (list, _append, lambda kept: ("k", ("l", kept))),
    "in a list": (list, _append, lambda kept: [1, kept]),
    "in a dict": (list, _append, lambda kept: {"k": kept}),
    "in a named tuple": (list, _append, Named),
    "in a dataclass": (list, _append, Track),
    "in a frozen dataclass": (list, _append, Frozen),
    "in a slotted object": (list, _append, Slotted),
    "in a row": (list, _append, lambda kept: Row("k", kept)),
    "nested in the kept list": (lambda: [[]], lambda kept, value: kept[0].append(value), lambda kept: kept),
    "twice": (list, _append, lambda kept: (kept, kept)),
    "now and then": (list, _append, lambda kept: kept if len(kept) % 2 == 0 else len(kept)),
}


def _expected(shape: str, inputs: list[int]) -> list[Any]:
    make, grow, form = SHAPES[shape]
    kept, out = make(), []
    for value in inputs:
        grow(kept, value)
        out.append(copy.deepcopy(form(kept)))
    return out


@pytest.mark.parametrize("shape", SHAPES)
def test_a_map_that_returns_what_it_keeps_gives_each_record_its_own(shape: str) -> None:
    make, grow, form = SHAPES[shape]
    out = under_every_split(lambda: MapOperator(Holding(make(), grow, form)), lambda: [1, 2, 3, 4])
    assert values(out) == _expected(shape, [1, 2, 3, 4])


@pytest.mark.parametrize("shape", SHAPES)
def test_a_generator_that_yields_what_it_keeps_gives_each_record_its_own(shape: str) -> None:
    make, grow, form = SHAPES[shape]

    def growing(count: int) -> Iterator[Any]:
        kept = make()
        for value in range(count):
            grow(kept, value)
            yield form(kept)

    out = under_every_split(lambda: FlatMapOperator(growing), lambda: [3, 2, 4])
    assert values(out) == [item for count in (3, 2, 4) for item in _expected(shape, list(range(count)))]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_list_of_what_the_function_keeps_gives_each_record_its_own(shape: str) -> None:
    make, grow, form = SHAPES[shape]

    class Listing(FlatMapFunction):
        def __init__(self) -> None:
            self.kept = make()

        def flat_map(self, value: int) -> list[Any]:
            grow(self.kept, value)
            return [form(self.kept)]

    out = under_every_split(lambda: FlatMapOperator(Listing()), lambda: [1, 2, 3])
    assert values(out) == _expected(shape, [1, 2, 3])


def test_two_lists_in_turn_are_kept_apart() -> None:
    class Turns(MapFunction):
        def __init__(self) -> None:
            self.buffers: list[list[int]] = [[], []]

        def map(self, value: int) -> list[int]:
            buffer = self.buffers[value % 2]
            buffer.append(value)
            return buffer

    out = under_every_split(lambda: MapOperator(Turns()), lambda: [0, 1, 2, 3])
    assert values(out) == [[0], [1], [0, 2], [1, 3]]


def test_a_result_list_that_is_reused_by_the_function_is_read_at_once() -> None:
    class Reusing(FlatMapFunction):
        def __init__(self) -> None:
            self.out: list[int] = []

        def flat_map(self, value: int) -> list[int]:
            self.out.clear()
            self.out += [value, value]
            return self.out

    assert values(run(FlatMapOperator(Reusing()), [RowBatch([1, 2])])) == [1, 1, 2, 2]


def test_fresh_results_are_handed_on_without_a_copy() -> None:
    made: list[int] = []

    class Making(MapFunction):
        kept: list[int] = []

        def map(self, value: int) -> Any:
            result = {"a": [value], "b": (value, [value])}
            made.append(id(result))
            return result

    out = values(run(MapOperator(Making()), [RowBatch([1, 2, 3])]))
    assert [id(result) for result in out] == made


def test_the_record_itself_is_handed_on_without_a_copy() -> None:
    record = {"a": [1]}
    seen: list[Any] = []
    out = run(MapOperator(lambda value: (seen.append(1), value)[1]), [RowBatch([record])])
    assert out[0][1] is record


def test_an_object_that_cannot_be_copied_is_an_error_that_names_operator_and_remedy() -> None:
    lock = threading.Lock()
    with pytest.raises(UserCodeError, match="operator 'op'.*make a new object for each result") as failure:
        run(MapOperator(lambda value: [lock, [lock]][0]), [RowBatch([1])])
    assert isinstance(failure.value.__cause__, AliasingError)


def test_detached_leaves_what_cannot_change() -> None:
    held = (1, "a", None, frozenset({1}), ("b", 2.0), re.compile("a"))
    assert detached(held) is held


_GLOBAL_LIST: list[int] = []
_LIMIT = 3


def _nonlocal_counter() -> Callable[[int], int]:
    count = 0

    def counting(value: int) -> int:
        nonlocal count
        count += 1
        return count

    return counting


def _closure_over(kept: Any) -> Callable[[int], Any]:
    return lambda value: (kept, value)


def _setting_global(value: int) -> int:
    global _LIMIT
    _LIMIT = value
    return value


class _Pure(FlatMapFunction):
    def __init__(self, separator: str) -> None:
        self.separator = separator

    def flat_map(self, value: str) -> list[tuple[str, int]]:
        return [(word, 1) for word in self._words(value)]

    def _words(self, value: str) -> list[str]:
        return value.split(self.separator)


class _Storing(_Pure):
    def _words(self, value: str) -> list[str]:
        self.last = value.split()
        return self.last


def _keep(holder: Any, value: Any) -> None:
    holder.kept = value


def _tell(holder: Any, value: Any) -> None:
    holder.remember(value)


class _Keeping(_Pure):
    """Leaves what it keeps to others."""

    kept: Any = None

    @classmethod
    def note(cls, value: Any) -> None:
        cls.kept = value

    @staticmethod
    def note_in(holder: Any, value: Any) -> None:
        holder.kept = value

    def remember(self, value: Any) -> None:
        self.kept = value

    def by_helper(self, value: str) -> Any:
        _keep(self, [value])
        return self.kept

    def by_helper_and_method(self, value: str) -> Any:
        _tell(self, [value])
        return self.kept

    def by_class_method(self, value: str) -> Any:
        self.note([value])
        return self.kept

    def by_static_method(self, value: str) -> Any:
        self.note_in(self, [value])
        return self.kept


class _KnowsItsMethod(_Pure):
    def __init__(self, separator: str) -> None:
        self.separator, self.split = separator, self._words

    def flat_map(self, value: str) -> list[tuple[str, int]]:
        return [(word, 1) for word in self.split(value)]


@functools.lru_cache
def _cached(value: int) -> list[int]:
    return [value]


PURE: list[Callable[..., Any]] = [
    lambda line: [(word, 1) for word in line.split()], lambda x: x + _LIMIT, lambda x: json.loads(x), json.loads, int,
    str.split, len, _Pure(" ").flat_map, lambda x: Track([x]), lambda x: Row(x, 1), _closure_over((1, "a")),
    functools.partial(pow, 2), lambda r: r["a"], lambda r: {**r, "b": [1]}, _KnowsItsMethod(" ").flat_map,
]  # fmt: skip
IMPURE: list[Callable[..., Any]] = [
    lambda x: _GLOBAL_LIST, lambda x, kept=[]: kept, _closure_over([]), _closure_over(([],)), _nonlocal_counter(),
    _setting_global, lambda x: globals()["_GLOBAL_LIST"], _Storing(" ").flat_map, _Pure([]).flat_map, _cached,  # type: ignore[arg-type]
    lambda x: _cached(x), [].append, lambda x: _closure_over.__globals__, functools.partial(lambda kept, x: kept, []),
    _Keeping(" ").by_helper, _Keeping(" ").by_helper_and_method, _Keeping(" ").by_class_method,
    _Keeping(" ").by_static_method, lambda x: _keep(_Keeping, x), lambda x: _Keeping.note(x),
    lambda x: eval("_GLOBAL_LIST"), deque([1]).popleft, lambda x: undefined_name,  # type: ignore[name-defined] # noqa: F821
]  # fmt: skip


@pytest.mark.parametrize("function", PURE)
def test_functions_that_hold_nothing_are_recognised(function: Callable[..., Any]) -> None:
    assert holds_nothing(function)


@pytest.mark.parametrize("function", IMPURE)
def test_functions_that_may_hold_something_are_not_trusted(function: Callable[..., Any]) -> None:
    assert not holds_nothing(function)
