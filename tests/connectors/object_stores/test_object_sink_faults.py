"""The file sink on an object store under faults: killed before or after any request, restored from the last checkpoint.

The model is that of local files; in place of operations on files, requests are counted. boto3 verifies from outside.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import moto.s3.models
import pytest
from pyarrow import parquet

from rayflink.connectors.file_systems.object_store import ObjectStore, ObjectStores
from rayflink.connectors.file_systems.staged_uploads import StagedUploads
from rayflink.connectors.files import object_parts
from rayflink.operators.sinks import SinkOperator
from rayflink.testing import OperatorHarness, Place
from rayflink.testing.harness import Snapshots
from tests.connectors.files.test_file_sink_faults import STORY, FaultyFiles, Killed, Model, _play

from .stores import BUCKET, Server

pytestmark = pytest.mark.slow
READERS: dict[str, Callable[[bytes], list[int]]] = {
    "text": lambda data: [int(line[6:-1]) for line in data.decode().splitlines()],
    "parquet": lambda data: parquet.read_table(io.BytesIO(data))["n"].to_pylist(),
}


class FaultyRequests(FaultyFiles):
    """In place of a store's requests: counts them, and one of them does not return."""

    @contextmanager
    def installed(self) -> Iterator[Any]:
        patch = pytest.MonkeyPatch()
        request = ObjectStore.request

        def counted(store: ObjectStore, action: str, key: str, call: Any, tries: int = 0) -> Any:
            number = len(self.log)
            self.log.append((action, key))
            if number == self.at and not self.is_done and self.fault is not None:
                raise self.fault()
            answer = request(store, action, key, call, tries)
            if number == self.at and self.fault is not None:
                raise self.fault()
            return answer

        patch.setattr(ObjectStore, "request", counted)
        try:
            yield patch
        finally:
            patch.undo()


class ObjectModel(Model):
    """The model of a sink whose folder is in a bucket."""

    def __init__(self, server: Server, folder: str, kind: str, parallelism: int, files: FaultyFiles) -> None:
        self.server, self.prefix, self.kind = server, folder, kind
        super().__init__(Path(folder), kind, parallelism, files)

    def _harness(self, subtask: int, parallelism: int, restore: Snapshots) -> OperatorHarness:
        attempt = self.attempt

        class Numbered(SinkOperator):
            def setup(self, ctx: Any) -> None:
                ctx.attempt = attempt
                super().setup(ctx)

        sink = self.make(f"s3://{BUCKET}/{self.prefix}")
        place = Place(subtask, parallelism, config=self.server.options)
        return OperatorHarness(lambda: Numbered(sink), place=place, restore=[restore])

    def seen(self) -> list[int]:
        found = self.server.objects(f"{self.prefix}/")
        files = [data for key, data in found.items() if "/." not in key]
        return [number for data in files for number in READERS[self.kind](data)]

    def wait_for_uploads(self) -> None:
        """Wait for parts that other threads upload; raise what one of them raised."""
        for harness in self.subtasks:
            for opened in harness.operators[0]._writer._open.values():  # type: ignore[attr-defined]
                opened.part.sync()

    def _check_synced(self) -> None:
        """What is uploaded is durable."""

    def _check_shown(self) -> None:
        """What is visible is durable."""


PARTS = {"text": 16, "parquet": 200}


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moto.s3.models, "S3_UPLOAD_PART_MIN_SIZE", 1)
    monkeypatch.setattr(object_parts, "INLINE_BYTES", 8)


def _run_with_a_fault(s3: Server, kind: str, at: int, is_done: bool, parallelism: int) -> bool:
    """Play the story, killed at a request, and then to its end on another parallelism; False: there is none."""
    files = FaultyRequests()
    with files.installed() as patch:
        patch.setattr(object_parts, "PART_BYTES", PARTS[kind])
        model = ObjectModel(s3, f"out-{at}-{is_done}", kind, 2, files)
        files.arm(Killed, at, is_done)
        try:
            _play(model, STORY)
            model.wait_for_uploads()
        except Killed:
            files.fault = None
            model.start(parallelism)
            model.check()
            model.haunt()
        was_killed = files.fault is None
        files.fault = None
        model.write(20 - model.next)
        model.checkpoint("complete")
        model.check()
        model.cancel(2)  # cleans up what the attempts before left
        model.finish()
    assert sorted(model.seen()) == list(range(20))
    assert s3.uploads() == [], "an upload is left"
    return was_killed


def test_hidden_parts_are_found_by_their_key_and_go_with_the_upload(s3: Server) -> None:
    uploads = StagedUploads(ObjectStores(s3.options).path(f"s3://{BUCKET}").store)
    begun = {key: uploads.begin(key, "token") for key in ("out/part-1", "out/part-10", "top")}
    for key, upload_id in begun.items():
        uploads.add(key, upload_id, 1, b"whole")
        uploads.add(key, upload_id, 2, b"of an attempt that is gone")
    assert uploads.unfinished("out/part-10") == [("out/part-10", begun["out/part-10"])]
    assert [key for key, _ in uploads.unfinished("out/")] == ["out/part-1", "out/part-10"]
    for key, upload_id in begun.items():
        uploads.complete(key, upload_id, [(1, "5")], b"", "token")
    assert s3.objects() == dict.fromkeys(begun, b"whole") and uploads.unfinished("") == []


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
def test_hidden_objects_that_are_joined_leave_each_record_once(
    s3: Server, monkeypatch: pytest.MonkeyPatch, is_done: bool
) -> None:
    monkeypatch.setattr(object_parts, "uploads_to", StagedUploads)
    at = 0
    while _run_with_a_fault(s3, "text", at, is_done, 1 + at % 3):
        assert not [key for key in s3.objects() if ".inprogress." in key], "a part is left"
        at += 59
        s3.empty()
    assert at > 20


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("start", [0, pytest.param(1, marks=pytest.mark.soak), pytest.param(2, marks=pytest.mark.soak)])
def test_a_kill_at_any_request_leaves_each_record_once(s3: Server, kind: str, is_done: bool, start: int) -> None:
    at = start
    while _run_with_a_fault(s3, kind, at, is_done, 1 + at % 3):
        at += {"text": 13, "parquet": 61}[kind] if start == 0 else 3
        s3.empty()
    assert at > 18, "the story has more requests"
