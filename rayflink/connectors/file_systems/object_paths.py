"""Addresses of objects, which know the store that they are in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rayflink.state.storage.object_store_options import SCHEMES

if TYPE_CHECKING:
    from .object_store import ObjectStore

_REFUSED = {
    "wasb": "write abfs://<container>@<account>.dfs.core.windows.net/<path>, or az://<container>/<path>",
    "wasbs": "write abfss://<container>@<account>.dfs.core.windows.net/<path>, or az://<container>/<path>",
    "s3n": "write s3://<bucket>/<path>",
    "gcs": "write gs://<bucket>/<path>",
    "hdfs": "mount it on every node, or copy the files to an object store",
}


@dataclass(frozen=True)
class ObjectEntry:
    """The facts of a listing about an object.

    Args:
        size: bytes.
        version: its ETag, which changes with its content; "": the store gives none.
        changed_ms: epoch milliseconds.
    """

    size: int
    version: str
    changed_ms: int


class ObjectPath(str):
    """The address of an object, or of the objects below it: ``s3://bucket/folder/file``.

    Pickled, printed and compared it is the address alone: the store's options, and so its secrets, stay in the process.

    Args:
        address: the whole address.
        store: where it leads.
        entry: of the object, where a listing found it.
        read_ahead_to: a position behind which nothing is read before it is asked for.
    """

    store: ObjectStore
    entry: ObjectEntry | None
    read_ahead_to: int | None

    def __new__(
        cls, address: str, store: ObjectStore, entry: ObjectEntry | None = None, read_ahead_to: int | None = None
    ) -> ObjectPath:
        path = super().__new__(cls, address)
        path.store, path.entry, path.read_ahead_to = store, entry, read_ahead_to
        return path

    def __reduce__(self) -> tuple[object, ...]:
        return str, (str(self),)

    @property
    def key(self) -> str:
        """Return the name of the object in its bucket."""
        return self[len(self.store.root) + 1 :]

    def child(self, name: str) -> ObjectPath:
        """Return the address of what has this name below this one."""
        return ObjectPath(f"{self.rstrip('/')}/{name}" if name else str(self), self.store)

    def known(self) -> ObjectEntry:
        """Return size and version; they are asked for where no listing gave them.

        Raises:
            MissingObjectError: there is no such object.
        """
        if self.entry is None:
            self.entry = self.store.head(self.key)
        return self.entry


def is_object_address(path: str) -> bool:
    """Return whether a path is the address of an object store.

    >>> is_object_address("s3://bucket/a"), is_object_address("/data/a"), is_object_address("file:///data")
    (True, False, False)

    Raises:
        ValueError: it is an address of something that cannot be read or written.
    """
    scheme, separator, rest = path.partition("://")
    if not separator or scheme == "file" or "/" in scheme:
        return False
    if scheme in SCHEMES:
        if not rest.partition("/")[0]:
            raise ValueError(f"{path!r} names no bucket; write {scheme}://<bucket>/<path>")
        return True
    remedy = _REFUSED.get(scheme, f"the schemes are file, {', '.join(SCHEMES)}; or mount it on every node")
    raise ValueError(f"{path!r}: files cannot be read or written by {scheme}://; {remedy}")


__all__ = ["ObjectEntry", "ObjectPath", "is_object_address"]
