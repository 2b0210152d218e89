"""Files that take the place of others when a job has written all of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from rayflink.common.options.store_options import storage_options
from rayflink.common.records.batches import Batch, Element, RowBatch, rows_of
from rayflink.operators.base import Operator
from rayflink.operators.sinks import SinkOperator
from rayflink.operators.user_function import UserCode

from ..file_systems.object_paths import is_object_address
from ..file_systems.object_store import ObjectStores
from .file_blocks import find_files
from .object_parts import ObjectCommitter, PendingObject
from .part_files import LostFile, PendingFile, discard, make_folder, show_file, sync_folder
from .success_files import SuccessMark


class HiddenFilesOperator(SinkOperator):
    """Writes as a file sink does, but gives the names of its hidden files to who shows them."""

    def finish(self) -> Iterable[Element]:
        self._flush(end_of_input=True)
        self._finished = True
        written, self._current = self._current, []
        return (RowBatch(list(written)),) if written else ()


class ReplaceFiles(Operator):
    """Shows hidden files at the end of all input, then deletes what was there before in their folders.

    One that is run again, after a failure in between, ends at the same files. Files whose names begin with `.` or `_`
    stay; hidden files of a job that failed are among them.

    Args:
        folders: in which files are replaced even where no new ones come.
    """

    def __init__(self, folders: Sequence[str] = ()) -> None:
        self._folders = set(folders)
        self._pending: list[PendingFile | PendingObject] = []
        self._marks: list[SuccessMark] = []

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        for record in rows_of(batch):
            (self._marks if isinstance(record, SuccessMark) else self._pending).append(record)
        return ()

    def finish(self) -> Iterable[Element]:
        with UserCode(self.ctx, "finish"):
            stores = ObjectStores(storage_options(self.ctx.config))
            committer = ObjectCommitter(stores)
            new = {pending.visible for pending in self._pending}
            folders = self._folders | {os.path.dirname(path) for path in new}
            before = {str(path) for folder in folders for path in _files_in(folder, stores)} - new
            for pending in self._pending:
                if isinstance(pending, PendingObject):
                    committer.show(pending)
                else:
                    _shown(pending)
            for folder in folders:
                if not is_object_address(folder):
                    make_folder(folder)
                    sync_folder(folder)  # the new before the old go
            for path in before:
                _delete(path, stores)
            for mark in self._marks:
                mark.make(stores)
            committer.close()
        return ()


def _files_in(folder: str, stores: ObjectStores) -> Sequence[str]:
    if is_object_address(folder):
        return find_files([stores.path(folder)], may_be_empty=True)
    return find_files([folder]) if os.path.isdir(folder) else ()


def _delete(path: str, stores: ObjectStores) -> None:
    if is_object_address(path):
        object_path = stores.path(path)
        object_path.store.delete(object_path.key)
    else:
        discard(path)


def _shown(pending: PendingFile) -> None:
    try:
        show_file(pending)
    except FileNotFoundError as error:
        if not os.path.exists(pending.visible):
            raise LostFile(pending, error) from error
