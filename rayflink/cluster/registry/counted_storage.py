"""The storage of a registry, with counts of what is asked of it, and how long that takes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rayflink.common.metrics.prometheus import Sample
from rayflink.state.storage.storage import MissingFileError, Storage

__all__ = ["CountedStorage"]

_REQUESTS, _SECONDS = "rayflink_registry_requests_total", "rayflink_registry_request_seconds_total"


@dataclass
class _Requests:
    """The requests of one kind."""

    done: int = 0
    failed: int = 0
    total_s: float = 0.0


class CountedStorage(Storage):
    """A storage that passes everything on to another one, and counts reads, writes, lists and deletions.

    >>> from rayflink.state.storage.memory_storage import MemoryStorage
    >>> storage = CountedStorage(MemoryStorage("registry"))
    >>> storage.put_if_absent("jobs/a", b"1")
    True
    >>> [(dict(sample.labels), sample.value) for sample in storage.samples()][:2]
    [({'operation': 'write', 'result': 'done'}, 1), ({'operation': 'write', 'result': 'failed'}, 0)]

    Args:
        storage: that keeps the files.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._requests: dict[str, _Requests] = {}
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """Return the address."""
        return self._storage.url

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write a file that does not exist."""
        with self._measured("write"):
            return self._storage.put_if_absent(path, data)

    def upload(self, path: str, local: Path) -> None:
        """Write a file with the bytes of a local one."""
        with self._measured("write"):
            self._storage.upload(path, local)

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """Return the bytes of a file."""
        with self._measured("read"):
            return self._storage.read(path, offset, length)

    def download(self, path: str, local: Path) -> None:
        """Write the bytes of a file to a local one."""
        with self._measured("read"):
            self._storage.download(path, local)

    def list(self, folder: str = "") -> list[str]:
        """Return the files in a folder and below it."""
        with self._measured("list"):
            return self._storage.list(folder)

    def delete(self, path: str) -> None:
        """Delete a file."""
        with self._measured("delete"):
            self._storage.delete(path)

    @contextmanager
    def _measured(self, operation: str) -> Iterator[None]:
        """Count the request that the block makes; that a file is missing is an answer, and no failure."""
        began, failed = time.monotonic(), 1
        try:
            yield
            failed = 0
        except MissingFileError:
            failed = 0
            raise
        finally:
            with self._lock:
                requests = self._requests.setdefault(operation, _Requests())
                requests.done += 1 - failed
                requests.failed += failed
                requests.total_s += time.monotonic() - began

    def samples(self) -> Iterator[Sample]:
        """Return for each kind the requests that were done and that failed, and the seconds they took."""
        with self._lock:
            known = sorted(self._requests.items())
        for operation, requests in known:
            for result, count in (("done", requests.done), ("failed", requests.failed)):
                labels = {"operation": operation, "result": result}
                yield Sample(_REQUESTS, labels, count, "Requests to the storage of the registry", "counter")
            help = "Seconds that requests to the storage of the registry took"
            yield Sample(_SECONDS, {"operation": operation}, requests.total_s, help, "counter")
