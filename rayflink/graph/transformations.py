"""The record of a program while it is written: one transformation a step, each pointing at its inputs.

Transformations are what the fluent front ends build and may still change (`name`, `uid`, `parallelism`, ...) until the
program is translated into a `StreamGraph`. They compare by identity. Partition, Union, SideOutput, Split and Select
are logical: they never become an operator, only properties of the edge between two.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rayflink.common.functions.callables import SplitBy
from rayflink.common.user_code.call_sites import call_site
from rayflink.state.keys.key_groups import MAX_MAX_PARALLELISM

from .attributes import ChainingStrategy, ExchangeMode, ResourceSpec
from .errors import MissingTypeError, PlanError
from .partitioners import Partitioner

OperatorFactory = Callable[[], Any]
"""Makes the operator of one subtask; no arguments, picklable by cloudpickle."""
KeySelector = Callable[[Any], Any]
"""record -> key."""

_ids = itertools.count(1)
_UID_HASH = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class MissingType:
    """Stands for an output type that was declared but cannot be determined.

    Args:
        reason: what is wrong with the declaration, in words.
    """

    reason: str


def next_id() -> int:
    """Return a number greater than the ids of all transformations so far, and less than those of later ones."""
    return next(_ids)


@dataclass(eq=False, kw_only=True)
class Transformation:
    """One step of a program; subclasses say of what kind.

    Args:
        name: shown to people.
        output_type: the TypeInformation of the records it gives, None where unknown (always allowed).
        parallelism: subtasks, >= 1; None takes the environment's default.
        max_parallelism: key groups, in [1, 32768]; None lets the job graph choose.
        uid: the user's name for the operator, from which its id is made.
        uid_hash: the operator's id itself, 32 hex digits; comes before `uid`.
        identity: what its state is of, where no uid is given: then its id does not depend on where it stands.
        slot_sharing_group: None inherits the group of the inputs.
        co_location_group_key: subtasks of one index and one key run in one slot.
        buffer_timeout_ms: how long a batch may wait to be filled; 0 sends every record at once, None and -1 take the
            environment's default.
        min_resources, preferred_resources: what a subtask asks for.
        chaining_strategy: with whom it may share a task.
        description: longer than the name, for plans.
        is_non_parallel: it works in one subtask and can have no more.
        call_site: the line of the user's program that made it.
        id: unique within the process, ascending in order of creation.
    """

    name: str
    output_type: Any = None
    parallelism: int | None = None
    max_parallelism: int | None = None
    uid: str | None = None
    uid_hash: str | None = None
    identity: str | None = None
    slot_sharing_group: str | None = None
    co_location_group_key: str | None = None
    buffer_timeout_ms: int | None = None
    min_resources: ResourceSpec | None = None
    preferred_resources: ResourceSpec | None = None
    chaining_strategy: ChainingStrategy = ChainingStrategy.ALWAYS
    description: str | None = None
    is_non_parallel: bool = False
    call_site: str = field(default_factory=call_site, repr=False)
    id: int = field(default_factory=_ids.__next__)

    @property
    def inputs(self) -> tuple[Transformation, ...]:
        """Return the transformations whose records it takes, in order."""
        return ()

    def declared_type(self) -> Any:
        """Return the output type, None where unknown.

        Raises:
            MissingTypeError: a type was declared that cannot be determined.
        """
        if isinstance(self.output_type, MissingType):
            raise MissingTypeError(self.name, self.output_type.reason, self.call_site)
        return self.output_type

    def check(self) -> None:
        """Raise PlanError when an attribute is out of its range."""
        self.declared_type()
        if self.parallelism is not None and self.parallelism < 1:
            self._refuse(f"parallelism {self.parallelism}", "set it to 1 or more")
        if self.is_non_parallel and self.parallelism != 1:
            remedy = "leave it out: its records are worked by one subtask"
            self._refuse(f"parallelism {self.parallelism}, and it is an operator that can have 1 only", remedy)
        if self.max_parallelism is not None and not 1 <= self.max_parallelism <= MAX_MAX_PARALLELISM:
            self._refuse(f"max parallelism {self.max_parallelism}", f"set it within [1, {MAX_MAX_PARALLELISM}]")
        if self.buffer_timeout_ms is not None and self.buffer_timeout_ms < -1:
            self._refuse(
                f"buffer timeout {self.buffer_timeout_ms} ms",
                "set it to 0 or more, or to -1 for what the environment says",
            )
        if self.uid_hash is not None and not _UID_HASH.fullmatch(self.uid_hash):
            self._refuse(f"uid hash {self.uid_hash!r}", "give 32 lower-case hex digits")
        low, high = self.min_resources, self.preferred_resources
        if low is not None and high is not None and not low.fits_in(high):
            self._refuse(f"minimum resources {low} above the preferred {high}", "ask for no more than preferred")

    def _refuse(self, problem: str, remedy: str) -> None:
        raise PlanError(f"{self.name!r} has {problem}", remedy, self.call_site)


@dataclass(eq=False)
class Source(Transformation):
    """Records from outside.

    Args:
        stoppable: False when the source cannot be asked to end; then its job cannot either, only be cancelled.
    """

    operator_factory: OperatorFactory | None
    stoppable: bool = True
    chaining_strategy: ChainingStrategy = field(default=ChainingStrategy.HEAD, kw_only=True)


@dataclass(eq=False)
class _FromOne(Transformation):
    """A step behind one other."""

    input: Transformation = field(repr=False)

    @property
    def inputs(self) -> tuple[Transformation, ...]:
        return (self.input,)


@dataclass(eq=False)
class OneInput(_FromOne):
    """One operator on one stream; `key_selector` when it keeps keyed state."""

    operator_factory: OperatorFactory | None
    key_selector: KeySelector | None = None


@dataclass(eq=False)
class TwoInput(Transformation):
    """One operator on two streams; a key selector for each stream that is keyed."""

    input1: Transformation = field(repr=False)
    input2: Transformation = field(repr=False)
    operator_factory: OperatorFactory | None
    key_selector1: KeySelector | None = None
    key_selector2: KeySelector | None = None

    @property
    def inputs(self) -> tuple[Transformation, ...]:
        return (self.input1, self.input2)


@dataclass(eq=False)
class MultipleInput(Transformation):
    """One operator on any number of streams; a key selector for each stream, None where it is not keyed."""

    streams: tuple[Transformation, ...] = field(repr=False)
    operator_factory: OperatorFactory | None
    key_selectors: tuple[KeySelector | None, ...]

    @property
    def inputs(self) -> tuple[Transformation, ...]:
        return self.streams


@dataclass(eq=False)
class Sink(_FromOne):
    """Records to outside; `key_selector` when it keeps keyed state."""

    operator_factory: OperatorFactory | None
    key_selector: KeySelector | None = None


@dataclass(eq=False)
class Union(Transformation):
    """Several streams of one type as one."""

    sources: tuple[Transformation, ...] = field(repr=False)
    name: str = field(default="Union", kw_only=True)

    @property
    def inputs(self) -> tuple[Transformation, ...]:
        return tuple(self.sources)

    def check(self) -> None:
        super().check()
        types = map(Transformation.declared_type, self.sources)
        known = [type_info for type_info in types if type_info is not None and getattr(type_info, "is_declared", True)]
        for other in known[1:]:
            if other != known[0]:
                problem = f"Cannot union streams of different types: {known[0]} and {other}"
                raise PlanError(problem, "map one of them to the type of the other first", self.call_site)


@dataclass(eq=False)
class Partition(_FromOne):
    """The way in which the records of a stream reach their next operator."""

    partitioner: Partitioner
    exchange_mode: ExchangeMode = ExchangeMode.UNDEFINED
    name: str = field(default="Partition", kw_only=True)


@dataclass(eq=False)
class SideOutput(_FromOne):
    """The records an operator gave to the side output `tag_id`."""

    tag_id: str
    name: str = field(default="SideOutput", kw_only=True)


@dataclass(eq=False)
class Cached(_FromOne):
    """A stream that one job computes and keeps, and later ones read.

    Args:
        result: has `is_complete`, `is_wanted`, `partitions`, and the factories `writer` and `reader`; see
            `rayflink.datastream.streams.cached.CachedResult`.
    """

    result: Any
    name: str = field(default="Cache", kw_only=True)


@dataclass(eq=False)
class Split(_FromOne):
    """Names for each record of a stream, by which `Select` picks."""

    selector: SplitBy
    name: str = field(default="Split", kw_only=True)


@dataclass(eq=False)
class Select(_FromOne):
    """The records of a split stream that bear one of `selected_names`; a later selection replaces an earlier one."""

    selected_names: tuple[str, ...]
    name: str = field(default="Select", kw_only=True)


@dataclass(eq=False)
class Feedback(_FromOne):
    """A stream together with what later steps feed back into it.

    Args:
        wait_ms: how long the head waits for feedback after the input has ended, 0 for ever.
    """

    wait_ms: int = 0
    name: str = field(default="Feedback", kw_only=True)
    feedback_edges: list[Transformation] = field(default_factory=list, kw_only=True, repr=False)

    def add_feedback_edge(self, edge: Transformation) -> None:
        """Feed the records of `edge` back."""
        self.feedback_edges.append(edge)


@dataclass(eq=False)
class CoFeedback(Transformation):
    """Only what later steps feed back, as a stream of its own type, for the second input of an operator."""

    wait_ms: int = 0
    name: str = field(default="CoFeedback", kw_only=True)
    feedback_edges: list[Transformation] = field(default_factory=list, kw_only=True, repr=False)

    def add_feedback_edge(self, edge: Transformation) -> None:
        """Feed the records of `edge` back."""
        self.feedback_edges.append(edge)


__all__ = [
    "CoFeedback", "Feedback", "KeySelector", "MissingType", "MultipleInput", "OneInput", "OperatorFactory", "Partition",
    "Select", "SideOutput", "Sink", "Source", "Split", "Transformation", "TwoInput", "Union", "call_site", "next_id",
]  # fmt: skip
