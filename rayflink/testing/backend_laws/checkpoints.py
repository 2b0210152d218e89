"""Laws of checkpoints in files: a series of which only the newest is retained, restored at any parallelism."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

from rayflink.state.backend import KeyedBackend
from rayflink.state.errors import DamagedFileError, SnapshotMismatch, VersionMismatch
from rayflink.state.keys.key_groups import key_group_range
from rayflink.state.snapshots import DatabaseFiles, FileSlice, KeyedCapture, KeyedParts, StoredSnapshot
from rayflink.state.storage.memory_storage import MemoryStorage
from rayflink.state.storage.snapshot_files import SnapshotFileReader, SnapshotFileWriter, SnapshotPlace
from rayflink.state.storage.storage import MissingFileError

from .captures import changed_all_over
from .samples import namespaces
from .snapshots import LISTS, MAPS, VALUES, all_of, filled
from .subject import (
    MAX_PARALLELISM,
    OPERATOR_UID,
    Law,
    Subject,
    content_of,
    maps_in,
    refused,
    same,
    same_bag,
    snapshot_of,
)


class Checkpoints:
    """The checkpoints of one job, of which only the newest complete one is retained; other files are deleted.

    Those under way are not asked what they refer to, for it is unknown until they are written: they keep the files
    that they stored themselves, and no others.
    """

    def __init__(self) -> None:
        self.storage = MemoryStorage()
        self.reader = SnapshotFileReader(self.storage)
        self._numbers, self._names = count(1), map(str, count())
        self._written: dict[int, tuple[KeyedParts, set[str]]] = {}

    def next_number(self) -> int:
        """Return the number of the next checkpoint."""
        return next(self._numbers)

    def write(self, number: int, capture: KeyedCapture) -> KeyedParts:
        """Write what was captured, and release it."""
        before = set(self.storage.list())
        place = SnapshotPlace.of_checkpoint(number, 0)
        writer = SnapshotFileWriter(self.storage, place, uploads=0, new_name=lambda: next(self._names))
        try:
            parts = capture.write(writer)
            writer.finish()
        finally:
            capture.release()
        self._written[number] = parts, set(self.storage.list()) - before
        return parts

    def complete(self, number: int) -> KeyedParts:
        """Note that the checkpoint is complete."""
        parts, _ = self._written.pop(number)
        self.keep(number, parts)
        return parts

    def keep(self, number: int, *parts: KeyedParts) -> None:
        """Retain this checkpoint, the newest complete one, with the parts of several subtasks."""
        self._written = {newer: written for newer, written in self._written.items() if newer > number}
        referenced_paths = {path for part in parts for path in paths_of(part)}
        referenced_paths |= {path for _, own in self._written.values() for path in own}
        for path in self.storage.list():
            if path not in referenced_paths:
                self.storage.delete(path)


def paths_of(parts: KeyedParts) -> set[str]:
    """Return the files of a checkpoint."""
    blobs = StoredSnapshot(parts.groups, databases=parts.databases).blobs
    return {blob.path for blob in blobs if isinstance(blob, FileSlice)}


def restore_into(
    backend: KeyedBackend, checkpoints: Checkpoints, parts: Sequence[KeyedParts], reusable: bool = False
) -> KeyedBackend:
    """Restore the backend from the checkpoints of several subtasks."""
    owned, reader = backend.key_groups, checkpoints.reader
    databases = [database for part in parts for database in part.databases]
    overlapping = [d for d in databases if d.first_group < owned.stop and owned.start < d.end_group]
    if overlapping:
        backend.restore_databases(overlapping, reader, reusable)
    backend.restore([{group: reader.read(blob) for group, blob in part.groups.items()} for part in parts])
    return backend


def checkpoint_of(checkpoints: Checkpoints, backend: KeyedBackend) -> KeyedParts:
    """Return a complete checkpoint."""
    number = checkpoints.next_number()
    backend.announce(number)
    while backend.prepare(lambda: True) == 0:
        pass
    checkpoints.write(number, backend.capture(number))
    parts = checkpoints.complete(number)
    backend.confirm(number)
    return parts


def a_checkpoint_restores_everything(subject: Subject) -> None:
    checkpoints, expected = Checkpoints(), all_of(filled(subject.hashmap()))
    parts = checkpoint_of(checkpoints, filled(subject.backend()))
    same("in the same backend", all_of(restore_into(subject.backend(), checkpoints, [parts])), expected)
    same("in a hashmap", all_of(restore_into(subject.hashmap(), checkpoints, [parts])), expected)


def each_checkpoint_of_a_series_is_whole(subject: Subject) -> None:
    checkpoints, backend = Checkpoints(), filled(subject.backend())
    for turn in range(6):
        changed_all_over(backend, turn)
        parts = checkpoint_of(checkpoints, backend)
        groups = all_of(subject.backend(snapshot_of(backend)))
        same(f"checkpoint {turn}", all_of(restore_into(subject.backend(), checkpoints, [parts])), groups)
        if turn == 3:  # the job fails, and goes on from its checkpoint
            backend = restore_into(subject.backend(), checkpoints, [parts], reusable=True)


def files_are_referred_to_only_while_they_are_kept(subject: Subject) -> None:
    checkpoints, backend = Checkpoints(), filled(subject.backend())
    under_way: list[tuple[int, Any]] = []
    for turn in range(8):
        changed_all_over(backend, turn)
        number = checkpoints.next_number()
        expected = all_of(subject.backend(snapshot_of(backend)))
        checkpoints.write(number, backend.capture(number))
        under_way.append((number, expected))
        if turn == 4:
            backend.abort(under_way.pop(1)[0])
        if turn % 3 == 2:
            done, known = under_way.pop(0)
            again = restore_into(subject.backend(), checkpoints, [checkpoints.complete(done)])
            same(f"checkpoint {done}", all_of(again), known)
            backend.confirm(done)
    for done, known in under_way:
        again = restore_into(subject.backend(), checkpoints, [checkpoints.complete(done)])
        same(f"checkpoint {done}, which was under way with others", all_of(again), known)


def a_checkpoint_is_of_its_moment(subject: Subject) -> None:
    checkpoints, backend = Checkpoints(), filled(subject.backend())
    for turn in range(4):
        expected = all_of(subject.backend(snapshot_of(backend)))
        number = checkpoints.next_number()
        capture = backend.capture(number)
        for change in range(5):
            changed_all_over(backend, turn + change)
        list(backend.timers("event").due(turn))
        parts = checkpoints.write(number, capture)
        same(f"turn {turn}", all_of(restore_into(subject.backend(), checkpoints, [parts])), expected)


def subtasks_of_checkpoints_become_more_and_fewer(subject: Subject) -> None:
    checkpoints, started = Checkpoints(), filled(subject.backend())
    changed_all_over(started, 1)
    expected = all_of(subject.hashmap(snapshot_of(started)))
    parts = [checkpoint_of(checkpoints, started)]
    for parallelism in (2, 3, 1, 3, 2):
        subtasks = [
            restore_into(subject.backend(subtask=subtask, parallelism=parallelism), checkpoints, parts)
            for subtask in range(parallelism)
        ]
        parts = _together(checkpoints, subtasks)
        contents = [all_of(backend) for backend in subtasks]
        for name in ("values", "lists", "maps"):
            joined = {place: value for content in contents for place, value in content[name].items()}
            same(f"{name} of {parallelism} subtasks together", joined, expected[name])
            same(f"{name} in two subtasks", sum(len(content[name]) for content in contents), len(joined))
        for queue in ("event", "other"):
            fired = [timer for content in contents for timer in content["timers"][queue]]
            same_bag(f"{queue} timers of {parallelism} subtasks together", fired, expected["timers"][queue])
    whole = restore_into(subject.backend(), checkpoints, parts)
    changed_all_over(whole, 2)
    changed_all_over(started, 2)
    same("what is worked on", all_of(whole), all_of(started))


def subtasks_that_met_windows_in_another_order_become_one(subject: Subject) -> None:
    checkpoints, parts = Checkpoints(), []
    expected: dict[Any, Any] = {}
    for subtask in range(2):
        half, some = subject.backend(subtask=subtask, parallelism=2), namespaces()
        owned = key_group_range(subtask, 2, MAX_PARALLELISM)
        keys = dict.fromkeys(key for key, _, _ in filled(subject.hashmap()).table(VALUES).entries(owned))
        for value, key in enumerate(keys):
            for space in some if subtask else reversed(some):
                half.table(VALUES).put(key, value, space)
                half.map_table(MAPS).put(key, 1, value, space)
                half.table(LISTS).append(key, value, space)
                half.timers("event").register(5, key, space)
                expected[key, space] = value
        parts.append(_part(checkpoints, half))
    backend = restore_into(subject.backend(), checkpoints, parts)
    same("values", content_of(backend.table(VALUES)), expected)
    same("lists", content_of(backend.table(LISTS)), {place: [value] for place, value in expected.items()})
    same("maps", maps_in(backend.map_table(MAPS)), {place: {1: value} for place, value in expected.items()})
    same_bag("timers", backend.timers("event").due(9), [(5, *place) for place in expected])


def what_a_filter_left_out_does_not_come_back(subject: Subject) -> None:
    checkpoints, backend = Checkpoints(), subject.backend()
    filters = {
        VALUES: lambda value: value if value % 2 else None,
        LISTS: lambda elements: [element for element in elements if element > 2] or None,
        MAPS: lambda entries: {key: value for key, value in entries.items() if key > 2} or None,
    }
    for number in range(10):
        backend.table(VALUES).put(number, number)
        for element in range(number):
            backend.table(LISTS).append(number, element)
            backend.map_table(MAPS).put(number, element, element)
    for descriptor, function in filters.items():
        backend.filter_snapshots(descriptor, function)
    parts = checkpoint_of(checkpoints, backend)
    for subtasks in (1, 2):
        values: dict[Any, Any] = {}
        lists: dict[Any, Any] = {}
        maps: dict[Any, Any] = {}
        for subtask in range(subtasks):
            again = subject.backend(subtask=subtask, parallelism=subtasks)
            restore_into(again, checkpoints, [parts])
            for descriptor, function in filters.items():
                again.filter_snapshots(descriptor, function)
            values |= content_of(again.table(VALUES))
            lists |= content_of(again.table(LISTS))
            maps |= maps_in(again.map_table(MAPS))
        same("values", values, {(n, None): n for n in range(1, 10, 2)})
        same("lists", lists, {(n, None): list(range(3, n)) for n in range(4, 10)})
        same("maps", maps, {(n, None): {k: k for k in range(3, n)} for n in range(4, 10)})
    same("the state itself", (backend.table(VALUES).get(2), len(backend.table(LISTS))), (2, 9))


def a_checkpoint_that_does_not_fit_is_refused(subject: Subject) -> None:
    checkpoints = Checkpoints()
    parts = checkpoint_of(checkpoints, filled(subject.backend()))

    def restored(database: DatabaseFiles) -> None:
        restore_into(subject.backend(), checkpoints, [replace(parts, databases=(database,))])

    for database in parts.databases:
        wrong = replace(database, about=b"\x63" + database.about[1:])
        refused("another format", VersionMismatch, OPERATOR_UID, partial(restored, wrong))
        refused("no format", VersionMismatch, OPERATOR_UID, partial(restored, replace(database, about=b"")))

        def half_as_wide() -> None:
            backend = subject.make_backend(range(64), 64, OPERATOR_UID)
            try:
                restore_into(backend, checkpoints, [parts])
            finally:
                backend.close()

        refused("another max parallelism", SnapshotMismatch, f"max parallelism {MAX_PARALLELISM}", half_as_wide)
        for name, blob in database.files.items():
            assert isinstance(blob, FileSlice)
            damaged = replace(blob, checksum=blob.checksum ^ 1)
            hurt = replace(database, files={**database.files, name: damaged})
            refused(f"{name}, damaged", DamagedFileError, blob.path, partial(restored, hurt))
            missing = replace(database, files={**database.files, name: replace(blob, path="shared/gone")})
            refused(f"{name}, missing", MissingFileError, "shared/gone", partial(restored, missing))


def _part(checkpoints: Checkpoints, backend: KeyedBackend) -> KeyedParts:
    """Return one subtask's part of a checkpoint."""
    number = checkpoints.next_number()
    return checkpoints.write(number, backend.capture(number))


def _together(checkpoints: Checkpoints, backends: Iterable[KeyedBackend]) -> list[KeyedParts]:
    """Return a complete checkpoint of several subtasks."""
    parts = [_part(checkpoints, backend) for backend in backends]
    checkpoints.keep(checkpoints.next_number(), *parts)
    return parts


LAWS: tuple[Law, ...] = (
    a_checkpoint_restores_everything,
    each_checkpoint_of_a_series_is_whole,
    files_are_referred_to_only_while_they_are_kept,
    a_checkpoint_is_of_its_moment,
    subtasks_of_checkpoints_become_more_and_fewer,
    subtasks_that_met_windows_in_another_order_become_one,
    what_a_filter_left_out_does_not_come_back,
    a_checkpoint_that_does_not_fit_is_refused,
)
