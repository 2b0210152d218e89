"""Uploads to stores whose client gives no upload in parts away: hidden objects, joined when the upload is completed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .object_store import TOKEN, ObjectStore

_READ_BYTES = 8 << 20
_MARK = ".inprogress."


class StagedUploads:
    """Parts as objects of their own, in a folder whose name begins with a dot, until they are joined.

    They are read and written again by the one who completes the upload.

    Args:
        store: where they are.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def begin(self, key: str, token: str) -> str:
        """Return the folder of the parts."""
        folder, _, name = key.rpartition("/")
        return f"{folder}/.{name}{_MARK}{token}".lstrip("/")

    def add(self, key: str, upload_id: str, number: int, data: bytes) -> str:
        """Write a part; return the number of its bytes."""
        self._store.put(f"{upload_id}/{number:05d}", data)
        return str(len(data))

    def complete(self, key: str, upload_id: str, parts: Sequence[tuple[int, str]], tail: bytes, token: str) -> None:
        """Join the parts, then delete them and those of attempts that are gone."""
        sizes = [(f"{upload_id}/{number:05d}", int(tag)) for number, tag in parts]
        for part, _ in sizes:
            self._store.head(part)  # before anything is written
        self._store.put_stream(key, lambda: self._bytes_of(sizes, tail), {TOKEN: token})
        self.abort(key, upload_id)

    def _bytes_of(self, sizes: Sequence[tuple[str, int]], tail: bytes) -> Iterator[bytes]:
        for part, size in sizes:
            for start in range(0, size, _READ_BYTES):
                yield bytes(self._store.read(part, start, min(start + _READ_BYTES, size)))
        if tail:
            yield tail

    def abort(self, key: str, upload_id: str) -> None:
        """Delete the parts."""
        for part in self._store.list(upload_id):
            self._store.delete(part.key)

    def unfinished(self, prefix: str) -> Sequence[tuple[str, str]]:
        """Return key and folder of the parts that are there."""
        uploads: dict[tuple[str, str], None] = {}
        for path in self._store.list(prefix.rpartition("/")[0]):  # parts of a key are beside it
            upload_id = path.key.rpartition("/")[0]
            folder, _, hidden = upload_id.rpartition("/")
            if hidden[:1] == "." and _MARK in hidden:
                name = hidden[1 : hidden.rindex(_MARK)]
                uploads[f"{folder}/{name}".lstrip("/"), upload_id] = None
        return [upload for upload in uploads if upload[0].startswith(prefix)]


__all__ = ["StagedUploads"]
