"""The choice of a checkpoint storage by its address."""

from __future__ import annotations

import os
from collections.abc import Mapping

from .local_storage import LocalStorage, check_address
from .object_storage import SCHEMES, ObjectStorage
from .storage import Storage, StorageNotSupported


def open_storage(url: str, options: Mapping[str, str] | None = None) -> Storage:
    """Open the storage at an address; nothing is written yet.

    Args:
        url: a path, a ``file://`` URL, or the URL of an object store, as in ``s3://bucket/folder``.
        options: Flink's ``s3.`` options by name, as strings.

    Raises:
        StorageNotSupported: no such scheme, or its package is not installed.
        StorageError: the address or the options are refused.

    >>> open_storage("file:///data/checkpoints").url
    'file:///data/checkpoints'
    """
    return ObjectStorage(url, options or {}) if _is_of_store(url) else LocalStorage(url)


def _is_of_store(url: str) -> bool:
    scheme, separator, _ = url.partition("://")
    if not separator or scheme == "file":
        return False
    if scheme in SCHEMES:
        return True
    wanted = f"found the scheme {scheme}://, wanted a path or one of {', '.join(f'{name}://' for name in SCHEMES)}"
    raise StorageNotSupported("be opened", url, f"{wanted}; or mount it as a folder on every node")


def from_root(address: str) -> str:
    """Return the address without trailing slashes, a path from the root, where all processes of a job find it.

    Raises:
        StorageNotSupported: no such scheme, or it cannot be meant as a path.

    >>> from_root("s3://bucket/checkpoints"), from_root("/data/checkpoints/")
    ('s3://bucket/checkpoints', '/data/checkpoints')
    >>> from_root("file:///data/checkpoints/")
    'file:///data/checkpoints'
    """
    if _is_of_store(address):
        return address
    check_address(address)
    if address.startswith("file:"):
        return without_slash(address)
    return without_slash(address) if os.path.isabs(address) else os.path.abspath(address)


def without_slash(address: str) -> str:
    """Return the address without trailing slashes, unless it is that of the root.

    >>> without_slash("file:///data/"), without_slash("/"), without_slash("file:///")
    ('file:///data', '/', 'file:///')
    """
    trimmed = address.rstrip("/")
    return address if trimmed in ("", "file:") or trimmed.endswith(":") else trimmed


__all__ = ["from_root", "open_storage", "without_slash"]
