"""Empty files that mark a folder of part files as complete."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rayflink.common.connector_base.commits import CommitOutcome, CommitRequest
from rayflink.common.connector_base.sink import Committer, WriterContext
from rayflink.common.records.batches import MIN_TIMESTAMP, Batch
from rayflink.common.serialization import BulkWriterFactory, Encoder

from ..file_systems.object_paths import is_object_address
from ..file_systems.object_store import ObjectStores
from ..file_systems.store_errors import ObjectStoreError
from .file_writing import FileWriter
from .part_files import Renamer, make_folder, sync_folder
from .part_places import PartPlace

if TYPE_CHECKING:
    from .file_sink import FileSinkSettings

_NOT_YET = (CommitOutcome.RETRY, CommitOutcome.UNKNOWN_FAILURE)


@dataclass(frozen=True)
class SuccessFiles:
    """The rule for a folder to be complete, and how that is announced.

    Args:
        name: of the file.
        delay_ms: so much later.
        time_of: folder -> the time for which its rows are, epoch milliseconds: it is complete when the watermark is
            there; None: when the clock is as far from its first row as the delay.
    """

    name: str = "_SUCCESS"
    delay_ms: int = 0
    time_of: Callable[[str], int] | None = None


@dataclass(frozen=True)
class SuccessMark:
    """A file without content that waits to be made."""

    visible: str

    def make(self, stores: ObjectStores | None = None) -> None:
        """Make it, durably; one that is there stays.

        Args:
            stores: where it is, if it is in an object store.
        """
        if is_object_address(self.visible):
            path = (stores or ObjectStores()).path(self.visible)
            path.store.put(path.key, b"")
            return
        folder = os.path.dirname(self.visible)
        make_folder(folder)
        with open(self.visible, "ab"):
            pass
        sync_folder(folder)


class MarkingCommitter(Committer):
    """Makes files visible, then the marks of their folders.

    Args:
        files: makes the files visible; None: renames them.
        stores: where the marks are, if they are in an object store.
    """

    def __init__(self, files: Committer | None = None, stores: ObjectStores | None = None) -> None:
        self._files, self._stores = files or Renamer(), stores
        self.in_background = self._files.in_background

    def commit(self, requests: Sequence[CommitRequest[Any]]) -> None:
        files = [request for request in requests if not isinstance(request.get_committable(), SuccessMark)]
        self._files.commit(files)
        late = {
            os.path.dirname(request.get_committable().visible): request.error
            for request in files
            if request.outcome in _NOT_YET
        }
        for request in requests:
            mark = request.get_committable()
            if not isinstance(mark, SuccessMark):
                continue
            folder = os.path.dirname(mark.visible)
            if folder in late:
                request.retry_later(late[folder])
                continue
            try:
                mark.make(self._stores)
            except (OSError, ObjectStoreError) as error:
                request.retry_later(error)

    def close(self) -> None:
        self._files.close()


class MarkingFileWriter(FileWriter):
    """Writes part files, and marks for folders that are complete; one subtask is to have all rows of a folder.

    Its state is the number of its next file, and the folders that wait for their mark. A folder that gets rows after
    its mark is marked again.
    """

    def __init__(
        self,
        ctx: WriterContext,
        place: tuple[str, PartPlace],
        form: Encoder | BulkWriterFactory,
        settings: FileSinkSettings,
        beginning: str,
    ) -> None:
        numbers = tuple(state[:2] for state in ctx.restored)
        super().__init__(replace(ctx, restored=numbers), place, form, settings, beginning)
        assert settings.marks is not None
        self._marks: SuccessFiles = settings.marks
        self._watermark = MIN_TIMESTAMP
        self._waiting: dict[str, int] = {}
        for subtask, _, waiting in ctx.restored:
            if subtask % ctx.parallelism == ctx.subtask:
                self._waiting.update(waiting)
        self._complete: list[str] = []

    def _write_to(self, bucket: str, batch: Batch, now_ms: int) -> None:
        super()._write_to(bucket, batch, now_ms)
        self._waiting.setdefault(bucket, now_ms)

    def on_watermark(self, watermark_ms: int) -> None:
        self._watermark = watermark_ms

    def flush(self, end_of_input: bool) -> None:
        super().flush(end_of_input)
        now_ms = self._ctx.now_ms()
        for bucket, begun_ms in list(self._waiting.items()):
            if end_of_input or self._is_complete(bucket, begun_ms, now_ms):
                self._complete.append(bucket)
                del self._waiting[bucket]

    def _is_complete(self, bucket: str, begun_ms: int, now_ms: int) -> bool:
        marks = self._marks
        if marks.time_of is None:
            return now_ms >= begun_ms + marks.delay_ms
        return self._watermark >= marks.time_of(bucket) + marks.delay_ms

    def prepare_commit(self) -> Sequence[Any]:
        complete, self._complete = self._complete, []
        marks = [SuccessMark(os.path.join(self._path_of(bucket), self._marks.name)) for bucket in complete]
        return [*super().prepare_commit(), *marks]

    def snapshot_state(self) -> Any:
        return (*super().snapshot_state(), dict(self._waiting))
