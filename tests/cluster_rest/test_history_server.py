"""The history server over archives."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from benchmarks.runs.environments import Unavailable
from rayflink.cli.main import main
from rayflink.cluster.archives.archive_store import ArchiveStore
from rayflink.cluster.history_server import HistoryServer
from rayflink.cluster.rest.flink_archive import flink_archive
from rayflink.common.configuration import Configuration
from rayflink.common.errors import ConfigError
from rayflink.state.storage.local_storage import LocalStorage
from tests.cluster_rest.flink_cluster import FlinkCluster, flink_history_server
from tests.cluster_rest.jobs_of_tests import LocalJobView
from tests.cluster_rest.test_archives import EndedJob


def get(url: str) -> object:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


def test_the_history_server_shows_jobs_of_several_folders_and_pages(tmp_path):
    for number, folder in enumerate(("a", "b"), 1):
        ArchiveStore(LocalStorage(tmp_path / folder)).store(EndedJob(number, number * 100))
    options = {"historyserver.archive.fs.dir": f"{tmp_path}/a, {tmp_path}/b", "historyserver.web.port": "0",
               "historyserver.archive.retained-jobs": "1"}  # fmt: skip
    server = HistoryServer(Configuration.from_dict(options))
    server.start()
    try:
        assert get(f"{server.url}/rayflink/history")["archives"] == 2
        ArchiveStore(LocalStorage(tmp_path / "b")).store(EndedJob(3, 300))
        server.jobs.refresh()
        assert [status["jid"] for status in server.jobs.statuses()] == [f"{3:032x}", f"{1:032x}"]
        assert len(LocalStorage(tmp_path / "b").list()) == 1
        jobs = get(f"{server.url}/jobs/overview")["jobs"]
        assert [(job["jid"], job["end-time"], job["tasks"]["finished"]) for job in jobs] == [
            (f"{3:032x}", 300, 2), (f"{1:032x}", 100, 2),
        ]  # fmt: skip
        assert get(f"{server.url}/config")["features"]["web-history"] is True
        with urllib.request.urlopen(server.url, timeout=10) as page:
            assert page.headers["content-type"].startswith("text/html")
        with pytest.raises(urllib.error.HTTPError, match="404|405"):
            urllib.request.urlopen(urllib.request.Request(f"{server.url}/jobs/{1:032x}", method="PATCH"), timeout=10)
    finally:
        server.stop()


def test_a_history_server_without_a_folder_is_refused():
    with pytest.raises(ConfigError, match=r"set historyserver\.archive\.fs\.dir"):
        HistoryServer(Configuration())


@pytest.mark.slow
def test_an_archive_for_flink_has_the_answers_by_their_paths(tmp_path):
    view = LocalJobView("failed")
    storage = LocalStorage(tmp_path)
    store = ArchiveStore(storage, flink_archive)
    file = store.store(view)
    job_id = str(view.status()["jid"])
    entries = {entry["path"]: json.loads(entry["json"]) for entry in json.loads(storage.read(job_id))["archive"]}
    assert [job["jid"] for job in entries["/jobs/overview"]["jobs"]] == [job_id]
    assert entries[f"/jobs/{job_id}"]["state"] == "FAILED"
    assert "is broken" in entries[f"/jobs/{job_id}/exceptions"]["exceptionHistory"]["entries"][0]["stacktrace"]
    vertex = view.status()["vertices"][0]["id"]
    assert entries[f"/jobs/{job_id}/vertices/{vertex}/subtasks/1/attempts/0"]["subtask"] == 1
    assert not [path for path in entries if "{" in path or not path.startswith("/jobs/")]
    assert [each.job_id for each in store.files()] == [job_id]
    store.delete(file.name)
    assert storage.list() == []


@pytest.mark.soak
@pytest.mark.timeout(200)
def test_flinks_own_history_server_shows_our_archives(tmp_path):
    views = [LocalJobView(kind) for kind in ("finished", "failed")]
    for view in views:
        ArchiveStore(LocalStorage(tmp_path), flink_archive).store(view)
    try:
        with flink_history_server(tmp_path) as server:
            jobs = {}
            server.wait_for(lambda: len(jobs.update(known_states(server)) or jobs) == 2, "both jobs")
            assert sorted(jobs.values()) == ["FAILED", "FINISHED"]
            for job_id in jobs:
                status, job = server.ask("GET", f"/jobs/{job_id}")
                assert status == 200 and job["vertices"][0]["id"]
                vertex = job["vertices"][0]["id"]
                for path in ("/config", "/exceptions", "/checkpoints", f"/vertices/{vertex}", "/accumulators", "/plan",
                             f"/vertices/{vertex}/subtasktimes"):  # fmt: skip
                    assert server.ask("GET", f"/jobs/{job_id}{path}")[0] == 200, path
    except Unavailable as reason:
        pytest.skip(str(reason))


def known_states(server: FlinkCluster) -> dict[str, str]:
    return {job["jid"]: job["state"] for job in server.ask("GET", "/jobs/overview")[1]["jobs"]}


@pytest.mark.slow
def test_the_history_server_of_the_background_starts_and_stops(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    ArchiveStore(LocalStorage(tmp_path / "a")).store(EndedJob(1, 100))
    options = [f"-Dhistoryserver.archive.fs.dir={tmp_path}/a", "-Dhistoryserver.web.port=0"]
    try:
        assert main(["history-server", "start", *options]) == 0
        url = capsys.readouterr().out.split("listens on ")[1].split(";")[0]
        assert get(f"{url}/rayflink/history")["archives"] == 1
        assert main(["history-server", "start", *options]) == 1 and main(["history-server", "status"]) == 0
    finally:
        assert main(["history-server", "stop"]) == 0
    assert main(["history-server", "status"]) == 1
