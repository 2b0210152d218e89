"""Savepoints and checkpoints as operators and their states, without the job that wrote them."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from os import PathLike

from rayflink.state.descriptors import StateDescriptor
from rayflink.state.errors import StateError
from rayflink.state.snapshots import SnapshotReader
from rayflink.state.storage.manifest import CheckpointManifest, OperatorManifest, StateSummary
from rayflink.state.storage.snapshot_files import SnapshotFileReader
from rayflink.state.storage.storage_schemes import open_storage
from rayflink.state.storage.stored_checkpoints import read_manifest

from .contents import OperatorContents, StoredContents, entry_value
from .rows import TIMERS, StateRow
from .states import ENUMERATOR, RAW_KEYED, USER, SavedState, keyed_state, list_state, single_state
from .tables import Column

DEFAULT_KEY_GROUPS = 128


class NotInSavepointError(StateError):
    """Raised when a savepoint has no such operator, or an operator no such state.

    Args:
        what: was looked for.
        where: it was looked for.
        near: names that are close, else all there are.
    """

    def __init__(self, what: str, where: str, near: str) -> None:
        super().__init__(what, where, near)
        self.what, self.where, self.near = what, where, near

    def __str__(self) -> str:
        return f"{self.where} has no {self.what}; {self.near}"


class OperatorState:
    """The states of one operator.

    Args:
        manifest: what the savepoint says of it.
        contents: its keyed state and lists.
        reader: of the files that the manifest names.
    """

    def __init__(self, manifest: OperatorManifest, contents: OperatorContents, reader: SnapshotReader) -> None:
        self.manifest, self.contents, self.reader = manifest, contents, reader

    @property
    def uid(self) -> str:
        """Return the uid that the program gave; "" where it gave none."""
        return self.manifest.uid

    @property
    def name(self) -> str:
        """Return its display name."""
        return self.manifest.name

    @property
    def id(self) -> str:
        """Return its id: 32 hex digits."""
        return self.manifest.operator_id

    @property
    def parallelism(self) -> int:
        """Return the number of its subtasks when it was written."""
        return self.manifest.parallelism

    @property
    def max_parallelism(self) -> int:
        """Return the number of its key groups."""
        return self.manifest.max_parallelism

    @cached_property
    def states(self) -> tuple[SavedState, ...]:
        """Return its states by name. Where the savepoint does not name them, all its keyed state is read to find
        them.
        """
        keyed = [keyed_state(summary, self.contents) for summary in self._summaries()]
        said = {state.name: state for state in self.manifest.states if not state.is_keyed}
        names = sorted(self.contents.lists(), key=_users_first)
        lists = [list_state(name, self.contents, said.get(name.removeprefix(USER))) for name in names]
        others = []
        raw = [StateRow(group, data) for group, data in self.contents.raw_groups()]
        if raw:
            others.append(single_state(RAW_KEYED, "raw keyed", raw))
        if self.manifest.coordinator is not None:
            enumerator_state = entry_value("", self.reader.read(self.manifest.coordinator))
            others.append(single_state(ENUMERATOR, "enumerator", [StateRow(None, enumerator_state)]))
        return (*keyed, *lists, *others)

    def state(self, name: str) -> SavedState:
        """Return one state.

        Raises:
            NotInSavepointError: there is none of that name.
        """
        for state in self.states:
            if state.name == name:
                return state
        where = f"operator {self.uid or self.name!r} of the savepoint"
        raise NotInSavepointError(f"state {name!r}", where, near(name, [state.name for state in self.states]))

    def __repr__(self) -> str:
        return f"<operator {self.name!r}{f' uid {self.uid!r}' if self.uid else ''}: {len(self.states)} states>"

    def _summaries(self) -> list[StateSummary]:
        said = {state.name: state for state in self.manifest.states if state.is_keyed}
        if said:
            return [said[name] for name in sorted(said)]
        kinds: dict[str, str] = {}
        for _, content in self.contents.groups():
            kinds.update((name, kind) for name, (kind, _) in content["tables"].items())
            kinds.update(dict.fromkeys(content["timers"], TIMERS))
        return [StateSummary(name, kinds[name], "") for name in sorted(kinds)]


class Savepoint:
    """A savepoint or checkpoint as an immutable value: edits return another one.

    >>> Savepoint.load("/nowhere")
    Traceback (most recent call last):
    rayflink.state.storage.stored_checkpoints.NoCheckpointError: there is no checkpoint or savepoint at /nowhere: ...

    Args:
        manifest: what it consists of.
        operators: its operators.
        path: where it is; "" where it is not written yet.
        base: address of the storage that the names of its files begin at; "" where it is not written yet.
    """

    def __init__(
        self, manifest: CheckpointManifest, operators: Iterable[OperatorState], path: str = "", base: str = ""
    ) -> None:
        self.manifest, self.path, self.base = manifest, path, base
        self.operators = tuple(operators)

    @staticmethod
    def load(path: str | PathLike[str], options: Mapping[str, str] | None = None) -> Savepoint:
        """Load the savepoint or checkpoint at an address, written by any backend.

        Args:
            path: its folder, or its `_metadata` file; a path or the URL of a storage.
            options: Flink's `s3.` options by name, as strings.

        Raises:
            NoCheckpointError: there is none.
            StorageError, DamagedFileError, VersionMismatch: it cannot be read.
        """
        path = os.fspath(path)
        stored_manifest = read_manifest(path, options)
        reader = SnapshotFileReader(open_storage(stored_manifest.base, options))
        manifest = stored_manifest.manifest
        operators = (OperatorState(entry, StoredContents(entry, reader), reader) for entry in manifest.operators)
        return Savepoint(manifest, operators, path, stored_manifest.base)

    @property
    def job_id(self) -> str:
        """Return the id of the job that wrote it."""
        return self.manifest.job_id

    @property
    def job_name(self) -> str:
        """Return the name of the job that wrote it."""
        return self.manifest.job_name

    def operator(self, named: str) -> OperatorState:
        """Return the operator of that uid, id or name.

        Raises:
            NotInSavepointError: there is none, or several have the name.
        """
        for what in ("uid", "id", "name"):
            matches = [operator for operator in self.operators if getattr(operator, what) == named]
            if len(matches) == 1:
                return matches[0]
            if matches:
                ids = ", ".join(operator.uid or operator.id for operator in matches)
                problem = f"one operator that is called {named!r} but {len(matches)}"
                raise NotInSavepointError(problem, self._described(), f"give the uid or id of one of them: {ids}")
        known = [operator.uid or operator.name for operator in self.operators]
        raise NotInSavepointError(f"operator {named!r}", self._described(), near(named, known))

    def state(self, operator: str, state: str) -> SavedState:
        """Return one state of the operator of that uid, id or name.

        Raises:
            NotInSavepointError: there is none.
        """
        return self.operator(operator).state(state)

    @staticmethod
    def new(job_name: str = "bootstrapped") -> Savepoint:
        """Return a savepoint without operators, to which `with_state` adds some before it is written."""
        from .writing import empty_manifest  # which imports this module

        return Savepoint(empty_manifest(job_name), ())

    def with_state(
        self,
        operator: str,
        state: str | StateDescriptor,
        rows: object,
        key: Column = "key",
        value: Column = "value",
        max_parallelism: int = DEFAULT_KEY_GROUPS,
    ) -> Savepoint:
        """Return a savepoint in which the rows of one state are replaced.

        Args:
            operator: its uid, id or name; where there is none of it, the uid of a new one.
            state: name of a state that is there; or the descriptor of one that may be new. Of a list of the operator it
                is the name.
            rows: a table of Arrow, polars or pandas, dicts, or `StateRow`s: all rows of the state from now on. Or a
                function of a `StateRow` that gives the one in its place, or None for none. Of several rows for one
                value, or for one entry of a map, the last counts.
            key: the column of the keys, several that make tuples, or a function of a row as a dict.
            value: of the values, likewise.
            max_parallelism: key groups of a new operator; the job must have as many, or set none.

        Raises:
            NotInSavepointError: there is no such state, and no descriptor is given.
            ColumnError: the table has not the columns.
        """
        from .edits import with_state  # which imports this module

        return with_state(self, operator, state, rows, (key, value), max_parallelism)

    def with_timers(
        self,
        operator: str,
        rows: object,
        queue: str = "user-timers/event",
        key: Column = "key",
        time: Column = "time",
        max_parallelism: int = DEFAULT_KEY_GROUPS,
    ) -> Savepoint:
        """Return a savepoint in which the timers of an operator are replaced.

        Args:
            operator, rows, key, max_parallelism: as in `with_state`.
            queue: "user-timers/event" or "user-timers/processing" for those that functions set, "window-timers/event"
                or "window-timers/processing" for those of windows.
            time: the column of their timestamps in epoch milliseconds, or a function of a row as a dict.
        """
        from .edits import TimersDescriptor, with_state  # which imports this module

        return with_state(self, operator, TimersDescriptor(queue), rows, (key, time), max_parallelism)

    def without_state(self, operator: str, state: str) -> Savepoint:
        """Return a savepoint without one state of an operator.

        Raises:
            NotInSavepointError: there is no such state.
        """
        from .edits import without_state  # which imports this module

        return without_state(self, operator, state)

    def without_operator(self, operator: str) -> Savepoint:
        """Return a savepoint without the state of an operator.

        Raises:
            NotInSavepointError: there is no such operator.
        """
        gone = self.operator(operator)
        return Savepoint(self.manifest, [other for other in self.operators if other is not gone])

    def write(self, path: str | PathLike[str], options: Mapping[str, str] | None = None) -> Savepoint:
        """Write it, in the format of all backends, to a folder that does not exist yet; the savepoint there.

        Of each operator one key group is in memory at a time, and what `with_state` was given.

        Args:
            path: a path or the URL of a storage.
            options: Flink's `s3.` options by name, as strings.

        Raises:
            SavepointExistsError: there is one.
            SerializationError: a value cannot be written, as its class is not in this process.
            StorageError: the storage refuses.
        """
        from .writing import write_savepoint  # which imports this module

        return write_savepoint(self, os.fspath(path), options)

    def __repr__(self) -> str:
        return f"<{self._described()}: {len(self.operators)} operators>"

    def _described(self) -> str:
        return f"{self.manifest.kind} {self.manifest.checkpoint_id} of job {self.job_name!r}"


def read_savepoint(path: str | PathLike[str], options: Mapping[str, str] | None = None) -> Savepoint:
    """Read the savepoint or checkpoint at an address; see `Savepoint.load`."""
    return Savepoint.load(path, options)


def _users_first(name: str) -> tuple[bool, str]:
    return not name.startswith(USER), name


def near(name: str, known: Iterable[str]) -> str:
    """Return suggestions for a name that was not found."""
    names = sorted(set(known))
    close = difflib.get_close_matches(name, names, 3, 0.5)
    if close:
        return f"did you mean {' or '.join(map(repr, close))}?"
    return f"there are: {', '.join(map(repr, names))}" if names else "it has none at all"


__all__ = ["NotInSavepointError", "OperatorState", "Savepoint", "USER", "near", "read_savepoint"]
