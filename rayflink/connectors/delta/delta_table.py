"""The place of a Delta table: its address, the options of its object store, and its files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING
from urllib.parse import unquote

from ..lakes.data_file_writing import LocalDataFile, local_path
from ..lakes.lake_errors import LakeError, lake_error, library, without_secrets

if TYPE_CHECKING:
    import deltalake
    import pyarrow.fs

_S3_OPTIONS = {
    "s3.endpoint": "AWS_ENDPOINT_URL",
    "s3.access-key": "AWS_ACCESS_KEY_ID",
    "s3.secret-key": "AWS_SECRET_ACCESS_KEY",
    "s3.region": "AWS_REGION",
    "s3.endpoint.region": "AWS_REGION",
}
_PATH_STYLE = "s3.path.style.access"
READER_FEATURES = frozenset({"timestampNtz", "deletionVectors", "v2Checkpoint", "vacuumProtocolCheck"})
"""Features of a table's protocol that a reader here knows."""
WRITER_FEATURES = READER_FEATURES | {"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "domainMetadata"}
"""Features of a table's protocol with which rows can be appended; constraints only where the table has none."""


@dataclass(frozen=True)
class DeltaPlace:
    """The address of a Delta table.

    Args:
        path: a folder, or the URL of one in an object store.
        options: the `s3.` options of rayflink, or options of the library deltalake.
    """

    path: str
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @staticmethod
    def at(path: str, options: Mapping[str, str] | None = None) -> DeltaPlace:
        """Return the place of a table; a relative path starts at the working directory of the program.

        Raises:
            LakeError: the path is empty.
        """
        if not path:
            raise LakeError("the path of the Delta table is empty", "name a folder, or a URL such as s3://bucket/table")
        if local := local_path(path):
            path = os.path.abspath(local)
        return DeltaPlace(path, tuple(sorted((options or {}).items())))

    @property
    def is_local(self) -> bool:
        """Return whether it is a folder."""
        return local_path(self.path) is not None

    def exists(self) -> bool:
        """Return whether there is a Delta table."""
        missing = library("deltalake.exceptions", "delta").TableNotFoundError
        with self.errors("found"):
            try:
                library("deltalake", "delta").DeltaTable(self.path, None, self._storage())
            except missing:
                return False
        return True

    def open(self, version: int | None = None) -> deltalake.DeltaTable:
        """Return the table, at its newest version or at another.

        Raises:
            LakeError: there is none, or it needs a feature that is not supported.
        """
        module = library("deltalake", "delta")
        with self.errors("read"):
            table = module.DeltaTable(self.path, version, self._storage())
        self._check_features(table, "reader_features", READER_FEATURES, "read")
        return table  # type: ignore[no-any-return]

    def check_writable(self, table: deltalake.DeltaTable) -> None:
        """Check that rows can be appended.

        Raises:
            LakeError: the table has a rule for its rows that is not checked here.
        """
        self._check_features(table, "writer_features", WRITER_FEATURES, "written")
        configuration = table.metadata().configuration
        rules = [key for key in configuration if key.startswith("delta.constraints.")]
        mapped = configuration.get("delta.columnMapping.mode", "none") != "none"
        fields = table.schema().to_json()
        rules += [key for key in ("delta.invariants", "delta.generationExpression", "delta.identity.") if key in fields]
        if rules or mapped:
            features = ", ".join(rules or ["delta.columnMapping.mode"])
            raise LakeError(
                f"{self} has {features}, which is not supported for writes", "drop it, or use another table"
            )

    def create(
        self, schema: pyarrow.Schema, partition_columns: list[str], description: str | None = None
    ) -> None:
        """Create the table, unless another has created it meanwhile.

        Args:
            description: stored with it; None: it has none.

        Raises:
            LakeError: Delta has no such type for a column.
        """
        module = library("deltalake", "delta")
        try:
            with self.errors("created"):
                module.DeltaTable.create(
                    self.path, schema, mode="ignore", partition_by=partition_columns, description=description,
                    storage_options=self._storage(),
                )  # fmt: skip
        except LakeError:
            if not self.exists():
                raise

    def filesystem(self) -> pyarrow.fs.FileSystem:
        """Return the files of the table; paths are relative to it."""
        from pyarrow import fs

        handlers = library("deltalake.fs", "delta")
        if local := local_path(self.path):
            return fs.SubTreeFileSystem(local, fs.LocalFileSystem())
        with self.errors("opened"):
            return fs.PyFileSystem(handlers.DeltaStorageHandler(self.path, self._storage()))

    def new_file(self, path: str) -> IO[bytes]:
        """Create a file of the table; in a folder its bytes are on the disk when it is closed."""
        if local := local_path(self.path):
            return LocalDataFile(os.path.join(local, path))  # type: ignore[return-value]  # has what Arrow calls
        handlers = library("deltalake._internal", "delta")
        stream = handlers.DeltaFileSystemHandler(self.path, self._storage()).open_output_stream(path, None)
        return _ObjectFile(stream)  # type: ignore[return-value]  # has what Arrow calls

    def errors(self, action: str) -> _Errors:
        """Return a context that raises the library's errors as `LakeError`, without secrets."""
        return _Errors(self, action)

    def _check_features(self, table: deltalake.DeltaTable, kind: str, known: frozenset[str], action: str) -> None:
        features = set(getattr(table.protocol(), kind) or ())
        mapped = table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none"
        unknown = sorted(features - known - {"columnMapping"}) + (["columnMapping"] if mapped else [])
        if unknown:
            problem = f"{self} cannot be {action}: it has the features {', '.join(unknown)}"
            raise LakeError(problem, f"supported are {', '.join(sorted(known))}")

    def _storage(self) -> dict[str, str]:
        """Return the options of the library."""
        settings = dict(self.options)
        storage = {name: value for name, value in settings.items() if not name.startswith("s3.")}
        storage |= {name: settings[option] for option, name in _S3_OPTIONS.items() if settings.get(option)}
        if _PATH_STYLE in settings:
            storage["AWS_VIRTUAL_HOSTED_STYLE_REQUEST"] = str(settings[_PATH_STYLE].lower() == "false").lower()
        endpoint = storage.get("AWS_ENDPOINT_URL", "")
        if endpoint:
            if "://" not in endpoint:
                storage["AWS_ENDPOINT_URL"] = f"https://{endpoint}"
            storage.setdefault("AWS_ALLOW_HTTP", str(endpoint.startswith("http://")).lower())
            storage.setdefault("AWS_REGION", "us-east-1")
        return storage

    def __str__(self) -> str:
        return f"the Delta table {without_secrets(self.path)}"


class _ObjectFile:
    """A new object; the library takes bytes alone, and Arrow's Parquet writer writes buffers too."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._size, self.closed = stream, 0, False

    def write(self, data: bytes) -> int:
        whole = bytes(memoryview(data))
        self._stream.write(whole)
        self._size += len(whole)
        return len(whole)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        """Do nothing: an object appears whole when it is closed."""

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._stream.close()


class _Errors:
    def __init__(self, place: DeltaPlace, action: str) -> None:
        self._place, self._action = place, action

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, LakeError):
            remedy = "look at the path, its permissions and the options of the object store"
            raise lake_error(str(self._place), self._action, error, remedy) from None


def path_in_log(path: str) -> str:
    """Return a path as the log has it, percent-encoded, as the path of a file.

    Raises:
        LakeError: it is absolute, as in a shallow clone.

    >>> path_in_log("room=a%2520b/part-1.parquet")
    'room=a%20b/part-1.parquet'
    """
    if "://" in path or path.startswith("/"):
        raise LakeError(
            f"the log names the file {path!r} outside of its table", "read the table that it was cloned from"
        )
    return unquote(path)


__all__ = ["DeltaPlace", "path_in_log"]
