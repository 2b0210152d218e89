"""Objects that are uploaded in parts and appear whole, when their upload is completed: the contract, and the choice by
the kind of store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rayflink.state.storage.object_store_options import AZURE_SCHEMES, S3_SCHEMES

from .azure_uploads import AzureUploads
from .object_store import TOKEN, ObjectStore
from .s3_uploads import S3Uploads
from .staged_uploads import StagedUploads
from .store_errors import MissingObjectError

PART_BYTES = 5 << 20
"""Size of a part but the last; S3 takes no smaller ones."""


@dataclass(frozen=True)
class UploadedPart:
    """A part that is in the store.

    Args:
        number: from 1.
        tag: by which the store knows its content.
    """

    number: int
    tag: str
    size: int


class Uploads(Protocol):
    """Uploads in parts to one store; may be used by several threads. Every method may raise `ObjectStoreError`."""

    def begin(self, key: str, token: str) -> str:
        """Return the id of a new upload; nothing is visible of it.

        Args:
            token: unique; the complete object bears it in its metadata.
        """
        ...

    def add(self, key: str, upload_id: str, number: int, data: bytes) -> str:
        """Upload a part, in the place of one of that number; return its tag."""
        ...

    def complete(self, key: str, upload_id: str, parts: Sequence[tuple[int, str]], tail: bytes, token: str) -> None:
        """Make the object of the parts, by number and tag, and of the bytes behind them; it appears whole.

        Raises:
            MissingObjectError: the upload is gone, as it is complete already or was aborted.
        """
        ...

    def abort(self, key: str, upload_id: str) -> None:
        """Delete the parts; an upload that is gone is no error."""
        ...

    def unfinished(self, prefix: str) -> Sequence[tuple[str, str]]:
        """Return key and id of the uploads below a prefix that are neither complete nor aborted."""
        ...


def uploads_to(store: ObjectStore) -> Uploads:
    """Return the uploads of a store: S3's multipart uploads, Azure's lists of blocks, elsewhere hidden objects that are
    joined.
    """
    scheme = store.root.partition("://")[0]
    if scheme in S3_SCHEMES:
        return S3Uploads(store)
    return AzureUploads(store) if scheme in AZURE_SCHEMES else StagedUploads(store)


def finish(
    store: ObjectStore, uploads: Uploads, key: str, upload: tuple[str, Sequence[UploadedPart], bytes, str]
) -> bool:
    """Make an object visible; return False where this upload has made it already.

    Args:
        upload: its id ("": all is in the bytes behind the parts), parts, bytes behind them, and token.

    Raises:
        MissingObjectError: the upload is gone, and the object is not there or comes from another one.
        ObjectStoreError: the store refuses it.
    """
    upload_id, parts, tail, token = upload
    if not upload_id:
        store.put(key, tail, {TOKEN: token})
        return True
    try:
        uploads.complete(key, upload_id, [(part.number, part.tag) for part in parts], tail, token)
    except MissingObjectError:
        if store.attribute(key, TOKEN) != token:
            raise
        return False
    return True


__all__ = ["PART_BYTES", "UploadedPart", "Uploads", "finish", "uploads_to"]
