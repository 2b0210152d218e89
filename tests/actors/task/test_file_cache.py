"""Copies of registered files: made beside the tasks, waited for, taken away with the job."""

from __future__ import annotations

import os
import pickle
import stat
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rayflink.actors.messages.messages import TaskDeployment
from rayflink.actors.task.file_cache import CachedFileError, FileCache
from rayflink.common import JobFailed
from rayflink.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment
from tests.actors.task.test_task_folders import deployed


class Reads(MapFunction):
    """Each record becomes what the cached file holds, and where it is."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.path = runtime_context.get_distributed_cache().get_file("model")

    def map(self, value: Any) -> Any:
        return Path(self.path).read_text(), self.path


@pytest.fixture
def task(tmp_path: Path) -> TaskDeployment:
    (tmp_path / "disk").mkdir()
    (tmp_path / "words").write_text("a b")
    return replace(deployed(tmp_path / "disk")[0], cached_files={"words": str(tmp_path / "words")})


@pytest.mark.spec("C34", "copied")
def test_a_file_is_copied_once_for_all_tasks_of_the_process(task: TaskDeployment, tmp_path: Path) -> None:
    (tmp_path / "words").chmod(0o750)
    cache = FileCache()
    copy = cache.files_of(task)["words"]
    assert Path(copy).read_text() == "a b" and stat.S_IMODE(os.stat(copy).st_mode) == 0o750
    assert Path(copy).parent.parent.parent == tmp_path / "disk" and task.job_id in copy
    (tmp_path / "words").write_text("later")
    other = cache.files_of(replace(task, attempt="0a" * 16))
    assert other["words"] == copy and Path(copy).read_text() == "a b"
    assert list(other) == ["words"] and len(other) == 1 and "more" not in other
    assert pickle.loads(pickle.dumps(other)) == {"words": copy}


@pytest.mark.spec("C34", "copied")
def test_a_folder_is_copied_with_all_that_is_in_it(task: TaskDeployment, tmp_path: Path) -> None:
    (tmp_path / "model" / "layers").mkdir(parents=True)
    (tmp_path / "model" / "layers" / "0").write_bytes(b"x" * 10_000_000)
    (tmp_path / "model" / "empty").touch()
    copy = Path(FileCache().files_of(replace(task, cached_files={"m": str(tmp_path / "model")}))["m"])
    assert copy.name == "model" and (copy / "empty").read_bytes() == b""
    assert (copy / "layers" / "0").stat().st_size == 10_000_000


@pytest.mark.spec("C34", "failure")
@pytest.mark.parametrize("kind", ["missing", "pipe"])
def test_a_copy_that_fails_names_file_task_and_remedy_where_it_is_asked_for(
    task: TaskDeployment, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "gone"
    if kind == "pipe":
        os.mkfifo(path)
    files = FileCache().files_of(replace(task, cached_files={"a": str(path), **task.cached_files}))
    assert Path(files["words"]).read_text() == "a b"  # what stands behind it is copied all the same
    cause = "No such file or directory" if kind == "missing" else "a pipe, socket or device"
    message = (
        rf"Exception while adding files to distributed cache of task .*: 'a' cannot be copied from '.*gone' \(.*{cause}"
    )
    with pytest.raises(CachedFileError, match=message) as caught:
        files["a"]
    assert "register_cached_file()" in str(caught.value) and task.attempt in str(caught.value)


def test_nothing_is_copied_any_more_once_the_job_has_ended(
    task: TaskDeployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.truncate(tmp_path / "words", 1 << 40)  # a file with a hole of a terabyte
    cache = FileCache()
    files = cache.files_of(task)
    deadline = time.monotonic() + 30
    while not list((tmp_path / "disk").rglob("words")):
        assert time.monotonic() < deadline, "the copy has not begun"
    cache.stop()
    with pytest.raises(CachedFileError, match="the job has ended"):
        files["words"]


@pytest.mark.spec("C34", "registered", "copied")
def test_tasks_of_a_local_job_read_copies_which_go_with_it(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "model.bin").write_text("weights")
    env = StreamExecutionEnvironment({"execution.target": "local", "io.tmp.dirs": str(tmp_path / "disk")})
    env.register_cached_file(str(tmp_path / "model.bin"), "model")
    ((content, path),) = env.from_collection([1]).map(Reads()).execute_and_collect(limit=5)
    assert content == "weights" and Path(path).is_relative_to(tmp_path / "disk") and Path(path).name == "model.bin"
    assert list((tmp_path / "disk").iterdir()) == []


@pytest.mark.spec("C34", "failure")
def test_a_local_job_whose_file_is_missing_fails_with_its_name(tmp_path: Path) -> None:
    env = StreamExecutionEnvironment({"execution.target": "local"})
    env.register_cached_file(str(tmp_path / "model.bin"), "model")
    with pytest.raises(JobFailed, match="'model' cannot be copied from '.*model.bin'.*put it where every node sees it"):
        list(env.from_collection([1]).map(Reads()).execute_and_collect())
