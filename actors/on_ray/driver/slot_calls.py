"""Calls to the process of a slot from outside its job: what it runs, uses, and has written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError, RayTaskError

from rayflink.common.errors import ControlPlaneTimeout, RayflinkError

from ..process_files import FileFacts

__all__ = ["SlotCalls", "SlotGone"]

ANSWER_S = 10.0
"""A process that has not answered by then is an error."""
PROFILER_S = 60.0
"""Seconds that a profile may take beyond its duration."""


class SlotGone(RayflinkError):
    """The process of a slot does not live any more.

    Args:
        reason: Ray's.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"the process has ended: {self.reason}; the list of processes shows those that live"


class SlotCalls:
    """Asks the process of a slot.

    Every method raises `SlotGone` where it does not live, and `ControlPlaneTimeout` where it does not answer.

    Args:
        actor: of the slot.
    """

    def __init__(self, actor: object) -> None:
        self._actor = actor

    def threads(self) -> Sequence[tuple[str, str]]:
        """Return name and stack of every thread."""
        threads: Sequence[tuple[str, str]] = self._ask("threads")
        return threads

    def figures(self) -> Mapping[str, float]:
        """Return what the process uses."""
        figures: Mapping[str, float] = self._ask("figures")
        return figures

    def profile(self, duration_s: float, with_idle: bool) -> Sequence[tuple[str, int]]:
        """Sample the stacks of the process.

        Raises:
            ProfilerError: it cannot be profiled.
        """
        stacks: Sequence[tuple[str, int]] = self._ask(
            "profile", duration_s, with_idle, within_s=duration_s + PROFILER_S
        )
        return stacks

    def log_files(self) -> Sequence[FileFacts]:
        """Return name, bytes and time of the last change of each file that the process writes."""
        files: Sequence[FileFacts] = self._ask("log_files")
        return files

    def log(self, name: str, most_bytes: int) -> bytes | None:
        """Return the end of a file; None: it writes none of this name."""
        data: bytes | None = self._ask("log", name, most_bytes)
        return data

    def _ask(self, what: str, *arguments: object, within_s: float = ANSWER_S) -> Any:
        try:
            return ray.get(getattr(self._actor, what).remote(*arguments), timeout=within_s)
        except GetTimeoutError as error:
            raise ControlPlaneTimeout(what, "the process of a slot", int(within_s * 1000)) from error
        except RayTaskError as error:
            if isinstance(error.cause, RayflinkError):
                raise error.cause from error
            raise
        except RayError as error:
            raise SlotGone(" ".join(str(error).split())) from error
