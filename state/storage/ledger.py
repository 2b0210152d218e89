"""The ledger of a job: who leads it, and which of its checkpoints count, so that two coordinators do no harm."""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from ..errors import DamagedFileError, StateError, VersionMismatch
from .storage import MissingFileError, Storage, StorageError, put_own

FOLDER = "ledger"
NUMBERS = 100
"""Number of checkpoint ids a leader may use before its next entry; its successor begins behind them."""
VERSION = 1
_NAME = re.compile(rf"{FOLDER}/(\d{{9}})")
_TRIES = 100

EntryKind = Literal["leader", "checkpoint", "numbers", "ended"]


class Fenced(StateError):
    """Raised when a coordinator no longer leads its job.

    Args:
        url: base of the job's checkpoints.
        epoch: in which it led.
        evidence: what shows that it does no more.
    """

    def __init__(self, url: str, epoch: int, evidence: str) -> None:
        super().__init__(url, epoch, evidence)
        self.url, self.epoch, self.evidence = url, epoch, evidence

    def __str__(self) -> str:
        return (
            f"this coordinator (epoch {self.epoch}) leads the job with the checkpoints in {self.url} no more: "
            f"{self.evidence}; the job goes on there, if anywhere: nothing is to be done here"
        )


class LedgerGone(Fenced):
    """Raised when the ledger entries of a coordinator are gone: a later one has ended the job, or they were deleted."""

    def __str__(self) -> str:
        return (
            f"the files of the job with the checkpoints in {self.url} are gone: {self.evidence}, and not by this "
            f"coordinator (epoch {self.epoch}); unless another one has taken the job over and ended it, somebody has "
            "deleted that folder while the job ran: run the program again, from a savepoint where there is one, and "
            "leave the folder to the job"
        )


class LedgerEnded(StateError):
    """Raised when a job is to continue although its checkpoints are gone."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.url = url

    def __str__(self) -> str:
        return f"the job with the checkpoints in {self.url} has ended, and they are deleted: submit it as a new job"


class Counted(NamedTuple):
    """A checkpoint from which a job may start.

    Args:
        checkpoint_id: its number.
        path: of its folder below the job's base; an address where it is elsewhere, as a savepoint.
    """

    checkpoint_id: int
    path: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of the ledger. The newest is complete in itself: no older one is needed.

    Args:
        kind: why it was written.
        epoch: of the leader that wrote it.
        leader: 32 hex digits, its own: no two coordinators write the same bytes.
        next_number: of the checkpoints this leader triggers; it may use `NUMBERS` from here on.
        checkpoints: that count, from the oldest to the newest; older ones may be deleted already.
    """

    kind: EntryKind
    epoch: int
    leader: str
    next_number: int
    checkpoints: tuple[Counted, ...] = ()

    def encoded(self) -> bytes:
        """Encode the entry as a file: a line of JSON, and its CRC-32."""
        text = json.dumps({"version": VERSION, **{name: getattr(self, name) for name in self.__slots__}})
        return f"{text}\n{zlib.crc32(text.encode()):08x}\n".encode()


def decode_entry(data: bytes, url: str) -> Entry:
    """Return the entry in a file.

    Args:
        url: of the file, for errors.

    Raises:
        DamagedFileError: it is none.
        VersionMismatch: another version of this program wrote it.
    """
    text, _, check = data.decode("utf-8", "replace").rstrip("\n").partition("\n")
    if check != f"{zlib.crc32(text.encode()):08x}":
        raise DamagedFileError(url, "its last bytes", repr(check), f"the checksum {zlib.crc32(text.encode()):08x}")
    fields = json.loads(text)
    version = fields.pop("version")
    if version != VERSION:
        raise VersionMismatch(f"ledger v{version}", f"ledger v{VERSION}", url, "")
    counted = tuple(Counted(*checkpoint) for checkpoint in fields.pop("checkpoints"))
    return Entry(checkpoints=counted, **fields)


