"""Checkpoint storages of a simulated cluster: one disk in memory, on which faults strike single operations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from rayflink.state.ledger import FOLDER as LEDGER
from rayflink.state.manifest import METADATA
from rayflink.state.storage import MissingFileError, StorageError, checked_path


class Outcome(Enum):
    """What becomes of one operation of a storage."""

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
        """The storage at an address."""
        return SimulatedStorage(self, url)


class SimulatedStorage:
    """The files of a simulated disk below one address.

    Args:
        disk: where they are.
        url: the address.
    """

    def __init__(self, disk: SimulatedDisk, url: str) -> None:
        self._disk, self.url = disk, url
        self._above = f"{url.rstrip('/')}/"

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write a file that does not exist; False, with nothing changed, when it does."""
        whole = self._whole(path, "write")
        outcome = self._outcome("write", whole)
        if outcome is Outcome.PRETENDED:
            return True
        files = self._disk.files
        is_new = whole not in files
        if is_new:
            if self._blocked(whole):
                raise StorageError(f"write {path}", self.url, "a folder of that name, or a file above it, is there")
            files[whole] = bytes(data)
        self._answer("write", path, outcome)
        return is_new

    def upload(self, path: str, local: Path) -> None:
        """Write a file with the bytes of a local one."""
        try:
            data = local.read_bytes()
        except OSError as error:
            raise StorageError(f"write {path}", self.url, str(error)) from error
        if not self.put_if_absent(path, data):
            raise StorageError(f"write {path}", self.url, "there is a file of that name already")

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """Bytes of a file, from `offset` on, `length` at most."""
        whole = self._whole(path, "read")
        self._answer("read", path, self._outcome("read", whole))
        data = self._disk.files.get(whole)
        if data is None:
            raise MissingFileError(f"read {path}", self.url, path)
        return data[offset:] if length is None else data[offset : offset + length]

    def download(self, path: str, local: Path) -> None:
        """Write the bytes of a file to a local one."""
        data = self.read(path)
        try:
            local.write_bytes(data)
        except OSError as error:
            raise StorageError(f"read {path}", self.url, str(error)) from error

    def list(self, folder: str = "") -> list[str]:
        """The files in a folder and below it, sorted; [] when there is no such folder."""
        above = f"{self._whole(folder, 'list')}/" if folder else self._above
        self._answer("list", folder, self._outcome("list", above))
        cut = len(self._above)
        return sorted(path[cut:] for path in self._disk.files if path.startswith(above))

    def delete(self, path: str) -> None:
        """Delete a file; one that is not there is no error."""
        whole = self._whole(path, "delete")
        outcome = self._outcome("delete", whole)
        if outcome is not Outcome.PRETENDED:
            self._disk.files.pop(whole, None)
        self._answer("delete", path, outcome)

    def _whole(self, path: str, action: str) -> str:
        return self._above + checked_path(path, self.url, action)

    def _outcome(self, action: str, whole: str) -> Outcome:
        outcome = self._disk.outcome(Operation(action, whole))
        if outcome is Outcome.REFUSED:
            raise StorageError(f"{action} {whole}", self.url, "no space left on the simulated disk")
        return outcome

    def _answer(self, action: str, path: str, outcome: Outcome) -> None:
        if outcome is Outcome.UNHEARD:
            raise StorageError(f"{action} {path}", self.url, "the simulation lost the answer")

    def _blocked(self, whole: str) -> bool:
        """Whether a file system could not have this file beside the others."""
        files = self._disk.files
        place = whole.find("/", len(self._above))
        while place >= 0:
            if whole[:place] in files:
                return True
            place = whole.find("/", place + 1)
        return any(other.startswith(f"{whole}/") for other in files)


def is_state(path: str) -> bool:
    """Whether a file of checkpoints holds state: neither their metadata nor the ledger of their coordinators."""
    return not path.endswith(f"/{METADATA}") and f"/{LEDGER}/" not in path


__all__ = ["Operation", "Outcome", "SimulatedDisk", "SimulatedStorage", "is_state"]
