"""One case, every hardship: however the input is cut, whenever a snapshot is restored, the output is the same.

Source: hazelcast/hazelcast TestSupport (snapshots and restores after each step, an outbox that is full in between).
"""

from __future__ import annotations

import copy
import difflib
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from rayflink.common.batches import RowBatch, rows_of
from rayflink.operators.keyed_base import KeyedOperator
from rayflink.state.key_groups import key_group, key_group_range
from rayflink.state.keys import key_hash

from .elements import Columns, Given, Record, SecondInput, Seen, row_batch, seen
from .harness import OperatorFactory, OperatorHarness, Place, Snapshots

SUBTASKS = 3
RANDOM_SPLITS = 3

Step = tuple[int, Any]
"""(input index, a batch or any other element)."""


def verify(
    factory: OperatorFactory,
    given: Sequence[Given],
    then: Sequence[Seen] | None = None,
    key: Any = None,
    without: Sequence[str] = (),
) -> None:
    """Check one case of an operator under every hardship.

    The hardships: "in one batch", "one record a batch", "random splits", "a snapshot after each step", "restored after
    each step", "restored after each record", "outputs with room for one", and for keyed operators "three subtasks" and
    "three subtasks become two".

    >>> from rayflink.operators.stateless import FilterOperator
    >>> from rayflink.testing import rec, wm
    >>> verify(lambda: FilterOperator(lambda n: n > 1), given=[rec(1, 3), rec(2, 4), wm(4)], then=[rec(2, 4), wm(4)])

    Args:
        factory: makes a fresh operator, or a list of operators that run as one chain.
        given: what the operator gets. The records between two other elements arrive in batches of any size.
        then: what comes out. The main output and each side output are compared by themselves, each with the watermarks
            and statuses between its records. None: only that all hardships agree.
        key: the key of a record, or a pair of functions for two inputs; None asks a keyed operator for its own.
        without: hardships that do not apply.
    Raises:
        AssertionError: the output is another one; names the hardship and shows the difference.
        ValueError: `without` names no hardship.
    """
    unknown = set(without) - set(HARDSHIPS)
    if unknown:
        raise ValueError(f"found {sorted(unknown)} in without; the hardships are {', '.join(HARDSHIPS)}")
    case = Case(factory, given, key)
    expected = list(then) if then is not None else case.run(batches_of_one(case.steps()))
    for name, hardship in HARDSHIPS.items():
        if name not in without:
            hardship(case, expected, name)


class Case:
    """What one call of `verify` is about.

    Args:
        factory, given, key: as for `verify`.
    """

    def __init__(self, factory: OperatorFactory, given: Sequence[Given], key: Any = None) -> None:
        self.factory, self.given = factory, list(given)
        self.inputs = 2 if any(isinstance(element, SecondInput) for element in given) else 1
        self.keys = _key_functions(factory, key)

    def steps(self) -> list[Step]:
        """A fresh copy of the input, as few batches as possible: user code may change the values it is given."""
        steps: list[Step] = []
        gathered: list[Record] = []
        gathered_for = 0

        def close() -> None:
            if gathered:
                steps.append((gathered_for, row_batch(gathered)))
                gathered.clear()

        for element in copy.deepcopy(self.given):
            index, inner = (1, element.element) if isinstance(element, SecondInput) else (0, element)
            if isinstance(inner, Record):
                if index != gathered_for:
                    close()
                gathered_for = index
                gathered.append(inner)
                continue
            close()
            steps.append((index, inner.batch if isinstance(inner, Columns) else element))
        close()
        return steps

    def start(
        self, place: Place | None = None, restore: Sequence[Snapshots] = (), narrow: bool = False
    ) -> OperatorHarness:
        """A fresh operator, open."""
        return OperatorHarness(self.factory, self.inputs, place, restore, narrow)

    def run(self, steps: Iterable[Step], narrow: bool = False) -> list[Seen]:
        """What comes out of one operator."""
        with self.start(narrow=narrow) as harness:
            for step in steps:
                take(harness, step)
            return harness.take()


def take(harness: OperatorHarness, step: Step) -> None:
    """Give the step to the operator."""
    index, element = step
    if _is_batch(element):
        harness.process_batch(element, index)
    else:
        harness.give(element)


