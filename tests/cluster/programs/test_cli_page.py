"""The commands of docs/cli.md that need a cluster print what the page says."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_docs import blocks, commands
from tests.cluster import watching

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]


def tells(said: str, wanted: str) -> bool:
    """Whether each line of the page is there; between them may be other tests' jobs, with longer names."""
    lines = [line for line in wanted.splitlines() if line.strip("-\\ +")]
    return all(re.search(f"^{line}$", said, re.MULTILINE) for line in lines)


def test_a_command_prints_what_the_page_says(tmp_path: Path) -> None:
    [endless] = blocks("python", "cluster")
    (tmp_path / "endless.py").write_text(endless, encoding="utf-8")
    [block] = blocks("console", "cluster")
    given = commands(block)
    named = ["run", "list", "status", "logs", "rescale", "savepoint", "checkpoints", "checkpoints", "stop", "list"]
    assert [arguments[0] for arguments, _ in given] == named

    def said_by(arguments: list[str]) -> str:
        command = [sys.executable, "-m", "rayflink.cli.main", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
        return done.stdout + done.stderr

    try:
        for arguments, wanted in given:
            if arguments[0] in ("list", "logs"):  # the job may still be starting, or another test's be listed as ended
                said = watching.eventually(lambda a=arguments, w=wanted: tells(said_by(a), w), within_s=30)
                assert said, f"rayflink {arguments} does not print what the page says: {said_by(arguments)}"
            else:
                said = said_by(arguments)
                assert re.fullmatch(wanted, said), f"rayflink {arguments} printed:\n{said}"
    finally:
        said_by(["cancel", "endless"])
        for actor in watching.actors():
            os.kill(actor["Pid"], signal.SIGKILL)  # a coordinator would keep the result for a minute
