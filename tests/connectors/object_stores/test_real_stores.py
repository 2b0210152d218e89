"""MinIO, Azurite and fake-gcs-server: uploads under kills, several writers of one name, and what a server refuses."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from benchmarks.servers.object_stores import (
    AzuriteStore,
    GoogleStore,
    MinioStore,
    RealStore,
    azurite_store,
    google_store,
    minio_store,
)
from rayflink.common import Encoder, WatermarkStrategy
from rayflink.connectors.file_systems import object_store
from rayflink.connectors.file_systems.object_store import ObjectStores
from rayflink.connectors.file_systems.store_errors import ObjectStoreError, StoreConnectionError
from rayflink.connectors.file_systems.uploads import PART_BYTES, uploads_to
from rayflink.connectors.files.file_blocks import find_files
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors.file_system import BucketAssigner, FileSink, FileSource, StreamFormat
from rayflink.state.storage.object_storage import ObjectStorage
from rayflink.testing import check_storage

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]
STORES = ["minio", "azurite", "google"]


@pytest.fixture(scope="module")
def minio() -> Iterator[MinioStore]:
    with minio_store() as store:
        yield store


@pytest.fixture(scope="module")
def azurite() -> Iterator[AzuriteStore]:
    with azurite_store() as store:
        yield store


@pytest.fixture(scope="module")
def google() -> Iterator[GoogleStore]:
    with google_store() as store:
        yield store


@pytest.fixture
def store(request: pytest.FixtureRequest) -> RealStore:
    found: RealStore = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize("store", STORES, indirect=True)
def test_one_of_many_writers_of_a_name_wins(store: RealStore) -> None:
    storages = [ObjectStorage(f"{store.root}/race", store.options) for _ in range(4)]
    writers, names = 16, [f"n{number}" for number in range(8)]
    start = threading.Barrier(writers)

    def write(writer: int) -> list[bool]:
        won = []
        for name in names:
            start.wait(20)
            won.append(storages[writer % 4].put_if_absent(name, b"%d" % writer))
        return won

    with ThreadPoolExecutor(writers) as pool:
        outcomes = list(pool.map(write, range(writers)))
    found = store.objects("race/")
    for index, name in enumerate(names):
        winners = [writer for writer in range(writers) if outcomes[writer][index]]
        assert [b"%d" % winner for winner in winners] == [found[f"race/{name}"]]


@pytest.mark.parametrize("store", STORES, indirect=True)
def test_an_upload_is_visible_when_it_is_complete_and_can_be_completed_again(store: RealStore) -> None:
    bucket = ObjectStores(store.options).path(store.root).store
    uploads, key, parts = uploads_to(bucket), "upload/x y+ü.txt", [b"a" * PART_BYTES, b"b" * PART_BYTES]
    upload_id = uploads.begin(key, "token")
    tags = [(number, uploads.add(key, upload_id, number, data)) for number, data in enumerate(parts, 1)]
    uploads.add(key, upload_id, 3, b"part of an attempt that is gone")
    assert _visible(store, "upload/") == {}
    uploads.complete(key, upload_id, tags, b"tail", "token")
    assert store.objects("upload/") == {key: b"".join(parts) + b"tail"}
    assert bucket.attribute(key, object_store.TOKEN) == "token"
    assert find_files([ObjectStores(store.options).path(f"{store.root}/upload/*")]) == [f"{store.root}/{key}"]
    try:
        uploads.complete(key, upload_id, tags, b"tail", "token")
    except ObjectStoreError as error:
        assert "there is no such object" in str(error)
    assert store.objects("upload/") == {key: b"".join(parts) + b"tail"} and store.uploads([key]) == []


def _visible(store: RealStore, prefix: str) -> dict[str, bytes]:
    """Return the objects that readers see; on Google the parts of an upload are hidden objects."""
    return {key: data for key, data in store.objects(prefix).items() if "/." not in key}


def _refused(root: str, options: dict[str, str]) -> str:
    with pytest.raises(ObjectStoreError) as caught:
        ObjectStores(options).path(f"{root}/x").store.list("")
    assert not isinstance(caught.value, StoreConnectionError)
    shown = str(caught.value)
    assert not any(secret in shown for name, secret in options.items() if "key" in name or "secret" in name)
    return shown


def test_what_minio_refuses_is_an_error_with_the_remedy(minio: MinioStore) -> None:
    options = minio.options
    assert "does not accept the credentials" in _refused(minio.root, {**options, "s3.secret-key": "not-the-one"})
    assert "does not accept the credentials" in _refused(minio.root, {**options, "s3.access-key": "nobody-known"})
    assert "there is no such bucket" in _refused("s3://other-bucket", options)
    assert "another region" in _refused(minio.root, {**options, "s3.region": "mars-north-1"})


def test_what_azurite_refuses_is_an_error_with_the_remedy(azurite: AzuriteStore) -> None:
    options = azurite.options
    wrong = "A" * 86 + "=="
    refused = _refused(azurite.root, {**options, "fs.azure.account.key": wrong})
    assert "forbids it" in refused and "use others" in refused, "the emulator forbids it"
    assert "there is no such bucket" in _refused("az://other-container", options)


def test_checkpoints_on_google_obey_the_laws_of_storages(google: GoogleStore) -> None:
    numbers = iter(range(1_000))
    check_storage(lambda: ObjectStorage(f"{google.root}/laws/{next(numbers)} é", google.options))


def test_a_job_reads_and_writes_files_on_google(google: GoogleStore) -> None:
    lines = [f"line {number}" for number in range(20_000)]
    bucket = ObjectStores(google.options).path(google.root).store
    for part in range(4):
        bucket.put(f"in/{part}.txt", "\n".join(lines[part::4]).encode())
    options = {
        "execution.target": "local", "parallelism.default": "2", "execution.checkpointing.interval": "100ms",
        "execution.checkpointing.dir": f"{google.root}/checkpoints", **google.options,
    }  # fmt: skip
    env = StreamExecutionEnvironment.get_execution_environment(options)
    text = StreamFormat.text_line_format()
    source = FileSource.for_record_stream_format(text, f"{google.root}/in").build()
    sink = FileSink.for_row_format(f"{google.root}/out", Encoder.simple_string_encoder())
    sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    env.from_source(source, WatermarkStrategy.no_watermarks(), "lines").sink_to(sink.build())
    env.execute()
    written = google.objects("out/")
    assert sorted(line for data in written.values() for line in data.decode().split("\n") if line) == sorted(lines)
    assert not any("/." in key for key in written), "no hidden object is left"


def _newest(checkpoints: Path) -> str:
    found = list(checkpoints.glob("**/chk-*/_metadata"))
    return str(max(found, key=lambda path: path.stat().st_mtime_ns).parent) if found else ""


def _started(store: RealStore, folder: str, home: Path, parallelism: int, count: int) -> subprocess.Popen[bytes]:
    checkpoints = home / "checkpoints"
    arguments = [json.dumps(store.options), f"{store.root}/{folder}", checkpoints, parallelism, count]
    command = [sys.executable, "-m", "tests.connectors.object_stores.killed_uploads", *arguments, _newest(checkpoints)]
    with open(home / "log", "ab") as log:
        return subprocess.Popen(
            [*map(str, command)], cwd=ROOT, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": str(ROOT)}
        )


def _rounds(store: RealStore, home: Path, seed: int, kills: int, count: int) -> None:
    """Kill a job some times in the middle of its uploads, and look at what is in the store."""
    rng, folder, killed = random.Random(seed), f"kills-{seed}", 0

    def log() -> str:
        return (home / "log").read_text()[-3000:]

    while killed < kills:
        before, job = _newest(home / "checkpoints"), _started(store, folder, home, rng.choice([1, 2, 3]), count)
        deadline = time.monotonic() + 60
        while _newest(home / "checkpoints") == before and job.poll() is None:
            assert time.monotonic() < deadline, f"no checkpoint in 60 s\n{log()}"
            time.sleep(0.02)
        try:
            job.wait(rng.uniform(0, 0.8))
        except subprocess.TimeoutExpired:
            job.kill()
            job.wait()
            killed += 1
            continue
        assert job.returncode == 0, log()
        break
    assert killed, "the job ended before anything was killed"
    last = _started(store, folder, home, 2, count)
    assert last.wait(120) == 0, log()
    shown = _visible(store, f"{folder}/")
    numbers = sorted(int(line) for data in shown.values() for line in data.split())
    assert numbers == list(range(count)), f"{len(numbers)} lines of {count}, {len(set(numbers))} different"
    assert any(len(data) > 2 * PART_BYTES for data in shown.values()), "no upload had several parts"
    prefixes = {key.rsplit("-", 2)[0] for key in shown}
    names = [f"{prefix}-{subtask}-{number}" for prefix in prefixes for subtask in range(3) for number in range(99)]
    assert store.uploads(names) == []


@pytest.mark.parametrize(
    "store", ["minio", "azurite", pytest.param("google", marks=pytest.mark.soak)], indirect=True
)
def test_a_job_that_is_killed_in_its_uploads_writes_each_line_once(store: RealStore, tmp_path: Path) -> None:
    _rounds(store, tmp_path, 1, 2, 250_000)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 7))
@pytest.mark.parametrize("store", STORES, indirect=True)
def test_a_job_that_is_killed_often_writes_each_line_once(store: RealStore, tmp_path: Path, seed: int) -> None:
    _rounds(store, tmp_path, seed, 8, 1_000_000)
