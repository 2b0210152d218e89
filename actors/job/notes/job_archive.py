"""All that stays of a job, as one JSON document: in a registry, in an archive, and in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from rayflink.common.errors import RayflinkError, shorten

from .plain_values import plain

__all__ = ["FORMAT", "DamagedArchive", "JobArchive", "is_packed", "read_head"]

FORMAT = 1
MOST_BYTES = 256 << 20
"""Size of a document, above which the details of checkpoints are left out."""
PACKED_FROM = 32 << 10
"""Size from which on a document is compressed."""
SUMS = ("numRecordsIn", "numRecordsOut", "numBytesIn", "numBytesOut", "busyTimeMs", "backPressuredTimeMs")
_ZSTD = b"\x28\xb5\x2f\xfd"
"""The first bytes of what is compressed."""


class DamagedArchive(RayflinkError):
    """A file is no archive of a job that this version can read.

    Args:
        path: of the file.
        problem: what is wrong with it.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path, self.problem = path, problem

    def __str__(self) -> str:
        return f"the archive {self.path} cannot be read: {self.problem}; the job is left out: delete the file, or " \
               "read it with the version of rayflink that wrote it"  # fmt: skip


class JobArchive(msgspec.Struct, frozen=True):
    """A job whose answers do not change any more. Its parts stay encoded until they are read.

    >>> archive = JobArchive.decode(archive_of_example().encode(), "a.json")
    >>> archive.state, archive.ended_ms, archive.checkpoints(7)
    ('FINISHED', 2, None)

    Args:
        format: of the document.
        jid: of the job, 32 hex digits.
        top: the head: the status without subtasks, with its newest exception, for lists of jobs.
        whole: the status.
        plan: the description.
        statistics: of its checkpoints; null: it has none.
        details: of checkpoints, by number.
        totals: the accumulators.
        left_out: what the document was too large for.
    """

    format: int
    jid: str
    top: msgspec.Raw = msgspec.field(name="head")
    whole: msgspec.Raw = msgspec.field(name="status")
    plan: msgspec.Raw = msgspec.field(name="description")
    statistics: msgspec.Raw = msgspec.field(name="checkpoints")
    details: dict[str, msgspec.Raw] = msgspec.field(name="checkpointDetails")
    totals: msgspec.Raw = msgspec.field(name="accumulators")
    left_out: tuple[str, ...] = msgspec.field(name="leftOut", default=())

    @classmethod
    def of(
        cls, status: Mapping[str, Any], description: Mapping[str, Any] | None = None,
        checkpoints: Callable[[int | None], Mapping[str, Any] | None] = lambda number: None,
        accumulators: Mapping[str, Any] | None = None,
    ) -> JobArchive:  # fmt: skip
        """Read everything of a job.

        Args:
            status: as `JobReport.describe` gives it.
            description: as `rayflink.graph.job_description` gives it; None: nothing is known of it.
            checkpoints: gives statistics of all checkpoints, or the details of one; None where it is forgotten.
            accumulators: name -> value.
        """
        statistics = checkpoints(None)
        known = {number: checkpoints(number) for number in _checkpoint_numbers(statistics or {})}
        details = {str(number): _raw(document) for number, document in known.items() if document is not None}
        if description is None:
            names = {"jid": status["jid"], "name": status["name"]}
            description = {**names, "mode": "STREAMING", "configuration": {}, "vertices": []}
        return cls(
            FORMAT, str(status["jid"]), _raw(_head(status)), _raw(status), _raw(description), _raw(statistics),
            details, _raw(plain(accumulators or {})),
        )  # fmt: skip

    @classmethod
    def decode(cls, data: bytes, path: str) -> JobArchive:
        """Read what `encode` wrote, or the note of an end of builds before, which had no format.

        Args:
            path: for errors.

        Raises:
            DamagedArchive: it is something else.
        """
        unpacked = _unpacked(data, path)
        try:
            archive: JobArchive = _decoded(_ARCHIVES, unpacked, path)
            _STATES.decode(archive.top)
        except msgspec.DecodeError as error:
            raise DamagedArchive(path, f"in its head: {error}") from error
        except DamagedArchive:
            older = _older(unpacked)
            if older is None:
                raise
            return older
        return archive

    def encode(self) -> bytes:
        """Return the document, compressed if it is large."""
        data = msgspec.json.encode(self)
        if len(data) > MOST_BYTES:
            data = msgspec.json.encode(msgspec.structs.replace(self, details={}, left_out=("checkpointDetails",)))
        return data if len(data) < PACKED_FROM else _packed(data)

    @property
    def size(self) -> int:
        """Return the bytes that it takes in memory."""
        parts = (self.top, self.whole, self.plan, self.statistics, self.totals, *self.details.values())
        return sum(memoryview(part).nbytes for part in parts)

    @property
    def state(self) -> str:
        """Return the state in which the job was."""
        return _STATES.decode(self.top).state

    @property
    def ended_ms(self) -> int:
        """Return when the job came into its state, epoch milliseconds; 0 where that is not known."""
        short = _STATES.decode(self.top)
        return int(short.timestamps.get(short.state, max(short.timestamps.values(), default=0)))

    def head(self) -> Mapping[str, Any]:
        """Return the last status without subtasks, with the newest of its exceptions."""
        return _document(self.top)

    def status(self) -> Mapping[str, Any]:
        """Return the last status."""
        return _document(self.whole)

    def description(self) -> Mapping[str, Any]:
        """Return the plan and the configuration."""
        return _document(self.plan)

    def checkpoints(self, checkpoint_id: int | None = None) -> Mapping[str, Any] | None:
        """Return statistics of all checkpoints, or details of one that is remembered."""
        if checkpoint_id is None:
            return None if bytes(self.statistics) == b"null" else _document(self.statistics)
        document = self.details.get(str(checkpoint_id))
        return None if document is None else _document(document)

    def accumulators(self) -> Mapping[str, Any]:
        """Return the values of the accumulators by name."""
        return _document(self.totals)


