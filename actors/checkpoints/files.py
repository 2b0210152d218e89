"""Publishes and deletes the files of checkpoints when the coordinator decides so."""

from __future__ import annotations

from collections.abc import Callable

from rayflink.common.errors import described
from rayflink.common.text_output.logs import get_logger
from rayflink.state.errors import RayflinkError
from rayflink.state.storage.ledger import FOLDER as LEDGER
from rayflink.state.storage.ledger import Fenced, Ledger
from rayflink.state.storage.manifest import METADATA
from rayflink.state.storage.manifest_format import encode_manifest
from rayflink.state.storage.storage import Storage, put_own

from ..messages.commands import CheckpointNotPublished, CheckpointPublished, DiscardFiles, PublishCheckpoint

log = get_logger(__name__)
OpenStorage = Callable[[str], Storage]


class CheckpointFiles:
    """Publishes and discards the checkpoints of one job.

    Args:
        open_storage: address -> what is there.
        base: of the job's own checkpoints; "": they have no files.
        ledger: records which coordinator leads the job; None: no other coordinator is possible.
    """

    def __init__(self, open_storage: OpenStorage, base: str = "", ledger: Ledger | None = None) -> None:
        self._open_storage, self.base, self._ledger = open_storage, base, ledger

    def publish(self, command: PublishCheckpoint) -> CheckpointPublished | CheckpointNotPublished:
        """Write the metadata of a checkpoint, commit it in the ledger, and return how it went.

        The ledger's entry is the commit point: with it the checkpoint exists, and every later start of the job restores
        from it or from a newer one. Before it there are only files that nothing refers to. Without a ledger, or for a
        savepoint that no recovery starts from, the metadata file is the commit point.
        """
        number, ledger = command.checkpoint_id, self._ledger
        is_there = in_doubt = False
        try:
            storage = self._open_storage(command.base)
            if ledger is not None and command.base == self.base and not ledger.owns(number):
                ledger.reserve(number)
            if not put_own(storage, command.path, encode_manifest(command.manifest)):
                where = f"{command.base}/{command.path}"
                return CheckpointNotPublished(number, f"{where} is there already", exists=True)
            is_there = True
            if ledger is not None and command.counts:
                in_doubt = True  # until the ledger answers, it is unknown whether the checkpoint exists
                self._commit(ledger, number, _place(command, self.base))
            elif ledger is not None:
                ledger.check()
            return CheckpointPublished(number)
        except Fenced as fenced:
            log.error("%s", fenced)
            if is_there:  # no job will ever start from it, and no other process writes its name
                self._delete(storage, [command.path])
            return CheckpointNotPublished(number, str(fenced), exists=True)
        except Exception as error:  # whatever a storage refuses
            reason = _describe(error)
        return CheckpointNotPublished(number, reason, in_doubt=in_doubt)

    @staticmethod
    def _commit(ledger: Ledger, number: int, place: str) -> None:
        """Pass the commit point of a checkpoint: the job restores from it after this write, never before.

        Raises:
            Fenced: another coordinator leads the job; the checkpoint does not exist.
            StorageError: the answer was lost, so the checkpoint may exist or not.
        """
        ledger.record(number, place)

    def discard(self, command: DiscardFiles) -> int:
        """Delete files that nothing refers to any more, and return how many are left; failures are logged only.

        Metadata goes first: without it a checkpoint is none, whatever of it is left. The whole base goes only where
        this coordinator leads the job, and no other does afterwards.
        """
        is_all = command.folder == "" and command.base == self.base
        try:
            self._own(command)
            if is_all and self._ledger is not None:
                self._ledger.end()
            storage = self._open_storage(command.base)
            paths = list(command.paths)
            if command.folder is not None:
                paths += sorted(storage.list(command.folder), key=_is_no_metadata)
            failed = self._delete(storage, [path for path in paths if not path.startswith(f"{LEDGER}/")])
            if is_all and self._ledger is not None and not failed:
                self._ledger.forget()
        except Exception as error:  # a job that is well does not end for what it cannot tidy up
            log.warning("files of a checkpoint are left behind: %s", _describe(error))
            return 1
        return failed

    def _own(self, command: DiscardFiles) -> None:
        """Make sure that the folder of a checkpoint cannot be another coordinator's, or raise `Fenced`."""
        if self._ledger is None or command.base != self.base or not command.folder:
            return
        number = int(command.folder.removeprefix("chk-"))
        if not self._ledger.owns(number):
            self._ledger.reserve(number)

    @staticmethod
    def _delete(storage: Storage, paths: list[str]) -> int:
        failed = 0
        for path in paths:
            try:
                storage.delete(path)
            except Exception as error:  # the others may go
                failed += 1
                log.warning("a file of a checkpoint is left behind: %s", _describe(error))
        return failed


def _describe(error: Exception) -> str:
    return str(error) if isinstance(error, RayflinkError) else described(error)


def _place(command: PublishCheckpoint, base: str) -> str:
    """Return the place as the ledger names it: a folder below the job's base, else an address."""
    folder = command.path.rpartition("/")[0]
    return folder if command.base == base and folder else command.base


def _is_no_metadata(path: str) -> bool:
    return path.rpartition("/")[2] != METADATA


__all__ = ["CheckpointFiles", "OpenStorage"]