def newest_entry(storage: Storage) -> tuple[int, Entry] | None:
    """Return the newest entry and its position; None where the job had no leader yet.

    Raises:
        StorageError, DamagedFileError, VersionMismatch: it cannot be read.
    """
    for _ in range(_TRIES):
        positions = _positions(storage)
        if not positions:
            return None
        try:
            return positions[-1], _read(storage, positions[-1])
        except MissingFileError:  # there is a newer one by now
            continue
    raise StorageError(f"read {FOLDER}", storage.url, f"it changed {_TRIES} times while it was read")


class Ledger:
    """The ledger as its leader writes it; every method may raise `StorageError`, and then had no effect.

    Files `ledger/<9 digits>` in the base of the job's checkpoints, each written once by put_if_absent, at the position
    behind the newest. A coordinator that comes claims the next position with an epoch of one more. A checkpoint counts
    once the next position says so. Each entry holds all that counts, so the newest alone is read.

    Why two coordinators are harmless. While no entry is deleted, positions have no gaps, and who writes one knows the
    one before: it wrote it, or read it when it claimed. So what a leader writes after another has claimed meets that
    claim, and fails: of a checkpoint and a claim one comes first, and if it is the checkpoint, the claim has read it.
    A leader deletes entries older than its newest, in ascending order. Then one that slept may find its next position
    free again and write there. Yet the newest entry is never deleted, so a listing *after* the write shows a greater
    position; or, where the whole base is gone with its job, it misses the leader's own entry before, which only a later
    leader deletes, and always before the one behind it. In both cases it is fenced. What it left is below the
    newest position and is never read.

    Numbers of checkpoints are divided, too: a claim begins behind all that the leader before may use without another
    entry. So `chk-<n>` is written and deleted by one coordinator only, however late.

    An answer that was lost leaves a leader in doubt. It takes the checkpoint as failed, but must delete no file of it,
    as another leader may start from it. Its next entry goes to the same position, or, if the doubtful one did arrive,
    behind it.

    Args:
        storage: of the base of the job's checkpoints.
        leader: 32 hex digits that no other leader has.
        retained: checkpoints that are kept.

    >>> from rayflink.state.storage.memory_storage import MemoryStorage
    >>> storage = MemoryStorage()
    >>> first = Ledger.claim(storage, "a" * 32, retained=1)
    >>> first.record(1, "chk-1")
    >>> second = Ledger.claim(storage, "b" * 32, retained=1)
    >>> second.epoch, second.checkpoints, second.next_number
    (2, (Counted(checkpoint_id=1, path='chk-1'),), 102)
    >>> try:
    ...     first.record(2, "chk-2")
    ... except Fenced as fenced:
    ...     print(fenced.evidence)
    epoch 2 has begun
    """

    def __init__(self, storage: Storage, retained: int, position: int, entry: Entry) -> None:
        self._storage, self._retained = storage, retained
        self._position, self._entry = position, entry

    @classmethod
    def claim(cls, storage: Storage, leader: str, retained: int) -> Ledger:
        """Become the leader, in place of the current one.

        Raises:
            LedgerEnded: there is nothing to lead any more.
            Fenced: somebody else has claimed it after this call began.
            StorageError, DamagedFileError, VersionMismatch: the ledger cannot be read or written.
        """
        for _ in range(_TRIES):
            newest = newest_entry(storage)
            position, before = newest or (0, Entry("leader", 0, "", 1 - NUMBERS))
            if before.kind == "ended":
                raise LedgerEnded(storage.url)
            entry = Entry("leader", before.epoch + 1, leader, before.next_number + NUMBERS, before.checkpoints)
            ledger = cls(storage, retained, position, replace(before, leader=leader))
            if ledger._put(entry):
                ledger._look(position)
                return ledger
        raise StorageError(f"write {FOLDER}", storage.url, f"other coordinators wrote first {_TRIES} times")

    @property
    def epoch(self) -> int:
        """Return this leader's epoch, from 1 on."""
        return self._entry.epoch

    @property
    def checkpoints(self) -> tuple[Counted, ...]:
        """Return the checkpoints that count, from the oldest to the newest."""
        return self._entry.checkpoints

    @property
    def next_number(self) -> int:
        """Return the first number of checkpoints that is this leader's."""
        return self._entry.next_number

    def owns(self, number: int) -> bool:
        """Return whether only this leader can use that number for a checkpoint."""
        return number < self._entry.next_number + NUMBERS

    def record(self, checkpoint_id: int, path: str) -> None:
        """Record a fully written checkpoint, which counts from now on. The newest is that of the highest number.

        Raises:
            Fenced: another leader exists: it does not count, and must not be reported as complete.
            StorageError: it is unknown whether it counts: it must not be reported, and none of its files be deleted.
        """
        counted = sorted((*self._entry.checkpoints, Counted(checkpoint_id, path)))[-self._retained - 1 :]
        number = max(checkpoint_id + 1, self._entry.next_number)
        self._append("checkpoint", next_number=number, checkpoints=tuple(counted))

    def reserve(self, number: int) -> None:
        """Reserve a number before files of its checkpoint are written, unless this leader owns it already.

        Raises:
            Fenced: somebody else leads.
        """
        self._append("numbers", next_number=number)

    def end(self) -> None:
        """End the job, whose checkpoints are about to be deleted; it has no leader after this.

        Raises:
            Fenced: somebody else leads: nothing may be deleted.
        """
        self._append("ended", checkpoints=())

    def check(self) -> None:
        """Find out whether this is still the leader.

        Raises:
            Fenced: it is not.
        """
        self._look(self._position)

    def forget(self) -> None:
        """Delete the ledger, after `end` and after all else: the newest entry last."""
        for position in _positions(self._storage):
            self._storage.delete(_path(position))

    def _append(self, kind: EntryKind, **changed: Any) -> None:
        before = self._position
        entry = replace(self._entry, kind=kind, **changed)
        while not self._put(entry):
            before = self._position = self._position + 1  # an entry of ours, whose answer was lost
        self._look(before)

    def _put(self, entry: Entry) -> bool:
        """Write the next position, and delete what is older than the present one; False where ours is there already.

        Raises:
            Fenced: another leader's is there, and this one has led already.
        """
        path = _path(self._position + 1)
        if put_own(self._storage, path, entry.encoded()):
            self._position, self._entry = self._position + 1, entry
            return True
        try:
            present = _read(self._storage, self._position + 1)
        except MissingFileError:
            present = None
        if present is not None and present.leader == entry.leader:
            return False
        if entry.epoch != self._entry.epoch:  # it only wants to lead
            return False
        who = "another has led it, and is gone" if present is None else f"epoch {present.epoch} has begun"
        raise Fenced(self._storage.url, self._entry.epoch, who)

    def _look(self, before: int) -> None:
        """Check that the entry before the last exists and none follows it, then delete entries that are not needed."""
        positions = _positions(self._storage)
        newest = positions[-1] if positions else 0
        if newest > self._position:
            raise Fenced(self._storage.url, self._entry.epoch, f"entry {newest} of its ledger is not its own")
        if before and before not in positions:
            raise LedgerGone(self._storage.url, self._entry.epoch, f"its entry {before} of the ledger was deleted")
        try:
            for old in positions:
                if old < self._position:
                    self._storage.delete(_path(old))
        except StorageError:
            return  # in order, therefore no further one; the next call tries again


def _positions(storage: Storage) -> list[int]:
    matches = (_NAME.fullmatch(path) for path in storage.list(FOLDER))
    return sorted(int(match[1]) for match in matches if match)


def _read(storage: Storage, position: int) -> Entry:
    path = _path(position)
    return decode_entry(storage.read(path), f"{storage.url}/{path}")


def _path(position: int) -> str:
    return f"{FOLDER}/{position:09d}"


__all__ = [
    "FOLDER", "NUMBERS", "Counted", "Entry", "Fenced", "Ledger", "LedgerEnded", "LedgerGone", "decode_entry",
    "newest_entry",
]  # fmt: skip
