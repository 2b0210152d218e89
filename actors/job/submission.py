"""A submitted job, and its storage, from which a coordinator can come back without its driver."""

from __future__ import annotations

import json
import platform
import re
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from typing import Any

import cloudpickle

from rayflink.common.configuration import Configuration
from rayflink.common.errors import JobExecutionError
from rayflink.common.ids import JobID
from rayflink.common.options import registry as options
from rayflink.common.options.store_options import storage_options
from rayflink.connectors.collected import DrawnSink
from rayflink.graph.job_graph import JobGraph
from rayflink.state.errors import DamagedFileError, VersionMismatch
from rayflink.state.storage.storage import Storage, StorageError, put_own
from rayflink.state.storage.storage_schemes import open_storage

from ..messages.checkpoint_settings import CheckpointSettings
from .job_checkpoints import takes_checkpoints
from .rescaled_graph import rescaled_graph

FOLDER = "job"
FORMAT = 1
_BINARY = ("program", "modules")
_NAME = re.compile(rf"{FOLDER}/(\d{{9}})")
_CHECKPOINT = re.compile(r"(chk-(\d+))/_metadata")
_TRIES = 10


@dataclass(frozen=True, slots=True)
class JobChanges:
    """The differences between a job and the one as which its program was packed, of which it is a new start.

    Args:
        program_id: id of the job in the packed program.
        job_id: of the job.
        start_from: checkpoint or savepoint that it starts from; "": none.
        allow_non_restored_state: state that belongs to no operator is left behind.
        configuration: options over those of the program and of the cluster.
        parallelism: vertex id -> subtasks; for vertices that are not there, as in the program.
    """

    program_id: str
    job_id: str
    start_from: str = ""
    allow_non_restored_state: bool = False
    configuration: Mapping[str, str] = field(default_factory=dict)
    parallelism: Mapping[str, int] = field(default_factory=dict)

    def applied(self, graph: JobGraph) -> JobGraph:
        """Return the job that the program becomes.

        Raises:
            JobExecutionError: its rows are drawn by the program that submitted it, which does not wait for this one.
            PlanError: a vertex cannot have that many subtasks.
        """
        nodes = [node for vertex in graph.vertices for node in vertex.operators]
        if any(isinstance(getattr(node.factory, "sink", None), DrawnSink) for node in nodes):
            reason = "gives its rows to the program that has submitted it, which does not wait for another one"
            raise JobExecutionError(self.job_id, reason, "run that program again, with -s for its state")
        configuration = Configuration.from_dict(dict(graph.configuration))
        for key in (options.RESTORE_PATH.key, options.IGNORE_UNCLAIMED_STATE.key, *self.configuration):
            option = options.by_key().get(key)
            for name in (key,) if option is None else (option.key, *option.fallback_keys):
                configuration.remove_config(name)
        configuration.add_all(Configuration.from_dict(dict(self.configuration)))
        if self.start_from:
            configuration.set(options.RESTORE_PATH, self.start_from)
            configuration.set(options.IGNORE_UNCLAIMED_STATE, self.allow_non_restored_state)
        renamed = replace(graph, id=JobID(self.job_id), configuration=configuration.to_dict())
        return rescaled_graph(renamed, self.parallelism)


