"""Runs one operator by hand, under every split of its input into batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any

from rayflink.common.records.batches import Batch, RowBatch, Tagged, rows_of
from rayflink.operators.base import Operator, OperatorContext
from rayflink.testing import HARDSHIPS, rec, verify

Output = tuple[str | None, Any, int | None]


class FixedClock:
    """Processing time that stands still until it is set."""

    def __init__(self, now: int = 0) -> None:
        self.now = now

    def now_ms(self) -> int:
        return self.now

    def monotonic(self) -> float:
        return self.now / 1000


def context(**facts: Any) -> OperatorContext:
    return OperatorContext(**{"operator_id": "0" * 32, "operator_name": "op", "clock": FixedClock(), **facts})


def opened(operator: Operator, **facts: Any) -> Operator:
    operator.setup(context(**facts))
    operator.initialize_state(())
    operator.open()
    return operator


def records(elements: Iterable[Any]) -> list[Output]:
    """What was emitted as (side output or None, value, timestamp or None)."""
    out: list[Output] = []
    for element in elements:
        tag = None
        if isinstance(element, Tagged):
            tag, element = element.tag_id, element.batch
        if isinstance(element, (RowBatch,)) or hasattr(element, "data"):
            stamps = element.timestamps if element.timestamps is not None else [None] * len(element)
            out += [(tag, value, stamp) for value, stamp in zip(rows_of(element), stamps, strict=True)]
        else:
            out.append((tag, element, None))
    return out


def run(operator: Operator, batches: Sequence[Batch | tuple[int, Batch]], **facts: Any) -> list[Output]:
    opened(operator, **facts)
    out: list[Output] = []
    for given in batches:
        index, batch = given if isinstance(given, tuple) else (0, given)
        out += records(operator.process(batch, index))
    out += records(operator.finish())
    operator.close()
    return out


def splits(length: int) -> Iterable[list[slice]]:
    for count in range(length):
        for cuts in combinations(range(1, length), count):
            bounds = [0, *cuts, length]
            yield [slice(a, b) for a, b in zip(bounds, bounds[1:], strict=False)]


def under_every_split(
    make: Callable[[], Operator], make_values: Callable[[], list[Any]], timestamps: list[int] | None = None
) -> list[Output]:
    """The output, after a check that it is the same for every split of the input, and under the other hardships.

    Without those that restore: the functions here may keep things in variables of their own.
    """
    answers = []
    for slices in splits(len(make_values())):
        batch = RowBatch(make_values(), timestamps)
        answers.append(run(make(), [batch.slice(part.start, part.stop) for part in slices]))
    assert all(answer == answers[-1] for answer in answers)
    stamps = timestamps or [None] * len(make_values())
    given = [rec(value, stamp) for value, stamp in zip(make_values(), stamps, strict=True)]
    verify(make, given, without=[name for name in HARDSHIPS if name.startswith("restored")])
    return answers[-1]


def values(out: list[Output], tag: str | None = None) -> list[Any]:
    return [value for found, value, _ in out if found == tag]
