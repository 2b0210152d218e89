"""The byte format of manifests: versioned, with a checksum, and readable without the program that wrote it.

Layout, integers big-endian: the magic number (8 bytes), the format (4), the lengths of the two parts (8 each), a JSON
document, the bytes that are kept in the file itself, a CRC-32 of all before (4). In the document a part of state is the
number of its bytes, which follow one another in the second part in the order of the document, or, where it is in
another file, a list [index in "files", offset, length, checksum].
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..errors import DamagedFileError, VersionMismatch
from ..snapshots import Blob, DatabaseFiles, FileSlice, StoredSnapshot
from ..state_sizes import GroupSize, StateSize
from .manifest import CheckpointManifest, OperatorManifest, StateSummary

MAGIC = b"RAYFCHK\n"
FORMAT = 1
_HEAD = struct.Struct(">8sIQQ")
_CHECKSUM = struct.Struct(">I")


def encode_manifest(manifest: CheckpointManifest) -> bytes:
    """Encode a manifest as the bytes of a `_metadata` file.

    >>> manifest = CheckpointManifest("savepoint", 3, 1, "0" * 32, "count", 0, 5, True, ())
    >>> decode_manifest(encode_manifest(manifest), "_metadata") == manifest
    True
    """
    out = _Encoder()
    document = {
        "kind": manifest.kind,
        "checkpoint_id": manifest.checkpoint_id,
        "epoch": manifest.epoch,
        "job_id": manifest.job_id,
        "job_name": manifest.job_name,
        "timestamp_ms": manifest.timestamp_ms,
        "completed_ms": manifest.completed_ms,
        "own_base": manifest.own_base,
        "properties": dict(manifest.properties),
        "operators": [out.operator(operator) for operator in manifest.operators],
        "files": list(out.files),
    }
    text = json.dumps(document, separators=(",", ":")).encode("ascii")
    head = _HEAD.pack(MAGIC, FORMAT, len(text), sum(map(len, out.inline)))
    body = b"".join((head, text, *out.inline))
    return body + _CHECKSUM.pack(zlib.crc32(body))


def decode_manifest(data: bytes, where: str) -> CheckpointManifest:
    """Decode the bytes that `encode_manifest` returned.

    Args:
        where: address of the file, for errors.

    Raises:
        DamagedFileError: the file is cut off or changed, or was never such a file.
        VersionMismatch: it has a format that this program does not read.
    """
    if len(data) < _HEAD.size:
        raise DamagedFileError(where, "all its bytes", f"{len(data)} bytes", f"a head of {_HEAD.size} bytes")
    magic, version, text_length, inline_length = _HEAD.unpack_from(data)
    if magic != MAGIC:
        raise DamagedFileError(where, f"bytes 0 to {len(MAGIC)}", repr(magic), repr(MAGIC))
    if version != FORMAT:
        raise VersionMismatch(f"checkpoint metadata format {version}", f"format {FORMAT}", where, "")
    text_end = _HEAD.size + text_length
    end = text_end + inline_length
    if len(data) != end + _CHECKSUM.size:
        raise DamagedFileError(where, "all its bytes", f"{len(data)} bytes", f"{end + _CHECKSUM.size} bytes")
    (wanted,) = _CHECKSUM.unpack_from(data, end)
    if (checksum := zlib.crc32(memoryview(data)[:end])) != wanted:
        raise DamagedFileError(where, f"bytes 0 to {end}", f"checksum {checksum:08x}", f"checksum {wanted:08x}")
    try:
        document = json.loads(data[_HEAD.size : text_end])
        return _Decoder(document["files"], data, text_end).manifest(document)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        # The checksum is right: whoever wrote this calls another layout by the same number.
        found_layout = f"another layout ({type(error).__name__}: {error})"
        raise DamagedFileError(where, f"bytes {_HEAD.size} to {text_end}", found_layout, f"format {FORMAT}") from error


class _Encoder:
    """An encoder of values as JSON that collects bytes and file names on the way."""

    def __init__(self) -> None:
        self.inline: list[bytes] = []
        self.files: dict[str, int] = {}

    def blob(self, blob: Blob) -> int | list[int]:
        if isinstance(blob, FileSlice):
            index = self.files.setdefault(blob.path, len(self.files))
            return [index, blob.offset, blob.length, blob.checksum]
        self.inline.append(blob)
        return len(blob)

    def blobs(self, blobs: Iterable[Blob]) -> list[int | list[int]]:
        return list(map(self.blob, blobs))

    def by_name(self, blobs: Mapping[Any, Blob]) -> list[Any]:
        return [list(blobs), self.blobs(blobs.values())]

    def operator(self, operator: OperatorManifest) -> dict[str, Any]:
        return {
            "id": operator.operator_id,
            "uid": operator.uid,
            "name": operator.name,
            "parallelism": operator.parallelism,
            "max_parallelism": operator.max_parallelism,
            "subtasks": [None if subtask is None else self.snapshot(subtask) for subtask in operator.subtasks],
            "finished": sorted(operator.finished),
            "coordinator": None if operator.coordinator is None else self.blob(operator.coordinator),
            "states": [
                [state.name, state.kind, state.value_type, state.schema, state.ttl] for state in operator.states
            ],
        }

    def snapshot(self, snapshot: StoredSnapshot) -> dict[str, Any]:
        document: dict[str, Any] = {"version": snapshot.version}
        if snapshot.keyed:
            document["keyed"] = self.by_name(snapshot.keyed)
        if snapshot.raw_keyed:
            document["raw_keyed"] = self.by_name(snapshot.raw_keyed)
        if snapshot.lists:
            lists = snapshot.lists.items()
            document["lists"] = [[name, mode, self.blobs(entries)] for name, (mode, entries) in lists]
        if snapshot.databases:
            document["databases"] = list(map(self.database, snapshot.databases))
        if snapshot.sizes:
            document["sizes"] = list(map(_size, snapshot.sizes))
        return document

    def database(self, database: DatabaseFiles) -> list[Any]:
        groups = [database.first_group, database.end_group]
        return [*groups, self.by_name(database.files), sorted(database.shared), self.blob(database.about)]


class _Decoder:
    """A decoder of JSON values, in the order in which they were written."""

    def __init__(self, files: list[str], data: bytes, inline: int) -> None:
        self._files, self._data, self._at = files, data, inline

    def manifest(self, document: dict[str, Any]) -> CheckpointManifest:
        return CheckpointManifest(
            kind=document["kind"],
            checkpoint_id=document["checkpoint_id"],
            epoch=document["epoch"],
            job_id=document["job_id"],
            job_name=document["job_name"],
            timestamp_ms=document["timestamp_ms"],
            completed_ms=document["completed_ms"],
            own_base=document["own_base"],
            operators=tuple(map(self._operator, document["operators"])),
            properties=document["properties"],
        )

    def _operator(self, document: dict[str, Any]) -> OperatorManifest:
        return OperatorManifest(
            operator_id=document["id"],
            uid=document["uid"],
            name=document["name"],
            parallelism=document["parallelism"],
            max_parallelism=document["max_parallelism"],
            subtasks=tuple(None if subtask is None else self._snapshot(subtask) for subtask in document["subtasks"]),
            finished=frozenset(document["finished"]),
            coordinator=None if document["coordinator"] is None else self._blob(document["coordinator"]),
            states=tuple(StateSummary(*state) for state in document["states"]),
        )

    def _snapshot(self, document: dict[str, Any]) -> StoredSnapshot:
        keyed = self._by_name(document.get("keyed", ((), ())))
        raw_keyed = self._by_name(document.get("raw_keyed", ((), ())))
        lists = {name: (mode, self._blobs(entries)) for name, mode, entries in document.get("lists", ())}
        databases = tuple(map(self._database, document.get("databases", ())))
        sizes = tuple(map(_size_of, document.get("sizes", ())))
        return StoredSnapshot(keyed, lists, raw_keyed, document["version"], databases, (), sizes)

    def _database(self, fields: list[Any]) -> DatabaseFiles:
        first_group, end_group, files, shared, about = fields
        return DatabaseFiles(first_group, end_group, self._by_name(files), frozenset(shared), self._inline(about))

    def _by_name(self, columns: Sequence[Sequence[Any]]) -> dict[Any, Blob]:
        names, blobs = columns
        return dict(zip(names, map(self._blob, blobs), strict=True))

    def _blobs(self, blobs: list[Any]) -> tuple[Blob, ...]:
        return tuple(map(self._blob, blobs))

    def _blob(self, blob: int | Sequence[int]) -> Blob:
        if isinstance(blob, int):
            return self._inline(blob)
        index, offset, length, checksum = blob
        return FileSlice(self._files[index], offset, length, checksum)

    def _inline(self, length: int) -> bytes:
        start, self._at = self._at, self._at + length
        return self._data[start : self._at]


def _size(size: StateSize) -> list[Any]:
    """Return a size as JSON, with its key groups as columns."""
    return [size.name, size.kind, size.written_bytes, size.is_estimate, list(zip(*size.groups, strict=True))]


def _size_of(fields: Sequence[Any]) -> StateSize:
    name, kind, written_bytes, is_estimate, columns = fields
    groups = tuple(GroupSize(*numbers) for numbers in zip(*columns, strict=True))
    return StateSize(name, kind, written_bytes, groups, is_estimate)


__all__ = ["FORMAT", "MAGIC", "decode_manifest", "encode_manifest"]
