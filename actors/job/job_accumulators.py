"""The accumulators of a job's tasks, merged into one for each name, where the job is decided."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from rayflink.common.errors import JobExecutionError, described
from rayflink.user_types import UserAccumulator

from ..messages.messages import TaskFailure


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of an accumulator: vertex id and subtask, and for people names and the line of the program."""

    place: tuple[str, int]
    task: str
    vertex: str
    call_site: str


@dataclass(slots=True)
class _Merged:
    owner: Owner
    accumulator: UserAccumulator


class JobAccumulators:
    """Merges the accumulators of finished tasks; exceptions of a user's accumulator are returned as failures.

    Args:
        may_forget: tasks that have finished may run again; then the accumulators of each are remembered.
    """

    def __init__(self, may_forget: bool = False) -> None:
        self._merged: dict[str, _Merged] = {}
        self._by_owner: dict[Owner, Mapping[str, Any]] | None = {} if may_forget else None

    def forget(self, places: Collection[tuple[str, int]]) -> None:
        """Drop the accumulators of finished subtasks that run again."""
        by_owner = self._by_owner or {}
        rerun = [owner for owner in by_owner if owner.place in places]
        for owner in rerun:
            del by_owner[owner]
        if rerun:
            self._merged = {}
            for other, accumulators in by_owner.items():
                self._merge(other, copy.deepcopy(accumulators))

    def add(self, owner: Owner, accumulators: Mapping[str, Any]) -> list[TaskFailure]:
        """Add a task's accumulators, and return the failures of those that cannot be merged.

        Those of an attempt that began when all was done are left out where an earlier attempt has given its own.
        """
        if self._by_owner is not None and accumulators:
            if owner in self._by_owner:
                return []
            self._by_owner[owner] = copy.deepcopy(accumulators)
        return self._merge(owner, accumulators)

    def _merge(self, owner: Owner, accumulators: Mapping[str, Any]) -> list[TaskFailure]:
        failures = []
        for name, accumulator in accumulators.items():
            known = self._merged.get(name)
            if known is None:
                self._merged[name] = _Merged(owner, accumulator)
                continue
            new_type, wanted = type(accumulator), type(known.accumulator)
            if (new_type.__module__, new_type.__qualname__) != (wanted.__module__, wanted.__qualname__):
                failures.append(_conflict(name, new_type.__name__, owner, wanted.__name__, known.owner))
                continue
            try:
                known.accumulator.merge(accumulator)
            except (Exception, SystemExit) as error:  # whatever a user's accumulator raises
                del self._merged[name]  # it may be half merged
                failures.append(_failure(error, f"accumulator {name!r} of {owner.task} cannot be merged", owner))
        return failures

    def values(self) -> tuple[dict[str, Any], list[TaskFailure]]:
        """Return name -> value, and the failures of those that raise instead."""
        values, failures = {}, []
        for name, merged in list(self._merged.items()):
            try:
                values[name] = merged.accumulator.get_local_value()
            except (Exception, SystemExit) as error:  # whatever a user's accumulator raises
                what = f"accumulator {name!r} of {merged.owner.task} does not give its value"
                failures.append(_failure(error, what, merged.owner))
        return values, failures

    def asked(self, job_id: str) -> dict[str, Any]:
        """Return name -> value for a client.

        Raises:
            JobExecutionError: one does not give its value.
        """
        values, failures = self.values()
        for failure in failures:
            raise JobExecutionError(job_id, f"cannot be asked: {failure.message}", f"see {failure.call_site}")
        return values


def _conflict(name: str, type_name: str, owner: Owner, wanted: str, first: Owner) -> TaskFailure:
    message = (
        f"accumulator {name!r} is of type {type_name} in {owner.task} and {wanted} in {first.task} ({first.call_site})"
        ": what has one name is merged; rename one"
    )
    return TaskFailure("TypeError", message, "", owner.vertex, owner.call_site)


def _failure(error: BaseException, what: str, owner: Owner) -> TaskFailure:
    return TaskFailure(type(error).__name__, f"{what}: {described(error)}", "", owner.vertex, owner.call_site)
