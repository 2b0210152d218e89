"""Blobs of Azure as lists of blocks, by Azure's own client: obstore commits a list itself and names no block."""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from threading import Lock
from typing import Any

from .object_store import TOKEN, ObjectStore
from .store_errors import ObjectStoreError

TAIL_NUMBER = 49_999
"""Number of the block that a commit adds; a blob has at most 50,000."""


class AzureUploads:
    """Blocks that are staged with the name of their blob, which appears when the list of them is committed.

    Blocks that are never committed cannot be deleted; Azure does so after a week.

    Args:
        store: the container.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._container: Any = None
        self._lock = Lock()

    def begin(self, key: str, token: str) -> str:
        """Return the beginning of the names of all blocks."""
        return token

    def add(self, key: str, upload_id: str, number: int, data: bytes) -> str:
        """Stage a block; return its name."""
        name = base64.urlsafe_b64encode(f"{upload_id}-{number:05d}".encode()).decode()
        blob = self._opened().get_blob_client(key)
        self._store.request("write", key, lambda: blob.stage_block(name, data, len(data)))
        return name

    def complete(self, key: str, upload_id: str, parts: Sequence[tuple[int, str]], tail: bytes, token: str) -> None:
        """Commit the list of blocks; with those of a blob that is there already nothing changes."""
        from azure.storage.blob import BlobBlock

        names = [name for _, name in parts]
        if tail:
            names.append(self.add(key, upload_id, TAIL_NUMBER, tail))
        blob, blocks = self._opened().get_blob_client(key), [BlobBlock(name) for name in names]
        metadata = {TOKEN.replace("-", "_"): token}  # of which Azure wants identifiers
        self._store.request("write", key, lambda: blob.commit_block_list(blocks, metadata=metadata))

    def abort(self, key: str, upload_id: str) -> None:
        """Leave the blocks to Azure."""

    def unfinished(self, prefix: str) -> Sequence[tuple[str, str]]:
        """Return nothing: Azure deletes the blocks by itself."""
        return ()

    def _opened(self) -> Any:
        with self._lock:
            if self._container is None:
                self._container = self._open()
        return self._container

    def _open(self) -> Any:
        try:
            from azure.storage.blob import ContainerClient
        except ImportError as error:
            remedy = "pip install 'rayflink[azure]' on every node"
            problem = f"found no package azure-storage-blob ({error})"
            raise ObjectStoreError("write", self._store.root, problem, remedy) from error
        account, container, url, key = self._place()
        return ContainerClient(
            url, container, {"account_name": account, "account_key": key} if key else _default_credential(self._store),
            retry_total=0, connection_timeout=5, read_timeout=60, logging_enable=False
        )  # fmt: skip

    def _place(self) -> tuple[str, str, str, str]:
        """Return account, container, the account's URL and its key; "": there is none.

        Raises:
            ObjectStoreError: the account is not known.
        """
        options = self._store.options
        container, is_named, host = self._store.root.partition("://")[2].partition("@")
        account = host.partition(".")[0] if is_named else ""
        account = account or options.get("fs.azure.account.name") or os.environ.get("AZURE_STORAGE_ACCOUNT_NAME", "")
        if not account:
            remedy = "set fs.azure.account.name, or write abfss://<container>@<account>.dfs.core.windows.net/<path>"
            raise ObjectStoreError("write", self._store.root, "the account is not known", remedy)
        url = options.get("fs.azure.endpoint") or f"https://{account}.blob.core.windows.net"
        return account, container, url, options.get("fs.azure.account.key") or os.environ.get(
            "AZURE_STORAGE_ACCOUNT_KEY", ""
        )


def _default_credential(store: ObjectStore) -> Any:
    try:
        from azure.identity import DefaultAzureCredential
    except ImportError as error:
        remedy = "set fs.azure.account.key, or pip install azure-identity on every node for other credentials"
        raise ObjectStoreError("write", store.root, "no key of the account is set", remedy) from error
    return DefaultAzureCredential()


__all__ = ["AzureUploads"]
