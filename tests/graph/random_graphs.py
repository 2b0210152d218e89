"""Random small programs for the laws of the graphs."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from rayflink.graph.attributes import ChainingStrategy
from rayflink.graph.partitioners import Broadcast, KeyGroup, Rebalance, Rescale
from rayflink.graph.transformations import OneInput, Partition, SideOutput, Source, Transformation, TwoInput, Union

from .programs import first, operator


@dataclass(frozen=True)
class Step:
    """One operator: its inputs as positions of earlier ones (none: a source), and how they are shipped."""

    inputs: tuple[int, ...]
    ship: str
    parallelism: int
    strategy: ChainingStrategy
    united: bool


Program = tuple[Step, ...]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Programs of one to nine operators."""
    steps: list[Step] = []
    for position in range(draw(st.integers(1, 9))):
        inputs = draw(st.lists(st.integers(0, position - 1), max_size=2)) if position else []
        steps.append(
            Step(
                tuple(inputs),
                draw(st.sampled_from(["", "", "", "hash", "rebalance", "rescale", "broadcast", "side"])),
                draw(st.sampled_from([1, 1, 2, 3])),
                draw(st.sampled_from([ChainingStrategy.ALWAYS, ChainingStrategy.ALWAYS, *ChainingStrategy])),
                draw(st.booleans()),
            )
        )
    return tuple(steps)


def build(program: Program) -> list[Transformation]:
    """The transformations of a program, one a step, named "0", "1", ..."""
    made: list[Transformation] = []
    for position, wanted in enumerate(program):
        given = [_shipped(made[index], wanted.ship) for index in wanted.inputs]
        attributes = {
            "name": str(position),
            "parallelism": wanted.parallelism,
            "chaining_strategy": wanted.strategy,
        }
        if not given:
            made.append(Source(operator, **attributes))  # type: ignore[arg-type]
        elif len(given) == 1 or wanted.united:
            made.append(OneInput(Union(tuple(given)), operator, **attributes))  # type: ignore[arg-type]
        else:
            made.append(TwoInput(given[0], given[1], operator, **attributes))  # type: ignore[arg-type]
    return made


def _shipped(after: Transformation, how: str) -> Transformation:
    partitioners = {"hash": KeyGroup(first), "rebalance": Rebalance(), "rescale": Rescale(), "broadcast": Broadcast()}
    if how == "side":
        return SideOutput(after, "late")
    return Partition(after, partitioners[how]) if how else after
