"""A checkpoint storage in an object store: S3 and stores with its protocol, Google Cloud Storage, Azure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from .object_store_options import S3_SCHEMES, SCHEMES, client_configuration
from .storage import MissingFileError, StorageError, StorageNotSupported, checked_path

_MOVED_AT_ONCE = 16 << 20
_RETRIES = {
    "max_retries": 5,
    "retry_timeout": timedelta(seconds=30),
    "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=5), "base": 2},
}


class ObjectStorage:
    """The objects below a URL. Files are made by conditional PUT, so one of several writers wins.

    A request that fails is tried again for half a minute. Credentials and endpoints that no option gives are those of
    the environment, as in ``AWS_ACCESS_KEY_ID``.

    Args:
        url: such as ``s3://bucket/folder``.
        options: Flink's ``s3.`` options by name; others are left alone.

    Raises:
        StorageNotSupported: the package that speaks to object stores is not installed.
        StorageError: the URL or the options are refused.
    """

    def __init__(self, url: str, options: Mapping[str, str]) -> None:
        self.url = url.rstrip("/")
        try:
            import obstore
            from obstore.exceptions import AlreadyExistsError, BaseError
            from obstore.store import from_url
        except ImportError as error:
            problem = f"found no package obstore ({error}); pip install 'rayflink[s3]' on every node"
            raise StorageNotSupported("be opened", self.url, problem) from error
        self._objects: Any = obstore
        self._refused = BaseError
        self._errors_of_calls = (BaseError, OSError, ValueError)
        self._taken = (AlreadyExistsError, FileExistsError)
        config, client = client_configuration(self.url, options)
        with self._errors("be opened", self.url):
            self._store: Any = from_url(self.url, config=config, client_options=client, retry_config=_RETRIES)  # type: ignore[call-overload]

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write a file that does not exist, one of several callers wins; False, with nothing changed, when it does."""
        with self._errors("write", path):
            try:
                # In parts it would be neither atomic nor conditional.
                self._objects.put(self._store, self._checked(path, "write"), data, mode="create", use_multipart=False)
            except self._taken:
                return False
        return True

    def upload(self, path: str, local: Path) -> None:
        """Write a file with the bytes of a local one."""
        with self._errors("write", path):
            self._objects.put(self._store, self._checked(path, "write"), local, chunk_size=_MOVED_AT_ONCE)

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """Return the bytes of a file from `offset` on, at most `length`."""
        with self._errors("read", path):
            if offset == 0 and length is None:
                return bytes(self._objects.get(self._store, self._checked(path, "read")).bytes())
            if not length:
                rest = self._size(path) - offset
                length = rest if length is None else 0
            return self._range(path, offset, length) if length > 0 else b""

    def download(self, path: str, local: Path) -> None:
        """Write the bytes of a file to a local one."""
        with self._errors("read", path):
            size = self._size(path)
            with local.open("wb") as target:
                for offset in range(0, size, _MOVED_AT_ONCE):
                    length = min(_MOVED_AT_ONCE, size - offset)
                    target.write(self._range(path, offset, length))

    def list(self, folder: str = "") -> list[str]:
        """Return the files in a folder and below it, sorted; [] when there is no such folder."""
        with self._errors("list", folder or "its files"):
            prefix = self._checked(folder, "list") if folder else None
            return sorted(entry["path"] for part in self._objects.list(self._store, prefix=prefix) for entry in part)

    def delete(self, path: str) -> None:
        """Delete a file; one that is not there is no error."""
        with self._errors("delete", path):
            try:
                self._objects.delete(self._store, self._checked(path, "delete"))
            except FileNotFoundError:
                return

    def _range(self, path: str, offset: int, length: int) -> bytes:
        try:
            part = self._objects.get_range(self._store, self._checked(path, "read"), start=offset, length=length)
        except self._refused:
            if offset < self._size(path):
                raise
            return b""  # servers refuse to read behind the end
        return bytes(part)

    def _size(self, path: str) -> int:
        return int(self._objects.head(self._store, self._checked(path, "read"))["size"])

    def _checked(self, path: str, action: str) -> str:
        return checked_path(path, self.url, action)

    @contextmanager
    def _errors(self, verb: str, path: str) -> Iterator[None]:
        """Raise the client's errors as errors of a storage."""
        try:
            yield
        except self._errors_of_calls as error:
            # The client reports more in further lines, and the server's answer in XML.
            cause = str(error).partition("\n")[0].partition("<?xml")[0].rstrip(" :")
            if verb == "read" and isinstance(error, FileNotFoundError) and error.errno is None:
                raise MissingFileError(f"read {path}", self.url, cause) from error
            raise StorageError(verb if path == self.url else f"{verb} {path}", self.url, cause) from error


__all__ = ["S3_SCHEMES", "SCHEMES", "ObjectStorage"]
