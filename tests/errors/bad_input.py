"""What a bad input is, and the list of them all; tests/errors/bad_inputs.py and its neighbours fill it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rayflink.common import WatermarkStrategy
from rayflink.datastream import StreamExecutionEnvironment

WRITTEN, SUBMITTED, RUNNING = "in its line", "when the job is submitted", "at run time"

Program = Callable[[StreamExecutionEnvironment, Path], Any]


@dataclass(frozen=True)
class BadInput:
    """One thing to do wrong.

    Args:
        what: for people.
        seen: WRITTEN: the step that is wrong raises; SUBMITTED: execute() raises before anything runs; RUNNING.
        says: what the error's text holds, in this order.
        program: writes the steps, in an environment and with a folder of its own.
    """

    what: str
    seen: str
    says: tuple[str, ...]
    program: Program


ALL: list[BadInput] = []


def bad(what: str, seen: str, *says: str) -> Callable[[Program], Program]:
    """Register the decorated program."""

    def register(program: Program) -> Program:
        ALL.append(BadInput(what, seen, says, program))
        return program

    return register


def stamped(env: Any, stamp: Any) -> Any:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda record, _: stamp)
    return env.from_collection([("a", 1)]).assign_timestamps_and_watermarks(strategy)
