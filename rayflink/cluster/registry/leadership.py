"""Leadership of a registry: each dispatcher takes an epoch, and a newer one fences the older."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass

from rayflink.common.errors import RayflinkError
from rayflink.state.errors import DamagedFileError
from rayflink.state.storage.storage import MissingFileError, Storage, StorageError, put_own

__all__ = ["DispatcherFenced", "Leader", "Leadership", "newest_leader"]

FOLDER = "leaders"
_NAME = re.compile(rf"{FOLDER}/(\d{{9}})")
_TRIES = 100
_REMEMBERED = 10
"""Entries that stay, the newest; they show who led before."""


class DispatcherFenced(RayflinkError):
    """A dispatcher may no longer write: another one has taken over.

    Args:
        url: of the registry.
        epoch: in which this one led.
        other: the address of the one that leads now.
    """

    def __init__(self, url: str, epoch: int, other: str) -> None:
        super().__init__(url, epoch, other)
        self.url, self.epoch, self.other = url, epoch, other

    def __str__(self) -> str:
        return (
            f"this dispatcher (epoch {self.epoch}) leads the cluster of {self.url} no more: another one has taken "
            f"over at {self.other}; send requests there"
        )


@dataclass(frozen=True, slots=True)
class Leader:
    """An entry of a dispatcher.

    Args:
        epoch: counts dispatchers of this registry, from 1.
        leader_id: 32 hex digits, its own: no two dispatchers write the same bytes.
        url: where it is asked.
        begun_ms: epoch milliseconds.
    """

    epoch: int
    leader_id: str
    url: str
    begun_ms: int


class Leadership:
    """The right of one dispatcher to write.

    Args:
        storage: of the registry.
        leader: the entry that was written for it.
    """

    def __init__(self, storage: Storage, leader: Leader) -> None:
        self._storage, self.leader = storage, leader

    @classmethod
    def claim(cls, storage: Storage, leader_id: str, url: str, now_ms: int) -> Leadership:
        """Become the dispatcher that may write; the one before is fenced from now on.

        Raises:
            StorageError: the storage refuses, or others claimed first again and again.
        """
        for _ in range(_TRIES):
            epochs = _epochs(storage)
            leader = Leader(epochs[-1] + 1 if epochs else 1, leader_id, url, now_ms)
            if put_own(storage, _path(leader.epoch), json.dumps(asdict(leader)).encode()):
                for epoch in epochs[: -_REMEMBERED + 1]:
                    storage.delete(_path(epoch))
                return cls(storage, leader)
        raise StorageError("claim the leadership", storage.url, f"other dispatchers claimed first {_TRIES} times")

    def check(self) -> None:
        """Return if this dispatcher still leads.

        Raises:
            DispatcherFenced: another one has taken over.
            StorageError: that cannot be known.
        """
        epochs = _epochs(self._storage)
        if epochs and epochs[-1] == self.leader.epoch:
            return
        try:
            newest = newest_leader(self._storage)
            other = "an unknown address: its entry is gone" if newest is None else newest.url
        except DamagedFileError as error:
            other = f"an unknown address: {error}"
        raise DispatcherFenced(self._storage.url, self.leader.epoch, other)


def newest_leader(storage: Storage) -> Leader | None:
    """Return the entry of the dispatcher that took over last; None: there was none.

    Raises:
        StorageError, DamagedFileError: it cannot be read.
    """
    for epoch in reversed(_epochs(storage)):
        try:
            data = storage.read(_path(epoch))
        except MissingFileError:
            continue
        try:
            return Leader(**json.loads(data))
        except (ValueError, TypeError) as error:
            where = f"{storage.url}/{_path(epoch)}"
            raise DamagedFileError(where, "the bytes of an entry", str(error), "JSON of a dispatcher") from error
    return None


def _epochs(storage: Storage) -> list[int]:
    return sorted(int(match[1]) for match in map(_NAME.fullmatch, storage.list(FOLDER)) if match)


def _path(epoch: int) -> str:
    return f"{FOLDER}/{epoch:09d}"
