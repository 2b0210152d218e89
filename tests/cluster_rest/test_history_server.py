"""The history server over archives."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")
from rayflink.cli.main import main
from rayflink.cluster.archives.archive_store import ArchiveStore
from rayflink.cluster.history_server import HistoryServer
from rayflink.common.configuration import Configuration
from rayflink.common.errors import ConfigError
from rayflink.state.storage.local_storage import LocalStorage
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
