"""A user's walk: three jobs, of which one fails and one is slow, found and mended by commands alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rayflink.cli.main import main
from rayflink.cluster.cluster_server import ClusterServer
from tests.cluster.watching import eventually
from tests.cluster_rest.restarts.lines_jobs import submissions, three_jobs

pytestmark = pytest.mark.slow
COMMAND = re.compile(r"rayflink ((?:restart|rescale) [^\n]*?)(?: starts it again.*)?$", re.MULTILINE)


def test_a_failed_and_a_slow_job_are_found_and_mended_by_commands(
    cluster: ClusterServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = three_jobs(tmp_path)
    for submission in submissions(jobs):
        cluster.dispatcher.submit(submission.encode(), "tests")

    def said(*arguments: str) -> str:
        main(arguments)
        read = capsys.readouterr()
        return read.out + read.err

    assert eventually(lambda: re.search(r"orders +FAILED", said("list", "-a")), within_s=60)
    about = said("status", "orders")
    assert "there is no list of prices" in about
    (restart,) = COMMAND.findall(about)
    jobs["failing"].prices.touch()  # what was wrong outside is put right
    assert "did you mean" in said(*restart.split(), "-D", "execution.checkpointing.intervall=1 s")
    assert re.search(r"orders  [0-9a-f]{32}  started from .*/chk-\d+", said(*restart.split()))
    assert re.search(r"orders +RUNNING", said("list"))
    assert (commands := eventually(lambda: COMMAND.findall(said("status", "slow clicks")), within_s=60))
    (rescale,) = commands
    assert "pause" in said(*rescale.split())
    for lines in jobs.values():
        lines.release()
    assert eventually(lambda: "no jobs" in said("list"), within_s=90)
    for lines in jobs.values():
        assert lines.verdict().is_exact, lines.verdict().report()