def batches_of_one(steps: Iterable[Step]) -> list[Step]:
    """The same input, each record in a batch of its own."""
    return [(i, part) for i, element in steps for part in (_cut(element, range(1, _length(element))))]


def randomly_split(steps: Iterable[Step], seed: int) -> list[Step]:
    """The same input, cut at places drawn from the seed."""
    draw = random.Random(seed)
    out: list[Step] = []
    for index, element in steps:
        cuts = [at for at in range(1, _length(element)) if draw.random() < 0.4]
        out += [(index, part) for part in _cut(element, cuts)]
    return out


# the hardships, each a check of its own


def _in_one_batch(case: Case, expected: list[Seen], name: str) -> None:
    _same(case.run(case.steps()), expected, name)


def _one_record_a_batch(case: Case, expected: list[Seen], name: str) -> None:
    _same(case.run(batches_of_one(case.steps())), expected, name)


def _random_splits(case: Case, expected: list[Seen], name: str) -> None:
    for seed in range(RANDOM_SPLITS):
        steps = randomly_split(case.steps(), seed)
        sizes = [_length(element) for _, element in steps if _is_batch(element)]
        _same(case.run(steps), expected, f"{name} (batches of {sizes})")


def _snapshots(case: Case, expected: list[Seen], name: str) -> None:
    with case.start() as harness:
        for step in case.steps():
            take(harness, step)
            harness.snapshot()
        _same(harness.take(), expected, name)


def _restored(split: Callable[[list[Step]], list[Step]]) -> Callable[[Case, list[Seen], str], None]:
    def check(case: Case, expected: list[Seen], name: str) -> None:
        out: list[Seen] = []
        harness = case.start()
        try:
            for step in split(case.steps()):
                take(harness, step)
                snapshot = harness.snapshot()
                out += harness.take()
                harness = harness.restore(case.factory, snapshot)
            out += harness.take()
        finally:
            harness.close()
        _same(out, expected, name)

    return check


def _room_for_one(case: Case, expected: list[Seen], name: str) -> None:
    _same(case.run(case.steps(), narrow=True), expected, name)


def _three_subtasks(case: Case, expected: list[Seen], name: str) -> None:
    _in_parallel(case, name, shrink_to=None)


def _three_become_two(case: Case, expected: list[Seen], name: str) -> None:
    _in_parallel(case, name, shrink_to=2)


def _in_parallel(case: Case, name: str, shrink_to: int | None) -> None:
    """Step by step the same records as one subtask gives, and the same events from each subtask."""
    if case.keys is None:
        return
    steps, alone = batches_of_one(case.steps()), case.start()
    subtasks = [case.start(Place(i, SUBTASKS)) for i in range(SUBTASKS)]
    try:
        for number, (step, same_step) in enumerate(zip(steps, batches_of_one(case.steps()), strict=True)):
            if shrink_to is not None and number == len(steps) // 2:
                subtasks = _rescaled(case, subtasks, shrink_to)
            take(alone, step)
            for subtask in _receivers(case, same_step, subtasks):
                take(subtask, same_step)
            parts = [subtask.take() for subtask in subtasks]
            _same_in_parallel(alone.take(), parts, f"{name} (after {_shown(step)})", _length(step[1]) > 0)
    finally:
        for harness in (alone, *subtasks):
            harness.close()


def _rescaled(case: Case, subtasks: list[OperatorHarness], parallelism: int) -> list[OperatorHarness]:
    """Fresh subtasks that own the key groups of the old ones."""
    snapshots = [subtask.snapshot() for subtask in subtasks]
    for subtask in subtasks:
        subtask.close()
    fresh = []
    for index in range(parallelism):
        successor = case.start(Place(index, parallelism), snapshots)
        successor.stand_where(subtasks[0])
        fresh.append(successor)
    return fresh


def _receivers(case: Case, step: Step, subtasks: list[OperatorHarness]) -> Iterator[OperatorHarness]:
    index, element = step
    if not _is_batch(element):
        yield from subtasks
        return
    assert case.keys is not None
    widest = subtasks[0].place.max_parallelism
    group = key_group(key_hash(case.keys[index](rows_of(element)[0])), widest)
    for subtask in subtasks:
        if group in key_group_range(subtask.place.subtask, len(subtasks), widest):
            yield subtask


