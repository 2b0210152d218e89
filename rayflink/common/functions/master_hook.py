"""What a program does in the coordinator at each checkpoint: prepare or clean up outside systems."""

from __future__ import annotations

from abc import ABC, abstractmethod

HOOK_PREFIX = "master-hook."
"""Before the identifier of a hook, in the properties of a checkpoint; the data is there as base64."""


class MasterTriggerRestoreHook(ABC):
    """Is called in the job's coordinator when a checkpoint is triggered, and when the job starts from one.

    What `trigger_checkpoint` gives becomes part of the checkpoint. A hook that raises there fails the checkpoint; one
    that raises in `restore_checkpoint` or `reset` fails the job. Its calls hold the coordinator up: they must be short.

    >>> class Topics(MasterTriggerRestoreHook):
    ...     def get_identifier(self):
    ...         return "topics"
    ...     def trigger_checkpoint(self, checkpoint_id, timestamp):
    ...         return b"a,b"
    ...     def restore_checkpoint(self, checkpoint_id, checkpoint_data):
    ...         self.found = checkpoint_data
    >>> Topics().trigger_checkpoint(1, 0)
    b'a,b'

    Source: apache/flink MasterTriggerRestoreHook.
    """

    @abstractmethod
    def get_identifier(self) -> str:
        """Under which name its data is found again; no other hook of the job has it."""

    @abstractmethod
    def trigger_checkpoint(self, checkpoint_id: int, timestamp: int) -> bytes | None:
        """A checkpoint begins, at `timestamp` in epoch milliseconds; what is to be kept with it, None for nothing."""

    @abstractmethod
    def restore_checkpoint(self, checkpoint_id: int, checkpoint_data: bytes | None) -> None:
        """The job starts from a checkpoint; None when it holds nothing of this hook."""

    def reset(self) -> None:  # noqa: B027
        """The job starts again, and there is no checkpoint to start from."""

    def close(self) -> None:  # noqa: B027
        """The job has ended."""


__all__ = ["HOOK_PREFIX", "MasterTriggerRestoreHook"]
