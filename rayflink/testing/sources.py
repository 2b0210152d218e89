"""A source whose script says what it gives and when: records, watermarks, pauses and crashes are items of a list.

Source: bytewax/bytewax TestingSource, in which EOF, ABORT and PAUSE are items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rayflink.common.connector_base.source import (
    PENDING,
    Boundedness,
    EnumeratorContext,
    PendingSplits,
    Polled,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from rayflink.common.connector_base.split_reader import OneByOneReader, SplitCursor
from rayflink.common.records.batches import Watermark, WatermarkStatus

from .elements import Mark, Record, Status, row_batch


@dataclass(frozen=True, slots=True)
class Pause:
    """The source has nothing to give for `ms` milliseconds of processing time."""

    ms: int


@dataclass(frozen=True, slots=True)
class Crash:
    """The source raises `ScriptedCrash` when it gets here."""

    message: str = "the script says so"


class ScriptedCrash(Exception):
    """The error that a `Crash` item of a script raises."""


PAUSE = Pause(1_000)
"""Nothing for a second."""
CRASH = Crash()
"""Raise."""


@dataclass(frozen=True, slots=True)
class ScriptPosition:
    """The items of script `number` from `position` on."""

    number: int
    position: int = 0

    @property
    def split_id(self) -> str:
        """Return the id of the script."""
        return f"script {self.number}"


class ScriptedSource(Source):
    """Gives what its scripts say, item by item; the readers share the scripts among them.

    An item is `rec(value, timestamp)`, `wm(ms)`, `idle()`, `active()`, a `Pause`, a `Crash`, or any other value, which
    is a record without timestamp.

    >>> from rayflink.testing import PAUSE, ScriptedSource, rec, wm
    >>> ScriptedSource([rec("a", 1), wm(1), PAUSE, rec("b", 2)]).max_parallelism
    1

    Args:
        scripts: at least one; each is read by one reader, from its begin to its end.
    Raises:
        ValueError: there is no script.
    """

    def __init__(self, *scripts: Sequence[Any]) -> None:
        if not scripts:
            raise ValueError("found no script; give at least one list of items, which may be empty")
        self.scripts = tuple(tuple(script) for script in scripts)

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    @property
    def max_parallelism(self) -> int | None:
        return 1 if len(self.scripts) == 1 else None

    def create_enumerator(self, ctx: EnumeratorContext) -> SplitEnumerator:
        return PendingSplits(ctx, [ScriptPosition(number) for number in range(len(self.scripts))])

    def restore_enumerator(self, ctx: EnumeratorContext, state: Any) -> SplitEnumerator:
        return PendingSplits(ctx, state)

    def create_reader(self, ctx: ReaderContext) -> SourceReader:
        return _Reader(self.scripts, ctx)


class _Reader(OneByOneReader):
    def __init__(self, scripts: tuple[tuple[Any, ...], ...], ctx: ReaderContext) -> None:
        super().__init__()
        self._scripts, self._ctx = scripts, ctx
        self._resumes_ms: int | None = None

    def poll(self, max_records: int) -> Polled:
        if self._resumes_ms is not None:
            if self._ctx.now_ms() < self._resumes_ms:
                return PENDING
            self._resumes_ms = None
        return super().poll(max_records)

    def next_poll_ms(self) -> int | None:
        return self._resumes_ms

    def open_split(self, split: ScriptPosition) -> SplitCursor:
        return _Cursor(self, self._scripts[split.number], split)

    def pause(self, ms: int) -> None:
        self._resumes_ms = self._ctx.now_ms() + ms


class _Cursor:
    def __init__(self, reader: _Reader, script: tuple[Any, ...], split: ScriptPosition) -> None:
        self._reader, self._script, self._split = reader, script, split

    def read(self, max_records: int) -> Polled | None:
        rest = self._script[self._split.position :]
        if not rest:
            return None
        first = rest[0]
        if isinstance(first, Crash):
            raise ScriptedCrash(first.message)
        if isinstance(first, Mark | Status | Pause):
            self._forward(1)
            if isinstance(first, Mark):
                return Watermark(first.timestamp)
            if isinstance(first, Status):
                return WatermarkStatus(first.is_idle)
            self._reader.pause(first.ms)
            return PENDING
        records: list[Record] = []
        for item in rest[:max_records]:
            if isinstance(item, Mark | Status | Pause | Crash):
                break
            records.append(item if isinstance(item, Record) else Record(item))
        self._forward(len(records))
        return row_batch(records)

    def position(self) -> ScriptPosition:
        return self._split

    def close(self) -> None:
        pass

    def _forward(self, items: int) -> None:
        self._split = replace(self._split, position=self._split.position + items)