@dataclass(frozen=True, slots=True)
class Submission:
    """The submission of a driver.

    Args:
        program: the packed job graph.
        cached_files: name -> path of the distributed cache.
        slot_cpus: CPUs of one slot; 0: as its options say.
        namespace: Ray namespace of all actors of the job.
        placement: Ray's strategy for the slots: PACK, SPREAD, STRICT_PACK or STRICT_SPREAD.
        owner_timeout_ms: the job is cancelled when its driver has not been heard of for so long; None: it goes on.
        modules: the files of `python.files`, packed; a coordinator that comes back has them from Ray.
        ends_at: where its end is noted, so that no dispatcher starts it again; None: nowhere.
        defaults: options of its cluster, for what the job's own say nothing about.
        began_ms: when the job began, epoch milliseconds; 0: it has not begun.
        start_number: of the dispatcher's starts of the job, which it notes there; 0: none is noted.
        changes: of a job that is a new start of another one; None: it is as it was packed.
    """

    program: bytes
    cached_files: Mapping[str, str] = field(default_factory=dict)
    slot_cpus: float = 0.0
    namespace: str = "rayflink"
    placement: str = "PACK"
    owner_timeout_ms: int | None = None
    modules: bytes = b""
    ends_at: Stored | None = None
    start_number: int = 0
    defaults: Mapping[str, str] = field(default_factory=dict)
    began_ms: int = 0
    changes: JobChanges | None = None

    def under(self, graph: JobGraph) -> JobGraph:
        """Return the job with the options of its cluster where it has none of its own, and with its changes.

        Raises: what `JobChanges.applied` raises.
        """
        if self.defaults:
            graph = replace(graph, configuration={**self.defaults, **graph.configuration})
        return graph if self.changes is None else self.changes.applied(graph)

    def begun(self, graph: JobGraph, now_ms: int) -> Submission:
        """Return the submission with the time when the job began, and the CPUs of its slots.

        Args:
            graph: the job, under the options of its cluster.
            now_ms: epoch milliseconds.
        """
        cpus = self.slot_cpus or slot_cpus(graph)
        return replace(self, began_ms=self.began_ms or now_ms, slot_cpus=cpus)


def slot_cpus(graph: JobGraph) -> float:
    """Return the CPUs of a slot whose group says nothing, by the options of its job."""
    return Configuration.from_dict(graph.configuration).get(options.SLOT_CPUS)


@dataclass(frozen=True, slots=True)
class Stored:
    """The place where a job is stored.

    Args:
        url: address of the folder of the job.
        options: by which its object store is reached.
    """

    url: str
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, graph: JobGraph) -> Stored | None:
        """Return the place to store a job; None where it takes no checkpoints into a directory."""
        return cls.of_options(graph.id, graph.configuration, not takes_checkpoints(graph))

    @classmethod
    def of_options(cls, job_id: str, configuration: Mapping[str, Any], takes_none: bool = False) -> Stored | None:
        """Return the place to store a job of which the options are known.

        Args:
            job_id: 32 hex digits.
            configuration: option key -> value.
            takes_none: it takes no checkpoints whatever they say, as in batch mode.
        """
        settings = CheckpointSettings.of(configuration)
        if not settings.directory or settings.interval_ms is None or takes_none:
            return None
        above = Configuration.from_dict(dict(configuration)).get(options.HA_STORAGE_DIR) or settings.directory
        return cls(f"{above.rstrip('/')}/{job_id}", storage_options(configuration))

    def open(self) -> Storage:
        """Open the storage there."""
        return open_storage(self.url, self.options)


