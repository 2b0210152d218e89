"""One bucket of an object store: its requests, repeated with longer and longer pauses where they fail in passing."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from rayflink.common.text_output.logs import get_logger
from rayflink.state.storage.object_store_options import AZURE_SCHEMES, client_configuration

from .object_paths import ObjectEntry, ObjectPath
from .store_errors import MissingObjectError, ObjectStoreError, StoreConnectionError, explained

Result = TypeVar("Result")
log = get_logger(__name__)

PAUSES_S = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds before each further try of a request that failed in passing; each is cut at random down to its half."""


TOKEN = "rayflink-upload"
"""Metadata of an object that name the upload it comes from."""


class RetryCounter(Protocol):
    """Counts requests that were made again."""

    def inc(self) -> None:
        """Add one."""
        ...


class ObjectStores:
    """The object stores that the options of a job lead to; one client for each bucket.

    Args:
        options: Flink's options of stores, as strings.
        retries: counts requests that were made again; None: they are logged alone.
    """

    def __init__(self, options: Mapping[str, str] | None = None, retries: RetryCounter | None = None) -> None:
        self.options, self._retries = dict(options or {}), retries
        self._stores: dict[str, ObjectStore] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return ObjectStores, ()  # each process has the options, with their secrets, from its job

    def path(self, address: str, entry: ObjectEntry | None = None, read_ahead_to: int | None = None) -> ObjectPath:
        """Return the address with its store; nothing is requested."""
        scheme, _, rest = address.partition("://")
        root = f"{scheme}://{rest.partition('/')[0]}"
        store = self._stores.get(root)
        if store is None:
            store = self._stores.setdefault(root, ObjectStore(root, self.options, self._retries))
        return ObjectPath(address, store, entry, read_ahead_to)


