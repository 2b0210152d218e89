"""Hooks of a program in the coordinator at each checkpoint: they prepare or clean up outside systems."""

from __future__ import annotations

from abc import ABC, abstractmethod

HOOK_PREFIX = "master-hook."
"""Prefix of a hook's identifier, in the properties of a checkpoint; the data is there as base64."""


class MasterTriggerRestoreHook(ABC):
    """A hook called in the job's coordinator when a checkpoint is triggered, and when the job starts from one.

    What `trigger_checkpoint` returns becomes part of the checkpoint. A hook that raises there fails the checkpoint; one
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
        """Return the name under which its data is found again; no other hook of the job has it."""

    @abstractmethod
    def trigger_checkpoint(self, checkpoint_id: int, timestamp: int) -> bytes | None:
        """Return the data to store with a checkpoint that begins at `timestamp`, epoch milliseconds, or None."""

    @abstractmethod
    def restore_checkpoint(self, checkpoint_id: int, checkpoint_data: bytes | None) -> None:
        """Restore the data of the checkpoint that the job starts from; None when it has none of this hook."""

    def reset(self) -> None:  # noqa: B027
        """Reset the hook; the job starts again, and there is no checkpoint to start from."""

    def close(self) -> None:  # noqa: B027
        """Release everything, as the job has ended."""


__all__ = ["HOOK_PREFIX", "MasterTriggerRestoreHook"]