class _Head(msgspec.Struct, frozen=True):
    """The beginning of a document, which is read without the rest."""

    format: int
    jid: str
    head: msgspec.Raw


class _State(msgspec.Struct, frozen=True):
    """The parts of a head that say how a job has ended, and when."""

    state: str
    timestamps: dict[str, int] = {}


_ARCHIVES = msgspec.json.Decoder(JobArchive)
_HEADS = msgspec.json.Decoder(_Head)
_STATES = msgspec.json.Decoder(_State)


def read_head(data: bytes, path: str) -> bytes:
    """Return the head of a document, encoded.

    Raises:
        DamagedArchive: it is something else.
    """
    return bytes(_decoded(_HEADS, _unpacked(data, path), path).head)


def is_packed(data: bytes) -> bool:
    """Return whether a document is compressed.

    >>> is_packed(archive_of_example().encode())
    False
    """
    return data.startswith(_ZSTD)


def archive_of_example() -> JobArchive:
    """Return an archive of a job without vertices, for documentation and tests.

    >>> archive_of_example().status()["name"]
    'example'
    """
    status = {"jid": "0" * 32, "name": "example", "state": "FINISHED", "timestamps": {"FINISHED": 2}, "vertices": []}
    return JobArchive.of(status, {})


def _packed(data: bytes) -> bytes:
    import pyarrow  # slow

    packed: bytes = pyarrow.Codec("zstd").compress(data, asbytes=True)
    return packed


def _unpacked(data: bytes, path: str) -> bytes:
    if not is_packed(data):
        return data
    import pyarrow  # slow

    try:
        with pyarrow.CompressedInputStream(pyarrow.BufferReader(data), "zstd") as stream:
            document: bytes = stream.read(2 * MOST_BYTES + 1)
    except OSError as error:
        raise DamagedArchive(path, str(error)) from error
    if len(document) > 2 * MOST_BYTES:
        raise DamagedArchive(path, f"it has more than {2 * MOST_BYTES} bytes")
    return document


def _decoded(decoder: msgspec.json.Decoder[Any], data: bytes, path: str) -> Any:
    try:
        document = decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedArchive(path, str(error)) from error
    if document.format != FORMAT:
        raise DamagedArchive(path, f"it has format {document.format}, wanted {FORMAT}")
    return document


def _older(data: bytes) -> JobArchive | None:
    """Return the job of a note without a format; None: it is something else."""
    try:
        document = json.loads(data)
        if "format" in document:
            return None
        statistics, details = document["checkpoints"] or None, document["details"]
        return JobArchive.of(
            document["status"], document["description"],
            lambda number: statistics if number is None else details.get(str(number)), document["accumulators"],
        )  # fmt: skip
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _document(raw: msgspec.Raw) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.json.decode(raw)
    return document


def _raw(value: object) -> msgspec.Raw:
    try:
        return msgspec.Raw(msgspec.json.encode(value, enc_hook=_plain))
    except (TypeError, ValueError, RecursionError):  # keys that are no strings, half characters, endless nesting
        return msgspec.Raw(msgspec.json.encode(plain(value)))


def _plain(value: object) -> str:
    """Return an id, which is a string of a class of its own, as a string, and the `repr` of what is no JSON."""
    return str.__str__(value) if isinstance(value, str) else shorten(value)


def _head(status: Mapping[str, Any]) -> dict[str, Any]:
    """Return a status without subtasks, and with the newest of its exceptions alone, which lists show."""
    names = ("id", "name", "parallelism", "states", *SUMS)
    vertices = [
        {name: vertex[name] for name in names if name in vertex} | {"subtasks": []}
        for vertex in status.get("vertices", ())
    ]
    return {**status, "vertices": vertices, "exceptions": list(status.get("exceptions", ()))[-1:]}


def _checkpoint_numbers(statistics: Mapping[str, Any]) -> list[int]:
    latest = [entry for entry in (statistics.get("latest") or {}).values() if entry]
    return sorted({int(entry["id"]) for entry in [*statistics.get("history", ()), *latest]})