class ObjectStore:
    """A bucket; may be used by several threads.

    Args:
        root: its address, such as ``s3://bucket``.
        options: Flink's options of stores, as strings.
        retries: counts requests that were made again.
    """

    def __init__(self, root: str, options: Mapping[str, str], retries: RetryCounter | None = None) -> None:
        self.root, self.options, self._retries = root, options, retries
        self._opened: tuple[Any, Any] | None = None

    def __repr__(self) -> str:
        return f"ObjectStore({self.root!r})"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError(f"{self!r} is not pickled: it has the credentials of its process")

    def head(self, key: str) -> ObjectEntry:
        """Return size and version of an object.

        Raises:
            MissingObjectError: there is none.
        """
        objects, store = self._client()
        return _entry(self.request("read", key, lambda: objects.head(store, key)))

    def find(self, key: str) -> ObjectEntry | None:
        """Return size and version of an object; None: there is none."""
        try:
            return self.head(key)
        except MissingObjectError:
            return None

    def read(self, key: str, start: int, stop: int, version: str = "") -> memoryview:
        """Return the bytes of an object in [start, stop), which must lie in it.

        Raises:
            ChangedObjectError: it is of another version.
            MissingObjectError: it is gone.
        """
        objects, store = self._client()
        options: dict[str, Any] = {"range": (start, stop)}
        if version:
            options["if_match"] = version

        def get() -> memoryview:
            data = memoryview(objects.get(store, key, options=options).bytes())
            if len(data) != stop - start:
                raise ConnectionError(f"connection ended after {len(data)} of {stop - start} bytes")
            return data

        return self.request("read", key, get)

    def list(self, prefix: str) -> list[ObjectPath]:
        """Return the objects in a folder and below it, in order of name."""
        objects, store = self._client()

        def listing() -> list[Any]:
            return [entry for part in objects.list(store, prefix=prefix or None) for entry in part]

        entries = self.request("list", prefix, listing)
        paths = [ObjectPath(f"{self.root}/{entry['path']}", self, _entry(entry)) for entry in entries]
        return sorted(paths)

    def folders(self, prefix: str) -> Sequence[str]:
        """Return the names of the folders in a folder, in order."""
        objects, store = self._client()
        listing = self.request("list", prefix, lambda: objects.list_with_delimiter(store, prefix=prefix or None))
        return sorted(path.rstrip("/").rpartition("/")[2] for path in listing["common_prefixes"])

    def put(self, key: str, data: bytes, attributes: Mapping[str, str] | None = None) -> None:
        """Write an object, in the place of one of that name; it appears whole.

        Args:
            attributes: metadata of the object.
        """
        objects, store = self._client()
        more = self._attributes(attributes)
        self.request("write", key, lambda: objects.put(store, key, data, use_multipart=False, **more))

    def put_stream(
        self, key: str, stream: Callable[[], Iterator[bytes]], attributes: Mapping[str, str] | None = None
    ) -> None:
        """Write an object of bytes that come one after the other, from a new stream each time it is tried."""
        objects, store = self._client()
        more = self._attributes(attributes)

        def write() -> None:
            # put() of an iterator runs that in its own event loop, where no other request can be made
            writer = objects.open_writer(store, key, **more)
            for data in stream():
                writer.write(data)
            writer.close()

        self.request("write", key, write)

    def attribute(self, key: str, name: str) -> str | None:
        """Return a value of the metadata of an object; None: it has none, or there is no such object."""
        objects, store = self._client()
        try:
            attributes = self.request("read", key, lambda: objects.get(store, key, options={"head": True}).attributes)
        except MissingObjectError:
            return None
        value = attributes.get(self._attribute_name(name))
        return None if value is None else str(value)

    def _attributes(self, attributes: Mapping[str, str] | None) -> dict[str, Any]:
        if not attributes:
            return {}
        return {"attributes": {self._attribute_name(name): value for name, value in attributes.items()}}

    def _attribute_name(self, name: str) -> str:
        """Return a name as the store takes it: Azure wants one of an identifier."""
        return name.replace("-", "_") if self.root.partition("://")[0] in AZURE_SCHEMES else name

    def delete(self, key: str) -> None:
        """Delete an object; one that is not there is no error."""
        objects, store = self._client()
        try:
            self.request("delete", key, lambda: objects.delete(store, key))
        except MissingObjectError:
            return

    def request(self, action: str, key: str, call: Callable[[], Result], tries: int = 0) -> Result:
        """Return the answer to a request, made again where it fails in passing.

        Args:
            tries: how often it is made at most; 0: once more than there are pauses.

        Raises:
            ObjectStoreError: it is refused.
            StoreConnectionError: it fails as often as it is tried.
        """
        address = f"{self.root}/{key}" if key else self.root
        tries = tries or len(PAUSES_S) + 1
        for number in range(1, tries + 1):
            try:
                return call()
            except ObjectStoreError:
                raise
            except Exception as error:  # obstore and boto3 have no base of their own in common
                problem = explained(error, action, address, number)
                if not isinstance(problem, StoreConnectionError) or number == tries:
                    raise problem from error
                self._pause(number, problem)
        raise AssertionError("a request is tried once at least")

    def _pause(self, number: int, problem: ObjectStoreError) -> None:
        if self._retries is not None:
            self._retries.inc()
        log.info("request to an object store is repeated", extra={"address": problem.address, "cause": problem.cause})
        time.sleep(PAUSES_S[min(number, len(PAUSES_S)) - 1] * random.uniform(0.5, 1))

    def _client(self) -> tuple[Any, Any]:
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    def _open(self) -> tuple[Any, Any]:
        try:
            import obstore
            from obstore.store import from_url
        except ImportError as error:
            problem = f"found no package obstore ({error})"
            raise ObjectStoreError("open", self.root, problem, "pip install 'rayflink[s3]' on every node") from error
        config, client = client_configuration(self.root, self.options)
        try:
            store = from_url(self.root, config=config, client_options=client, retry_config={"max_retries": 0})  # type: ignore[call-overload]
        except Exception as error:  # whatever the client finds in address and options
            raise explained(error, "open", self.root) from error
        return obstore, store


def _entry(metadata: Mapping[str, Any]) -> ObjectEntry:
    return ObjectEntry(
        int(metadata["size"]), metadata["e_tag"] or "", int(metadata["last_modified"].timestamp() * 1000)
    )


__all__ = ["PAUSES_S", "TOKEN", "ObjectStore", "ObjectStores"]
