"""The checkpoints in a storage: one by its address, or those of a job."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from ..errors import DamagedFileError, StateError
from .manifest import METADATA, CheckpointManifest
from .manifest_format import decode_manifest
from .storage import MissingFileError, Storage
from .storage_schemes import open_storage

_CHECKPOINT = re.compile(rf"chk-(\d+)/{METADATA}")
_MOST_NAMED = 5


class NoCheckpointError(StateError):
    """Raised when there is no checkpoint or savepoint at an address.

    Args:
        url: the address.
        actual: what is there.
        remedy: what to give instead.
    """

    def __init__(self, url: str, actual: str, remedy: str) -> None:
        super().__init__(url, actual, remedy)
        self.url, self.actual, self.remedy = url, actual, remedy

    def __str__(self) -> str:
        return f"there is no checkpoint or savepoint at {self.url}: found {self.actual}; {self.remedy}"


class FoundManifest(NamedTuple):
    """A manifest and the base of the files it names."""

    base: str
    manifest: CheckpointManifest


class LatestManifests(NamedTuple):
    """The checkpoints of a job, newest first, and those that are damaged."""

    manifests: tuple[CheckpointManifest, ...]
    damaged: tuple[StateError, ...]


def read_manifest(
    url: str, options: Mapping[str, str] | None = None, open_at: Callable[[str], Storage] | None = None
) -> FoundManifest:
    """Read the checkpoint or savepoint at an address, which may be its folder or its `_metadata` file.

    Args:
        url: as for `open_storage`; a folder above is taken where only one checkpoint is below it.
        options: as for `open_storage`.
        open_at: opens the storage at an address, in place of `open_storage` with the options.

    Raises:
        NoCheckpointError: there is none, or several are, or one that was never finished.
        StorageError, DamagedFileError, VersionMismatch: it cannot be read.
    """
    above, _, name = url.rstrip("/").rpartition("/")
    where = (above or ".") if name == METADATA else url
    storage = open_storage(where, options) if open_at is None else open_at(where)
    try:
        data = storage.read(METADATA)
    except MissingFileError:
        only = _only_checkpoint(storage)
        return read_manifest(f"{storage.url}/{only}", options, open_at)
    manifest = decode_manifest(data, f"{storage.url}/{METADATA}")
    return FoundManifest(storage.url if manifest.own_base else folder_above(storage.url), manifest)


def latest_manifests(storage: Storage) -> LatestManifests:
    """Read all complete checkpoints below a job's base.

    Damaged ones are left out and reported, for the caller to log: an older checkpoint may do.

    Raises:
        StorageError: the storage cannot be read; then it is unknown what is there.
        VersionMismatch: one has another format; going back to an older one would repeat what it has done.
    """
    manifests, damaged = [], list[StateError]()
    for path in storage.list():
        if _CHECKPOINT.fullmatch(path):
            try:
                manifests.append(decode_manifest(storage.read(path), f"{storage.url}/{path}"))
            except (DamagedFileError, MissingFileError) as error:
                damaged.append(error)
    manifests.sort(key=lambda manifest: (manifest.checkpoint_id, manifest.epoch), reverse=True)
    return LatestManifests(tuple(manifests), tuple(damaged))


def folder_above(url: str) -> str:
    """Return the address that another one is directly below.

    >>> folder_above("s3://bucket/checkpoints/0f/chk-7")
    's3://bucket/checkpoints/0f'
    """
    return url.rstrip("/").rpartition("/")[0]


def _only_checkpoint(storage: Storage) -> str:
    """Return the only `_metadata` file somewhere below.

    Raises:
        NoCheckpointError: there is none, or there are several.
    """
    files = storage.list()
    paths = [path for path in files if path.endswith(f"/{METADATA}")]
    if len(paths) == 1:
        return paths[0]
    if paths:
        folders = [path.removesuffix(f"/{METADATA}") for path in paths]
        named = ", ".join(folders[:_MOST_NAMED]) + (", ..." if len(folders) > _MOST_NAMED else "")
        raise NoCheckpointError(
            storage.url, f"{len(paths)} in folders of it: {named}", "give the folder of one of them"
        )
    if files:
        what = f"{len(files)} files, the first {files[0]}, but no {METADATA}"
        remedy = "it was never finished, or somebody deleted that file: give the folder of an older one"
        raise NoCheckpointError(storage.url, what, remedy)
    raise NoCheckpointError(storage.url, "nothing", "check the address, and that this machine reaches it")


__all__ = [
    "FoundManifest", "LatestManifests", "NoCheckpointError", "folder_above", "latest_manifests", "read_manifest",
]  # fmt: skip
