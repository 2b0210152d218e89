"""The enumerator of a source whose splits are known by name: it resolves their positions and gives each to a reader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from rayflink.common.connector_base.source import EnumeratorContext, SplitEnumerator


class LogSplit(Protocol):
    """A log, or a part of it, from a position on."""

    @property
    def split_id(self) -> str:
        """Return the name of the split, the same for each position in it."""
        ...

    @property
    def is_finished(self) -> bool:
        """Return whether nothing is left to read."""
        ...


@dataclass(frozen=True)
class LogSplitsState:
    """The state of the enumerator in a checkpoint.

    Args:
        known: names of the splits whose first positions are resolved, in the order of the program.
        unassigned: splits that no reader has yet.
    """

    known: tuple[str, ...] = ()
    unassigned: tuple[LogSplit, ...] = ()


class LogSplits(SplitEnumerator):
    """Resolves the first positions of splits, once, and assigns each split to one reader.

    Args:
        ctx: the coordinator.
        names: of the splits; those that a restored job has not known before are resolved as at a first start.
        resolve: names -> splits at their first positions. It may block, and runs beside the coordinator.
        is_bounded: whether each split has an end.
        stop: called by `close`; makes `resolve` return soon.
        state: what `snapshot_state` returned; the default: the job starts afresh.
    """

    def __init__(
        self,
        ctx: EnumeratorContext,
        names: Sequence[str],
        resolve: Callable[[Sequence[str]], Sequence[LogSplit]],
        is_bounded: bool,
        stop: Callable[[], None],
        state: LogSplitsState | None = None,
    ) -> None:
        self._ctx, self._names, self._resolve, self._is_bounded, self._stop = ctx, names, resolve, is_bounded, stop
        state = state or LogSplitsState()
        self._known, self._unassigned = list(state.known), list(state.unassigned)
        self._is_resolved = set(names).issubset(self._known)
        self._readers: set[int] = set()

    def start(self) -> None:
        if not self._is_resolved:
            new = [name for name in self._names if name not in self._known]
            self._ctx.call_async(partial(self._resolve, new), partial(self._resolved, new))

    def _resolved(self, names: Sequence[str], splits: Sequence[LogSplit] | None, error: Exception | None) -> None:
        if splits is None:
            assert error is not None
            raise error
        self._known += names
        self._is_resolved = True
        self._unassigned += [split for split in splits if not split.is_finished]
        self._assign(sorted(self._readers))

    def handle_split_request(self, subtask: int) -> None:
        self._readers.add(subtask)
        self._assign([subtask])

    def _assign(self, readers: Sequence[int]) -> None:
        parallelism = self._ctx.current_parallelism()
        owners = {name: index % parallelism for index, name in enumerate(self._known)}
        for reader in readers:
            mine = [split for split in self._unassigned if owners.get(split.split_id, 0) == reader]
            if mine:
                self._unassigned = [split for split in self._unassigned if split not in mine]
                self._ctx.assign_splits({reader: mine})
            if self._is_resolved and self._is_bounded:
                self._ctx.signal_no_more_splits(reader)

    def add_splits_back(self, splits: list[LogSplit], subtask: int) -> None:
        self._readers.discard(subtask)
        self._unassigned += splits

    def snapshot_state(self) -> LogSplitsState:
        return LogSplitsState(tuple(self._known), tuple(self._unassigned))

    def close(self) -> None:
        self._stop()


__all__ = ["LogSplit", "LogSplits", "LogSplitsState"]
