"""Checkpoint storages of a simulated cluster: one disk in memory, on which faults disturb single operations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from rayflink.state.storage.ledger import FOLDER as LEDGER
from rayflink.state.storage.manifest import METADATA
from rayflink.state.storage.memory_storage import MemoryStorage
from rayflink.state.storage.storage import StorageError


class Outcome(Enum):
    """The outcome of one operation of a storage."""

    DONE = "done"
    REFUSED = "refused, and nothing was done"
    UNHEARD = "done, but the answer was lost"
    PRETENDED = "said to be done, and nothing was"


@dataclass(frozen=True, slots=True)
class Operation:
    """One call of a storage: its action ("write", "read", "list" or "delete") and the whole path."""

    action: str
    path: str


class SimulatedDisk:
    """Files by their whole path; the storages of all addresses of a simulated cluster are views of it.

    It outlives a run, so that the next one may begin from its checkpoints and savepoints.

    >>> disk = SimulatedDisk()
    >>> disk.storage("/checkpoints/1").put_if_absent("chk-7/_metadata", b"7")
    True
    >>> disk.storage("/checkpoints").list("1"), disk.storage("/checkpoints/1/chk-7").read("_metadata")
    (['1/chk-7/_metadata'], b'7')
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.outcome: Callable[[Operation], Outcome] = lambda operation: Outcome.DONE
        """Asked before each operation."""

    def storage(self, url: str) -> SimulatedStorage:
        """Return the storage at an address."""
        return SimulatedStorage(self, url)


class SimulatedStorage(MemoryStorage):
    """The files of a simulated disk below one address.

    Args:
        disk: where they are.
        url: the address.
    """

    def __init__(self, disk: SimulatedDisk, url: str) -> None:
        super().__init__(url, disk.files, f"{url.rstrip('/')}/")
        self._disk = disk

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write a file that does not exist; False, with nothing changed, when it does."""
        outcome = self._outcome("write", self._whole(path, "write"))
        is_new = outcome is Outcome.PRETENDED or super().put_if_absent(path, data)
        self._answer("write", path, outcome)
        return is_new

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """Return bytes of a file, from `offset` on, `length` at most."""
        self._answer("read", path, self._outcome("read", self._whole(path, "read")))
        return super().read(path, offset, length)

    def list(self, folder: str = "") -> list[str]:
        """Return the files in a folder and below it, sorted; [] when there is no such folder."""
        above = f"{self._whole(folder, 'list')}/" if folder else self._above
        self._answer("list", folder, self._outcome("list", above))
        return super().list(folder)

    def delete(self, path: str) -> None:
        """Delete a file; one that is not there is no error."""
        outcome = self._outcome("delete", self._whole(path, "delete"))
        if outcome is not Outcome.PRETENDED:
            super().delete(path)
        self._answer("delete", path, outcome)

    def _outcome(self, action: str, whole: str) -> Outcome:
        outcome = self._disk.outcome(Operation(action, whole))
        if outcome is Outcome.REFUSED:
            raise StorageError(f"{action} {whole}", self.url, "no space left on the simulated disk")
        return outcome

    def _answer(self, action: str, path: str, outcome: Outcome) -> None:
        if outcome is Outcome.UNHEARD:
            raise StorageError(f"{action} {path}", self.url, "the simulation lost the answer")


def is_state(path: str) -> bool:
    """Return whether a file of checkpoints holds state: neither their metadata nor the ledger of their coordinators."""
    return not path.endswith(f"/{METADATA}") and f"/{LEDGER}/" not in path


__all__ = ["Operation", "Outcome", "SimulatedDisk", "SimulatedStorage", "is_state"]
