"""The writer of a file sink: it sorts records into buckets and ends files when they are due."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import IO, TYPE_CHECKING, Any, cast

from rayflink.common.connector_base.sink import SinkWriter, UnwritableRecord, WriterContext, all_or_named
from rayflink.common.errors import shorten
from rayflink.common.records.batches import ArrowBatch, Batch, RowBatch, rows_of
from rayflink.common.serialization import BulkWriter, BulkWriterFactory, Encoder

from .buckets import BucketContext
from .object_parts import ObjectPart
from .part_files import PartFile, writing_below
from .part_places import PartPlace, PendingFile, PendingObject

if TYPE_CHECKING:
    from .file_sink import FileSinkSettings


class _Open:
    """The part file of a bucket, and what writes blocks to it."""

    def __init__(self, part: PartFile | ObjectPart, bulk: BulkWriter | None) -> None:
        self.part, self.bulk = part, bulk


class FileWriter(SinkWriter):
    """Writes the records of one subtask; its state is the number of its next file.

    Every writer is restored from the numbers of all, goes on behind the largest, and so never gives a number twice. It
    deletes the files that its subtask, or one that is no more, began after the checkpoint.

    Args:
        ctx: of the subtask.
        place: the folder of the sink, and what writes there.
        form: how records become bytes.
        settings: buckets and when files end.
        beginning: of all names, up to the subtask.
    """

    state_mode = "union"

    def __init__(
        self,
        ctx: WriterContext,
        place: tuple[str, PartPlace],
        form: Encoder | BulkWriterFactory,
        settings: FileSinkSettings,
        beginning: str,
    ) -> None:
        self._ctx, (self._folder, self._place), self._form = ctx, place, form
        self._attempt = ctx.epoch, ctx.attempt
        self._buckets, self._rolling, self._check_ms = settings.buckets, settings.rolling, settings.check_ms
        self._most_open = settings.most_open
        self._beginning, self._suffix = beginning, settings.names.get_part_suffix()
        self._ends_at_checkpoints = self._rolling.ends_at_checkpoints or isinstance(form, BulkWriterFactory)
        self._number = max((number for _, number in ctx.restored), default=0)
        self._open: dict[str, _Open] = {}
        self._whole: list[PendingFile | PendingObject] = []
        self._unfinished: list[PendingFile | PendingObject] = []
        self._in_checkpoints: set[str] = set()
        """Hidden names of files that were still open at a checkpoint, which may be restored from them."""
        self._unsynced: set[str] = set()
        """Folders with new names."""
        self._next_check_ms: int | None = None
        self._place.ensure_writable()
        self._remove_leftovers(is_alone=not settings.names_bear_job)

    def _remove_leftovers(self, is_alone: bool) -> None:
        ctx, parallelism = self._ctx, self._ctx.parallelism
        is_first = ctx.attempt == 0 and ctx.epoch <= 1
        if is_first and not is_alone:
            return  # no attempt has begun files with the digits of this job
        firsts = {} if ctx.restored else {ctx.subtask: 0}
        for subtask, number in ctx.restored:
            if subtask == ctx.subtask or (subtask >= parallelism and subtask % parallelism == ctx.subtask):
                firsts[subtask] = number
        before = None if is_first and not ctx.restored else self._attempt
        if firsts:
            self._place.remove_leftovers((self._beginning, self._suffix), firsts, before, ctx.subtask)

    def write(self, batch: Batch) -> None:
        if not len(batch):
            return
        now_ms = self._ctx.now_ms()
        bucket = self._buckets.bucket_of_all(now_ms)
        divided: Iterable[tuple[str, Batch]] | None
        divided = self._buckets.divided(batch, now_ms) if bucket is None else ((bucket, batch),)
        if divided is None:
            divided = self._divided(batch, now_ms)
        for bucket, part in divided:
            with writing_below(self._folder):
                self._write_to(bucket, part, now_ms)

    def _divided(self, batch: Batch, now_ms: int) -> Iterator[tuple[str, Batch]]:
        stamps = batch.timestamps
        places: dict[str, list[int]] = {}
        for index, value in enumerate(rows_of(batch)):
            stamp = None if stamps is None else int(stamps[index])
            try:
                bucket = self._buckets.get_bucket_id(value, BucketContext(now_ms, stamp))
                if not isinstance(bucket, str):
                    problem = f"found {type(bucket).__name__} {shorten(bucket, 80)}"
                    raise TypeError(f"a bucket is a path below the folder, {problem}; let get_bucket_id give a str")
            except Exception as error:
                raise UnwritableRecord(shorten(value)) from error
            places.setdefault(bucket, []).append(index)
        for bucket, indices in places.items():
            if isinstance(batch, ArrowBatch):
                yield bucket, ArrowBatch(batch.data.take(indices))
            else:
                yield bucket, RowBatch([batch.values[index] for index in indices])

    def _write_to(self, bucket: str, batch: Batch, now_ms: int) -> None:
        if isinstance(self._form, Encoder):
            self._append(bucket, list(rows_of(batch)), now_ms)
            return
        opened = self._opened(bucket, now_ms)
        assert opened.bulk is not None
        opened.bulk.add_batch(batch)
        opened.part.touched_ms = now_ms
        if self._most_open < len(self._open) * 2:
            self._open[bucket] = self._open.pop(bucket)  # behind the others
        self._end_if_large(bucket)

    def _append(self, bucket: str, records: list[Any], now_ms: int) -> None:
        assert isinstance(self._form, Encoder)
        pieces = all_or_named(self._form.encode_all, self._form.encode, records)
        if not {bytes}.issuperset(map(type, pieces)):
            for piece, record in zip(pieces, records, strict=True):
                if not isinstance(piece, bytes | bytearray):
                    problem = f"{type(self._form).__name__}.encode() gave {type(piece).__name__}, bytes are wanted"
                    raise UnwritableRecord(shorten(record)) from TypeError(f"{problem}; encode the text")
        position = 0
        while position < len(pieces):
            opened = self._opened(bucket, now_ms)
            stop = self._that_fit(pieces, position, opened.part.file.tell())
            opened.part.file.write(b"".join(pieces[position:stop]))
            opened.part.touched_ms = now_ms
            position = stop
            self._end_if_large(bucket)

    def _that_fit(self, pieces: Sequence[bytes], position: int, size: int) -> int:
        """Return the position at which a file of `size` bytes exceeds the limit when `pieces` from `position` on are
        added, or the end.
        """
        most = self._rolling.part_size
        if most is None or size + sum(map(len, pieces[position:])) <= most:
            return len(pieces)
        while position < len(pieces) and size <= most:
            size += len(pieces[position])
            position += 1
        return position

    def _opened(self, bucket: str, now_ms: int) -> _Open:
        if bucket not in self._open:
            part = self._next_part(self._path_of(bucket), now_ms)
            self._open[bucket] = opened = _Open(part, None)
            if len(self._open) > self._most_open:
                self._end(next(iter(self._open)))  # the one that was not written to for longest
            if isinstance(self._form, BulkWriterFactory):
                opened.bulk = self._form.create(cast("IO[bytes]", part.file))
            if self._next_check_ms is None:
                self._next_check_ms = now_ms + self._check_ms
        return self._open[bucket]

    def _next_part(self, folder: str, now_ms: int) -> PartFile | ObjectPart:
        """Create a file with the next number that is not in use."""
        while True:
            name = f"{self._beginning}{self._ctx.subtask}-{self._number}{self._suffix}"
            self._number += 1
            if self._ctx.restored and self._place.exists(os.path.join(folder, name)):
                continue  # of a later checkpoint than the one that was restored
            with suppress(FileExistsError):  # of an attempt that could not be stopped
                self._unsynced.add(folder)
                return self._place.open_part(folder, name, self._attempt, now_ms)

    def _path_of(self, bucket: str) -> str:
        if os.path.isabs(bucket) or ".." in bucket.split("/"):
            raise ValueError(f"bucket {bucket!r} leads out of {self._folder!r}; give a path below the sink's folder")
        return os.path.join(self._folder, bucket) if bucket else self._folder

    def _end_if_large(self, bucket: str) -> None:
        most = self._rolling.part_size
        if most is not None and self._open[bucket].part.file.tell() > most:
            self._end(bucket)

    def _end(self, bucket: str) -> None:
        opened = self._open[bucket]
        with writing_below(self._folder):
            if opened.bulk is not None:
                opened.bulk.finish()
            self._whole.append(opened.part.end())
        del self._open[bucket]

    def next_time_ms(self) -> int | None:
        return self._next_check_ms

    def on_time(self, now_ms: int) -> None:
        for bucket, opened in list(self._open.items()):
            if self._rolling.is_due(now_ms, opened.part.begun_ms, opened.part.touched_ms):
                self._end(bucket)
        self._next_check_ms = now_ms + self._check_ms if self._open else None

    def flush(self, end_of_input: bool) -> None:
        self._unfinished = []
        for bucket, opened in list(self._open.items()):
            if end_of_input or self._ends_at_checkpoints:
                self._end(bucket)
                continue
            with writing_below(self._folder):
                so_far = opened.part.sync()
            if so_far.size:
                self._unfinished.append(so_far)
        with writing_below(self._folder):
            while self._unsynced:
                self._place.settle(folder := next(iter(self._unsynced)))
                self._unsynced.remove(folder)
        if not self._open:
            self._next_check_ms = None

    def prepare_commit(self) -> Sequence[PendingFile | PendingObject]:
        whole, self._whole = self._whole, []
        return whole

    def snapshot_unfinished(self) -> Sequence[PendingFile | PendingObject]:
        self._in_checkpoints = {opened.part.hidden for opened in self._open.values()}
        return self._unfinished

    def snapshot_state(self) -> tuple[int, int]:
        return self._ctx.subtask, self._number

    def close(self) -> None:
        opened, self._open = self._open, {}
        whole, self._whole = self._whole, []
        with ExitStack() as closing:  # all of them, whatever one raises
            closing.callback(self._place.close)
            for pending in whole:
                if pending.hidden not in self._in_checkpoints:
                    closing.callback(self._place.discard, pending)
            for open_file in opened.values():
                is_in_checkpoint = open_file.part.hidden in self._in_checkpoints
                closing.callback(open_file.part.leave if is_in_checkpoint else open_file.part.discard)
                if open_file.bulk is not None:
                    closing.callback(open_file.bulk.abandon)
