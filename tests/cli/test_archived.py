"""Jobs of archives in `rayflink list -a` and `rayflink status`."""

from __future__ import annotations

import json

from rayflink import launch
from rayflink.actors.job.notes.job_archive import JobArchive
from rayflink.cli.jobs import LOST
from rayflink.cli.main import main
from rayflink.cluster.archives.archive_store import ArchiveStore
from rayflink.state.storage.local_storage import LocalStorage
from tests.cli.test_status import JOB, SINK, job

OLD = "0d" * 16


def test_archived_jobs_are_listed_and_shown_whole(tmp_path, monkeypatch, capsys):
    for job_id, state in ((JOB, "FINISHED"), (OLD, "FAILED")):
        status = {**job(SINK, state=state), "jid": job_id}
        ArchiveStore(LocalStorage(tmp_path)).store(JobArchive.of(status))
    monkeypatch.setattr(launch, "published_jobs", lambda configuration: [])
    monkeypatch.setattr(launch, "list_jobs", lambda configuration: [])
    monkeypatch.setattr(launch, "recorded_jobs", lambda configuration: [job(SINK, state="RUNNING")])
    assert main(["list", "-a"]) == 0
    assert LOST in capsys.readouterr().out
    archives = ["-D", f"historyserver.archive.fs.dir={tmp_path}"]
    assert main(["list", "-a", *archives]) == 0
    shown = {line.split()[0]: line.split()[2] for line in capsys.readouterr().out.splitlines()[2:]}
    assert shown == {JOB: "FINISHED", OLD: "FAILED"}
    assert main(["status", OLD[:6], "--json", *archives]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["id"], report["state"]) == (OLD, "FAILED")
    assert report["vertices"][0]["subtasks"]