def versions() -> dict[str, str]:
    """Return the versions that a packed program depends on."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {"python": python, "cloudpickle": cloudpickle.__version__, "rayflink": version("rayflink")}


def store_submission(storage: Storage, submission: Submission) -> None:
    """Write a submission, unless the newest stored one is the same; older ones are deleted.

    Raises:
        StorageError: it could not be written.
    """
    data = encode_submission(submission)
    for _ in range(_TRIES):
        positions = _positions(storage)
        if positions and storage.read(_path(positions[-1])) == data:
            return
        if put_own(storage, _path(positions[-1] + 1 if positions else 1), data):
            for old in positions:
                storage.delete(_path(old))
            return
    raise StorageError(f"write {FOLDER}", storage.url, f"other coordinators wrote first {_TRIES} times")


def read_submission(storage: Storage, job_id: str) -> Submission:
    """Read the newest stored submission.

    Raises:
        JobExecutionError: there is none, or another Python packed its program.
        StorageError, DamagedFileError, VersionMismatch: it cannot be read.
    """
    positions = _positions(storage)
    if not positions:
        reason = f"is not stored in {storage.url}"
        newest = max(
            filter(None, map(_CHECKPOINT.fullmatch, storage.list())), key=lambda match: int(match[2]), default=None
        )
        path = f"{storage.url}/{newest[1]}" if newest else "the path of a checkpoint or savepoint"
        remedy = (
            "jobs on Ray are stored whose options set execution.checkpointing.dir and execution.checkpointing.interval "
            f"until their checkpoints are deleted, and those of --local are not: run the program again, with -s {path}"
        )
        raise JobExecutionError(job_id, reason, remedy)
    path = _path(positions[-1])
    return decode_submission(storage.read(path), f"{storage.url}/{path}", job_id)


def delete_submissions(storage: Storage) -> None:
    """Delete the stored submissions; the checkpoints are gone."""
    for path in storage.list(FOLDER):
        storage.delete(path)


def encode_submission(submission: Submission) -> bytes:
    """Return a submission as bytes, with a checksum and the versions that can read it."""
    fields = {name: getattr(submission, name) for name in Submission.__slots__ if name not in _BINARY}
    fields["cached_files"], fields["defaults"] = dict(submission.cached_files), dict(submission.defaults)
    fields["ends_at"] = None if submission.ends_at is None else asdict(submission.ends_at)
    fields["changes"] = None if submission.changes is None else asdict(submission.changes)
    body, about = submission.program + submission.modules, {"format": FORMAT, "versions": versions()}
    about |= {"crc32": zlib.crc32(body), "program_bytes": len(submission.program)}
    return json.dumps(about | fields).encode() + b"\n" + body


def decode_submission(data: bytes, url: str, job_id: str, other_rayflink: bool = False) -> Submission:
    """Read what `encode_submission` wrote.

    Args:
        url: where it is, for errors.
        job_id: of the job.
        other_rayflink: take it from another version of rayflink, too; the graph itself says whether it can be read.

    Raises:
        JobExecutionError: other versions wrote it.
        DamagedFileError, VersionMismatch: it cannot be read.
    """
    head, _, body = data.partition(b"\n")
    fields = json.loads(head)
    if fields.pop("format") != FORMAT:
        raise VersionMismatch("another format of stored jobs", f"format {FORMAT}", url, "")
    wanted, checksum = fields.pop("crc32"), zlib.crc32(body)
    if wanted != checksum:
        raise DamagedFileError(url, "the bytes of the program", f"checksum {checksum:08x}", f"{wanted:08x}")
    written = fields.pop("versions")
    here = {name: number for name, number in versions().items() if name != "rayflink" or not other_rayflink}
    different = [f"{name} {written[name]}, here {number}" for name, number in here.items() if written[name] != number]
    if different:
        reason = f"was stored by other versions: {'; '.join(different)}"
        remedy = "run it with those, or run its program again with -s and the path of a checkpoint or savepoint"
        raise JobExecutionError(job_id, reason, remedy)
    size, ends_at, changed = fields.pop("program_bytes"), fields.pop("ends_at", None), fields.pop("changes", None)
    place = None if ends_at is None else Stored(**ends_at)
    changes = None if changed is None else JobChanges(**changed)
    return Submission(body[:size], modules=body[size:], ends_at=place, changes=changes, **fields)


def _positions(storage: Storage) -> list[int]:
    matches = (_NAME.fullmatch(path) for path in storage.list(FOLDER))
    return sorted(int(match[1]) for match in matches if match)


def _path(position: int) -> str:
    return f"{FOLDER}/{position:09d}"


__all__ = [
    "FOLDER", "JobChanges", "Stored", "Submission", "decode_submission", "delete_submissions", "encode_submission",
    "read_submission", "store_submission", "versions",
]  # fmt: skip
