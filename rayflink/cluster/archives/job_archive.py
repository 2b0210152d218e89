"""All that stays of an ended job, as one JSON document."""

from __future__ import annotations

from typing import Any

import msgspec

from rayflink.common.errors import RayflinkError, shorten

from ..jobs.cluster_job import Document, JobView

__all__ = ["FORMAT", "DamagedArchive", "JobArchive", "ended_ms", "read_head"]

FORMAT = 1
MOST_BYTES = 256 << 20
"""Size of a document, above which the details of checkpoints are left out."""
SUMS = ("numRecordsIn", "numRecordsOut", "numBytesIn", "numBytesOut", "busyTimeMs", "backPressuredTimeMs")


class DamagedArchive(RayflinkError):
    """A file in a folder of archives is no archive that this version can read.

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
    """An ended job: a `JobView` whose answers do not change. Its parts stay encoded until they are read.

    >>> archive = JobArchive.decode(JobArchive.of(archive_of_example()).encode(), "a.json")
    >>> archive.status()["state"], archive.checkpoints(7)
    ('FINISHED', None)

    Args:
        format: of the document.
        jid: of the job, 32 hex digits.
        head: the status without subtasks and exceptions, for lists of jobs.
        whole: the status.
        plan: the description.
        statistics: of its checkpoints; null: it has none.
        details: of checkpoints, by number.
        totals: the accumulators.
        left_out: what the document was too large for.
    """

    format: int
    jid: str
    head: msgspec.Raw
    whole: msgspec.Raw = msgspec.field(name="status")
    plan: msgspec.Raw = msgspec.field(name="description")
    statistics: msgspec.Raw = msgspec.field(name="checkpoints")
    details: dict[str, msgspec.Raw] = msgspec.field(name="checkpointDetails")
    totals: msgspec.Raw = msgspec.field(name="accumulators")
    left_out: tuple[str, ...] = msgspec.field(name="leftOut", default=())

    @classmethod
    def of(cls, view: JobView) -> JobArchive:
        """Read everything of a job that has ended."""
        status, statistics = view.status(), view.checkpoints()
        numbers = _checkpoint_numbers(statistics or {})
        details = {number: _raw(document) for number in numbers if (document := view.checkpoints(number)) is not None}
        return cls(
            FORMAT, str(status["jid"]), _raw(_head(status)), _raw(status), _raw(view.description()), _raw(statistics),
            {str(number): document for number, document in details.items()}, _raw(view.accumulators()),
        )  # fmt: skip

    @classmethod
    def decode(cls, data: bytes, path: str) -> JobArchive:
        """Read what `encode` wrote.

        Args:
            path: for errors.

        Raises:
            DamagedArchive: it is something else.
        """
        archive: JobArchive = _decoded(_ARCHIVES, data, path)
        return archive

    def encode(self) -> bytes:
        """Return the document."""
        data = msgspec.json.encode(self)
        if len(data) <= MOST_BYTES:
            return data
        less = msgspec.structs.replace(self, details={}, left_out=("checkpointDetails",))
        return msgspec.json.encode(less)

    @property
    def size(self) -> int:
        """Return the bytes that it takes in memory."""
        parts = (self.head, self.whole, self.plan, self.statistics, self.totals, *self.details.values())
        return sum(memoryview(part).nbytes for part in parts)

    def status(self) -> Document:
        """Return the last status."""
        return _document(self.whole)

    def description(self) -> Document:
        """Return the plan and the configuration."""
        return _document(self.plan)

    def checkpoints(self, checkpoint_id: int | None = None) -> Document | None:
        """Return statistics of all checkpoints, or details of one that is remembered."""
        if checkpoint_id is None:
            return None if bytes(self.statistics) == b"null" else _document(self.statistics)
        document = self.details.get(str(checkpoint_id))
        return None if document is None else _document(document)

    def accumulators(self) -> Document:
        """Return the values of the accumulators by name."""
        return _document(self.totals)


class _Head(msgspec.Struct, frozen=True):
    """The beginning of a document, which is read without the rest."""

    format: int
    jid: str
    head: msgspec.Raw


_ARCHIVES = msgspec.json.Decoder(JobArchive)
_HEADS = msgspec.json.Decoder(_Head)


def read_head(data: bytes, path: str) -> bytes:
    """Return the head of a document, encoded.

    Raises:
        DamagedArchive: it is something else.
    """
    return bytes(_decoded(_HEADS, data, path).head)


def ended_ms(status: Document) -> int:
    """Return when a job came into its state, epoch milliseconds; 0 where that is not known."""
    timestamps = status.get("timestamps") or {}
    return int(timestamps.get(status.get("state"), max(timestamps.values(), default=0)))


def archive_of_example() -> JobArchive:
    """Return an archive of a job without vertices, for documentation and tests.

    >>> archive_of_example().status()["name"]
    'example'
    """
    status = {"jid": "0" * 32, "name": "example", "state": "FINISHED", "timestamps": {"FINISHED": 2}, "vertices": []}
    empty = msgspec.Raw(b"{}")
    return JobArchive(FORMAT, "0" * 32, _raw(_head(status)), _raw(status), empty, msgspec.Raw(b"null"), {}, empty)


def _decoded(decoder: msgspec.json.Decoder[Any], data: bytes, path: str) -> Any:
    try:
        document = decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DamagedArchive(path, str(error)) from error
    if document.format != FORMAT:
        raise DamagedArchive(path, f"it has format {document.format}, wanted {FORMAT}")
    return document


def _document(raw: msgspec.Raw) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.json.decode(raw)
    return document


def _raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value, enc_hook=_plain))


def _plain(value: object) -> str:
    """Return an id, which is a string of a class of its own, as a string, and the `repr` of what is no JSON."""
    return str.__str__(value) if isinstance(value, str) else shorten(value)


def _head(status: Document) -> dict[str, Any]:
    """Return a status without subtasks and exceptions."""
    names = ("id", "name", "parallelism", "states", *SUMS)
    vertices = [
        {name: vertex[name] for name in names if name in vertex} | {"subtasks": []}
        for vertex in status.get("vertices", ())
    ]
    return {**status, "vertices": vertices, "exceptions": []}


def _checkpoint_numbers(statistics: Document) -> list[int]:
    latest = [entry for entry in (statistics.get("latest") or {}).values() if entry]
    return sorted({int(entry["id"]) for entry in [*statistics.get("history", ()), *latest]})
