"""A test's description of an operator: its factory, its input, its key selector; and that input cut in many ways."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any

from rayflink.common.records.batches import RowBatch
from rayflink.operators.capabilities import BroadcastInput
from rayflink.operators.keyed.keyed_operator import KeyedOperator

from .elements import CaseElement, Columns, End, OutputElement, Record, SecondInput, output_elements, row_batch
from .harness import OperatorFactory, OperatorHarness, Place, Snapshots, operators_of

__tracebackhide__ = True  # pytest shows the line of the test instead

Step = tuple[int, Any]
"""(input index, a batch or any other element)."""


class _ToAll:
    """Stands in place of a key: every subtask gets the record."""

    def __repr__(self) -> str:
        return "TO_ALL"

    def __reduce__(self) -> str:
        return "TO_ALL"


TO_ALL = _ToAll()
"""Stands in place of a key: every subtask gets the record."""


class Case:
    """The subject of one call of `verify`.

    Args:
        factory, elements, key: as for `verify`.
    """

    def __init__(self, factory: OperatorFactory, elements: Sequence[CaseElement], key: Any = None) -> None:
        self.factory, self.elements = factory, list(elements)
        self.inputs = 2 if any(isinstance(element, SecondInput) for element in elements) else 1
        self.keys = _key_functions(factory, key)

    def steps(self) -> list[Step]:
        """Return a fresh copy of the input, as few batches as possible: user code may change the values it is given."""
        steps: list[Step] = []
        pending: list[Record] = []
        pending_input = 0

        def close() -> None:
            if pending:
                steps.append((pending_input, row_batch(pending)))
                pending.clear()

        for element in copy.deepcopy(self.elements):
            index, inner = (1, element.element) if isinstance(element, SecondInput) else (0, element)
            if isinstance(inner, Record):
                if index != pending_input:
                    close()
                pending_input = index
                pending.append(inner)
                continue
            close()
            steps.append((index, inner.batch if isinstance(inner, Columns) else element))
        close()
        return steps

    @property
    def parallelisms(self) -> tuple[int, ...]:
        """Return the numbers of subtasks in which the operator runs as a job: one, and two where records are
        partitioned by key.
        """
        return (1,) if self.keys is None else (1, 2)

    def start(
        self, place: Place | None = None, restore: Sequence[Snapshots] = (), narrow: bool = False
    ) -> OperatorHarness:
        """Return a fresh operator, open."""
        return OperatorHarness(self.factory, self.inputs, place, restore, narrow)

    def run(self, steps: Iterable[Step], narrow: bool = False, place: Place | None = None) -> list[OutputElement]:
        """Run one operator and return its output."""
        with self.start(place, narrow=narrow) as harness:
            for step in steps:
                feed(harness, step)
            return harness.take()

    def run_to_its_end(self) -> list[OutputElement]:
        """Run one operator whose inputs then end, like those of a job, and return its output."""
        with self.start() as harness:
            for step in batches_of_one(self.steps_to_the_end()):
                feed(harness, step)
            for index in range(self.inputs):
                harness.end_input(index)
            return harness.take()

    def steps_to_the_end(self) -> list[Step]:
        """Return the steps before the end of input."""
        return list(takewhile(lambda step: not isinstance(step[1], End), self.steps()))


def feed(harness: OperatorHarness, step: Step) -> None:
    """Give the step to the operator."""
    index, element = step
    if is_batch(element):
        harness.process_batch(element, index)
    else:
        harness.give(element)


def batches_of_one(steps: Iterable[Step]) -> list[Step]:
    """Return the same input, each record in a batch of its own."""
    return [(i, part) for i, element in steps for part in (_cut(element, range(1, length(element))))]


def randomly_split(steps: Iterable[Step], seed: int) -> list[Step]:
    """Return the same input, cut at places drawn from the seed."""
    draw = random.Random(seed)
    out: list[Step] = []
    for index, element in steps:
        cuts = [position for position in range(1, length(element)) if draw.random() < 0.4]
        out += [(index, part) for part in _cut(element, cuts)]
    return out


def is_batch(element: Any) -> bool:
    return hasattr(element, "slice")


def length(element: Any) -> int:
    return len(element) if is_batch(element) else 0


def _cut(element: Any, cuts: Iterable[int]) -> Iterator[Any]:
    if not is_batch(element):
        yield element
        return
    bounds = [0, *cuts, len(element)]
    for start, stop in zip(bounds, bounds[1:], strict=False):
        yield element.slice(start, stop)


def describe_step(step: Step) -> str:
    index, element = step
    content = next(output_elements(element)) if isinstance(element, RowBatch) else element
    return f"in2({content!r})" if index and is_batch(element) else repr(content)


def _key_functions(factory: OperatorFactory, key: Any) -> tuple[Any, Any] | None:
    if key is not None:
        return key if isinstance(key, tuple) else (key, key)
    head = operators_of(factory)[0]
    if isinstance(head, KeyedOperator):

        def key_of(value: Any) -> Any:
            return head.keys_of(RowBatch([value]))[0]

        return key_of, TO_ALL if isinstance(head, BroadcastInput) else key_of
    return None
