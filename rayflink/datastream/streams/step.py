"""The step a program just wrote: its name, identity, size, and the neighbours it may share a task or slot with."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, TypeVar

from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.data_types.type_hints import to_type_info
from rayflink.common.errors import shorten
from rayflink.graph import transformations as graph
from rayflink.graph.attributes import ChainingStrategy
from rayflink.graph.errors import PlanError

if TYPE_CHECKING:
    from ..environment import StreamExecutionEnvironment
    from ..slot_sharing_group import SlotSharingGroup

S = TypeVar("S", bound="Step")

_LOGICAL = (graph.Partition, graph.Union, graph.SideOutput, graph.Split, graph.Select)


def transformation_of(step: Step) -> graph.Transformation:
    """Return what a step has recorded in the program's graph."""
    return step._transformation


def as_type(type_hint: Any) -> TypeInformation | None:
    """Return a declared type: a TypeInformation, or a Python type that stands for one; None stays None.

    Raises:
        InvalidTypesError: it is no type.
    """
    return type_hint if type_hint is None or isinstance(type_hint, TypeInformation) else to_type_info(type_hint)


class Step:
    """A step with an operator of its own; each setter returns the step, so that calls can be chained.

    Args:
        env: the environment of the program.
        transformation: what was recorded.
    """

    def __init__(self, env: StreamExecutionEnvironment, transformation: graph.Transformation) -> None:
        self._env = env
        self._transformation = transformation

    def name(self: S, name: str) -> S:
        """Name the operator, for plans, logs and errors."""
        self._operator("name").name = self._text("name", name)
        return self

    def uid(self: S, uid: str) -> S:
        """Give the operator an identity that outlives changes of the program; state is found by it."""
        self._operator("uid").uid = self._text("uid", uid)
        return self

    def set_uid_hash(self: S, uid_hash: str) -> S:
        """Set the operator id itself, 32 hex digits.

        Raises:
            PlanError: it is not 32 lower-case hex digits.
        """
        return self._checked("uid_hash", uid_hash)

    def set_description(self: S, description: str) -> S:
        """Set a longer description for plans."""
        self._operator("description").description = self._text("description", description)
        return self

    def set_parallelism(self: S, parallelism: int) -> S:
        """Set the number of subtasks of the operator, at least 1.

        Raises:
            PlanError: it is below 1, above what the source can be read by, or above 1 on a non-parallel operator.
        """
        self._whole("parallelism", parallelism)
        factory = getattr(self._transformation, "operator_factory", None)
        widest = getattr(getattr(factory, "source", None), "max_parallelism", None)
        if widest is not None and parallelism > widest:
            problem = f"{self._transformation.name!r} can be read by {widest} subtask at most, found {parallelism}"
            remedy = (
                "set the parallelism on the operator behind it instead; records are distributed to its subtasks in turn"
            )
            raise PlanError(problem, remedy, graph.call_site())
        return self._checked("parallelism", parallelism)

    def set_max_parallelism(self: S, max_parallelism: int) -> S:
        """Set the number of key groups of the operator, in [1, 32768]; fixed for the life of its state.

        Raises:
            PlanError: it is out of range.
        """
        return self._checked("max_parallelism", self._whole("max parallelism", max_parallelism))

    def force_non_parallel(self: S) -> S:
        """Run the operator in one subtask, for good: a later `set_parallelism` above 1 is refused."""
        self.set_parallelism(1)
        self._transformation.is_non_parallel = True
        return self

    def set_buffer_timeout(self: S, timeout_millis: int) -> S:
        """Set how long the output waits for a fuller batch: ms, 0 not at all, -1 as the environment says.

        Only the environment's `set_buffer_timeout(-1)` waits until batches are full.

        Raises:
            PlanError: it is below -1.
        """
        return self._checked("buffer_timeout_ms", self._whole("buffer timeout", timeout_millis))

    def slot_sharing_group(self: S, slot_sharing_group: str | SlotSharingGroup) -> S:
        """Share slots only with operators of this group; operators behind it inherit the group.

        Args:
            slot_sharing_group: the name, or a `SlotSharingGroup` that says what a slot has.

        Raises:
            PlanError: a group of this name has other resources.
        """
        step, group = self._operator("slot sharing group"), slot_sharing_group
        if isinstance(group, str):
            step.slot_sharing_group = group
        else:
            self._env.register_slot_sharing_group(group)
            step.slot_sharing_group = group.get_name()
        return self

    def set_co_location_group_key(self: S, key: str) -> S:
        """Run subtasks of one index in the slot of the other operators with this key."""
        self._operator("co-location group").co_location_group_key = key
        return self

    def start_new_chain(self: S) -> S:
        """Begin a task with this operator."""
        self._operator("chaining").chaining_strategy = ChainingStrategy.HEAD
        return self

    def disable_chaining(self: S) -> S:
        """Run this operator in a task of its own."""
        self._operator("chaining").chaining_strategy = ChainingStrategy.NEVER
        return self

    def _text(self, what: str, value: str) -> str:
        if not isinstance(value, str):
            raise self._wrong(what, value, "a str")
        return value

    def _whole(self, what: str, value: int) -> int:
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise self._wrong(what, value, "an int")
        return operator.index(value)

    def _wrong(self, what: str, value: object, wanted: str) -> PlanError:
        problem = f"the {what} of {self._transformation.name!r} is {shorten(value, 80)}, of type {type(value).__name__}"
        return PlanError(problem, f"give {wanted}", graph.call_site())

    def _checked(self: S, attribute: str, value: Any) -> S:
        step = self._operator(attribute.replace("_", " "))
        before = getattr(step, attribute)
        setattr(step, attribute, value)
        try:
            step.check()
        except PlanError:
            setattr(step, attribute, before)
            raise
        return self

    def _operator(self, what: str) -> graph.Transformation:
        step = self._transformation
        if isinstance(step, _LOGICAL):
            problem = f"a {what} cannot be set on a {step.name.lower()}, which has no operator"
            raise PlanError(problem, f"set the {what} on the step before or behind it", graph.call_site())
        return step


__all__ = ["Step", "as_type", "transformation_of"]
