"""Files that take the place of others when a job has written all of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from rayflink.common.records.batches import Batch, Element, RowBatch, rows_of
from rayflink.operators.base import Operator
from rayflink.operators.sinks import SinkOperator
from rayflink.operators.user_function import UserCode

from .file_blocks import find_files
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
        self._pending: list[PendingFile] = []
        self._marks: list[SuccessMark] = []

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        for one in rows_of(batch):
            (self._marks if isinstance(one, SuccessMark) else self._pending).append(one)
        return ()

    def finish(self) -> Iterable[Element]:
        with UserCode(self.ctx, "finish"):
            new = {pending.visible for pending in self._pending}
            folders = self._folders | {os.path.dirname(path) for path in new}
            before = {path for folder in folders if os.path.isdir(folder) for path in find_files([folder])} - new
            for pending in self._pending:
                _shown(pending)
            for folder in folders:
                make_folder(folder)
                sync_folder(folder)  # the new before the old go
            for path in before:
                discard(path)
            for mark in self._marks:
                mark.make()
        return ()


def _shown(pending: PendingFile) -> None:
    try:
        show_file(pending)
    except FileNotFoundError as error:
        if not os.path.exists(pending.visible):
            raise LostFile(pending, error) from error
