"""A job on its way to a dispatcher: the submission, and what the dispatcher must know without running its code."""

from __future__ import annotations

import io
import json
import os
import uuid
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from rayflink.actors.job.submission import Stored, Submission, decode_submission, encode_submission
from rayflink.actors.on_ray.driver.user_program import pack_with_classes
from rayflink.common.errors import ConfigError, JobExecutionError
from rayflink.common.user_code.python_files import packed
from rayflink.graph.job_description import describe_graph
from rayflink.graph.job_graph import JobGraph

FORMAT = 1

__all__ = ["PackedArchive", "RemoteSubmission"]


@dataclass(frozen=True, slots=True)
class PackedArchive:
    """An archive of `python.archives`.

    Args:
        name: of its file, whose ending says how it is packed.
        target: folder into which it is unpacked, relative to the one of the processes.
        content: the file.
    """

    name: str
    target: str
    content: bytes = b""

    @classmethod
    def of_cached(cls, name: str, path: str) -> PackedArchive:
        """Pack a file or a folder of the distributed cache, as a zip archive; files keep their modes.

        Raises:
            ConfigError: it cannot be read.
        """
        root, target = Path(path), io.BytesIO()
        files = [root] if root.is_file() else [file for file in sorted(root.rglob("*")) if file.is_file()]
        try:
            with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
                if not files:
                    archive.writestr(f"{root.name}/", b"")
                for file in files:
                    archive.write(file, file.relative_to(root.parent).as_posix())
        except (OSError, ValueError) as error:
            remedy = f"the file is sent to the cluster from here; correct its mode or its time: {error}"
            raise ConfigError(f"cached file {name}", path, "a file or folder that can be read", remedy) from error
        return cls(name, root.name, target.getvalue())


@dataclass(frozen=True, slots=True)
class RemoteSubmission:
    """A job that a dispatcher can start, again and again, on its runner.

    Args:
        job_id: 32 hex digits.
        name: of the job.
        description: as `describe_graph` gives it.
        stored: where the job stores its checkpoints; None: it takes none.
        submission: with the program, its modules and the distributed cache.
        executable: interpreter of its processes; "": that of the nodes.
        archives: to unpack in the folder of its processes.
        cached: the distributed cache: its files, zipped, each with its name, and that of the file or folder.
        has_classes: whether classes of the program's script are in it, of which a process can have one of each name.
    """

    job_id: str
    name: str
    description: Mapping[str, Any]
    stored: Stored | None
    submission: Submission
    executable: str = ""
    archives: Sequence[PackedArchive] = field(default=())
    cached: Sequence[PackedArchive] = field(default=())
    has_classes: bool = True

    @classmethod
    def of(
        cls, graph: JobGraph, modules: Sequence[str], owner_timeout_ms: int | None, executable: str = "",
        archives: Sequence[PackedArchive] = (), placement: str = "PACK",
    ) -> RemoteSubmission:  # fmt: skip
        """Pack a job graph.

        Args:
            modules: files and folders that its processes import.
            owner_timeout_ms: it is cancelled when no client has asked for it for so long; None: it goes on.

        Raises:
            NotSerializable: the program cannot be sent.
            ConfigError: a file of the distributed cache cannot be read.
        """
        files = dict(graph.user_artifacts)
        here = {name: path for name, path in files.items() if os.path.exists(path)}
        cached = [PackedArchive.of_cached(name, path) for name, path in here.items()]
        graph = replace(graph, user_artifacts=())  # those paths are of this machine
        program, classes = pack_with_classes(graph, f"job {graph.name!r}")
        elsewhere = {name: path for name, path in files.items() if name not in here}
        submission = Submission(program, elsewhere, 0.0, "", placement, owner_timeout_ms, packed(modules))
        return cls(
            str(graph.id), graph.name, describe_graph(graph), Stored.of(graph), submission, executable, tuple(archives),
            tuple(cached), bool(classes),
        )  # fmt: skip

    def encode(self) -> bytes:
        """Return the bytes that travel, and that the registry stores."""
        program = encode_submission(self.submission)
        head = {
            "format": FORMAT,
            "job_id": self.job_id,
            "name": self.name,
            "description": dict(self.description),
            "stored": None if self.stored is None else asdict(self.stored),
            "executable": self.executable,
            "has_classes": self.has_classes,
            "bytes": len(program),
            "archives": [[archive.name, archive.target, len(archive.content)] for archive in self.archives],
            "cached": [[file.name, file.target, len(file.content)] for file in self.cached],
        }
        pieces = [json.dumps(head, default=str).encode(), b"\n", program]
        return b"".join([*pieces, *(archive.content for archive in (*self.archives, *self.cached))])

    @classmethod
    def decode(cls, data: bytes, other_rayflink: bool = False) -> RemoteSubmission:
        """Read what `encode` wrote. No code of the program runs.

        Args:
            data: the bytes.
            other_rayflink: take it from another version of rayflink, too, as after an upgrade.

        Raises:
            JobExecutionError: it is something else, damaged, or was packed by other versions.
        """
        line, _, body = data.partition(b"\n")
        try:
            head = json.loads(line)
            if head["format"] != FORMAT:
                raise ValueError(f"format {head['format']}, wanted {FORMAT}")
            job_id, size = str(uuid.UUID(hex=head["job_id"]).hex), int(head["bytes"])
            submission = decode_submission(body[:size], "the request", job_id, other_rayflink)
            archives, begin = [], size
            entries = [*head["archives"], *head["cached"]]
            for name, target, length in entries:
                archives.append(PackedArchive(str(name), str(target), body[begin : begin + length]))
                begin += length
            if begin != len(body):
                raise ValueError(f"{len(body)} bytes, wanted {begin}")
            stored = None if head["stored"] is None else Stored(**head["stored"])
            count = len(head["archives"])
            return cls(
                job_id, str(head["name"]), head["description"], stored, submission, str(head["executable"]),
                archives[:count], archives[count:], bool(head.get("has_classes", True)),
            )  # fmt: skip
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            remedy = "send what `execution.target: remote` sends, with the same version of rayflink"
            raise JobExecutionError("of the request", f"cannot be read: {error}", remedy) from error