HARDSHIPS: dict[str, Callable[[Case, list[Seen], str], None]] = {
    "in one batch": _in_one_batch,
    "one record a batch": _one_record_a_batch,
    "random splits": _random_splits,
    "a snapshot after each step": _snapshots,
    "restored after each step": _restored(lambda steps: steps),
    "restored after each record": _restored(batches_of_one),
    "outputs with room for one": _room_for_one,
    "three subtasks": _three_subtasks,
    "three subtasks become two": _three_become_two,
}
"""Name -> check; each runs the case in another way and raises AssertionError when the output differs."""


# comparing


def by_output(entries: Iterable[Seen], tags: Iterable[str] = ()) -> dict[str | None, list[Seen]]:
    """Main output (None) and side outputs by themselves, each with the events between its records.

    Args:
        tags: side outputs to show even when they have no records.
    """
    everything = list(entries)
    found = {entry.tag for entry in everything if isinstance(entry, Record) and entry.tag is not None}
    return {
        tag: [entry for entry in everything if not isinstance(entry, Record) or entry.tag == tag]
        for tag in (None, *sorted(found.union(tags)))
    }


def _same(found: list[Seen], expected: list[Seen], name: str) -> None:
    tags = {entry.tag for entry in (*found, *expected) if isinstance(entry, Record) and entry.tag is not None}
    mine, wanted = by_output(found, tags), by_output(expected, tags)
    for tag, left in wanted.items():
        if left != mine[tag]:
            output = "the main output" if tag is None else f"side output {tag!r}"
            raise AssertionError(f"{name}: {output} differs (- expected, + found)\n{_difference(left, mine[tag])}")


def _same_in_parallel(alone: list[Seen], parts: list[list[Seen]], name: str, is_record: bool) -> None:
    left = [entry for entry in alone if isinstance(entry, Record)]
    right = [entry for part in parts for entry in part if isinstance(entry, Record)]
    if not _same_bag(left, right):
        text = _difference(sorted(left, key=repr), sorted(right, key=repr))
        raise AssertionError(f"{name}: the records differ (- one subtask, + all together)\n{text}")
    if is_record:
        return
    events = [entry for entry in alone if not isinstance(entry, Record)]
    for index, part in enumerate(parts):
        mine = [entry for entry in part if not isinstance(entry, Record)]
        if mine != events:
            raise AssertionError(f"{name}: subtask {index} gave the events {mine}, expected {events}")


def _same_bag(left: list[Record], right: list[Record]) -> bool:
    rest = list(right)
    for entry in left:
        if entry not in rest:
            return False
        rest.remove(entry)
    return not rest


def _difference(expected: Sequence[Any], found: Sequence[Any], limit: int = 60) -> str:
    lines = list(difflib.ndiff([repr(entry) for entry in expected], [repr(entry) for entry in found]))
    lines = [f"  {line}" for line in lines if not line.startswith("?")]
    if all(line.startswith("    ") for line in lines):  # equal in print, not by ==
        pairs = [(left, right) for left, right in zip(expected, found, strict=True) if left != right]
        return "\n".join(f"  {left!r} prints alike and is not equal" for left, _ in pairs[:limit])
    return "\n".join(lines[:limit] + ([f"  ... {len(lines) - limit} more lines"] if len(lines) > limit else []))


# batches


def _is_batch(element: Any) -> bool:
    return hasattr(element, "slice")


def _length(element: Any) -> int:
    return len(element) if _is_batch(element) else 0


def _cut(element: Any, cuts: Iterable[int]) -> Iterator[Any]:
    if not _is_batch(element):
        yield element
        return
    bounds = [0, *cuts, len(element)]
    for start, stop in zip(bounds, bounds[1:], strict=False):
        yield element.slice(start, stop)


def _shown(step: Step) -> str:
    index, element = step
    shown = next(seen(element)) if isinstance(element, RowBatch) else element
    return f"in2({shown!r})" if index and _is_batch(element) else repr(shown)


def _key_functions(factory: OperatorFactory, key: Any) -> tuple[Any, Any] | None:
    if key is not None:
        return key if isinstance(key, tuple) else (key, key)
    made = factory()
    head = made[0] if isinstance(made, list | tuple) else made
    if isinstance(head, KeyedOperator):

        def own(value: Any) -> Any:
            return head.keys_of(RowBatch([value]))[0]

        return own, own
    return None
