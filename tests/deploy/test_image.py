"""deploy/Dockerfile: what linters say, what is in the image and who runs it, and its question for health."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.deploy.cloud_files import ROOT
from tests.deploy.dockerfile import FILE, default, stages

HEALTHY = ROOT / "deploy" / "docker" / "healthy"


def test_the_linter_has_nothing_to_say() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    ended = subprocess.run([hadolint, FILE], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stdout


def test_the_image_is_made_in_stages_and_runs_without_root() -> None:
    wheel, packages, image = stages()
    assert [stage.name for stage in (wheel, packages, image)] == ["wheel", "packages", ""]
    assert {stage.base for stage in (wheel, packages, image)} == {"python:${PYTHON}-slim-bookworm"}
    assert image.arguments("USER") == ["1000:1000"]
    ready = image.arguments("HEALTHCHECK")[0]
    assert json.loads(ready[ready.index("["):]) == ["healthy"]
    assert json.loads(image.arguments("CMD")[0])[:3] == ["ray", "start", "--head"]
    assert [source for source, _, _ in image.copies() if source] == ["packages"]  # no compiler, no source, no wheel
    assert all("__pycache__" not in line for line in packages.arguments("RUN"))  # no process could write it anew
    assert "syntax=" not in FILE.read_text().split("\n", 1)[0]  # which a builder would fetch from a registry
    extras = re.findall(r"^([a-z0-9-]+) = \[", (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.M)
    assert set(default("EXTRAS").split(",")) <= set(extras)


def test_the_build_gets_what_it_copies_and_nothing_else() -> None:
    lines = Path(f"{FILE}.dockerignore").read_text().splitlines()
    first, *patterns = [line for line in lines if line and not line.startswith("#")]
    assert first == "*"
    allowed = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    copied = [path for stage in stages() for source, paths, _ in stage.copies() if not source for path in paths]
    for path in copied:
        assert (ROOT / path).exists(), path
        assert any(path == pattern or path.startswith(f"{pattern}/") for pattern in allowed), path
    assert all(any(fnmatch.fnmatch(path, f"{pattern}*") for path in copied) for pattern in allowed)


@contextmanager
def answering(status: int) -> Iterator[str]:
    """A server that answers each request by that status; its URL."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/overview"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.slow
def test_a_container_is_healthy_if_what_it_runs_answers() -> None:
    def said(url: str) -> tuple[int, str]:
        ended = subprocess.run([sys.executable, HEALTHY], env={"HEALTHY_URL": url}, capture_output=True, text=True)
        return ended.returncode, ended.stderr.strip()

    assert os.access(HEALTHY, os.X_OK)
    for status, code in ((200, 0), (401, 0), (503, 1)):
        with answering(status) as url:
            assert said(url) == (code, f"{url} says 503" if code else "")
    assert re.fullmatch(r"http\S+ does not answer: .*refused.*", said(url)[1])


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.timeout(390)
def test_the_lines_of_the_build_make_an_environment_that_runs_a_job(tmp_path: Path) -> None:
    """The RUN lines of the stages that build are run in a folder, where Docker has an image of its own."""
    wheel, packages, _ = stages()
    source, wheels, environment = tmp_path / "source", tmp_path / "wheels", tmp_path / "rayflink"
    source.mkdir()
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for _, paths, _ in wheel.copies():
        for path in paths:
            if (ROOT / path).is_dir():
                shutil.copytree(ROOT / path, source / path, symlinks=True, ignore=ignored)
            else:
                shutil.copy(ROOT / path, source)
    for stage, folder in ((wheel, source), (packages, tmp_path)):
        for line in stage.arguments("RUN"):
            line = line.replace("/opt/rayflink", str(environment)).replace("/wheels", str(wheels))
            clean = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
            clean |= {"EXTRAS": default("EXTRAS"), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
            line = line.replace("--no-cache-dir ", "")  # what pip has is enough
            ended = subprocess.run(["bash", "-ec", line], cwd=folder, env=clean, capture_output=True, text=True)
            assert ended.returncode == 0, line + ended.stdout + ended.stderr
    program = tmp_path / "job.py"
    program.write_text(
        "from rayflink.datastream import StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "env.from_collection([1, 2, 3]).map(lambda number: number * 14).print()\nenv.execute('image')\n"
    )
    for arguments in (["--local"], []):
        command = [environment / "bin" / "rayflink", "run", *arguments, program]
        clean = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "RAY_TMPDIR": os.environ.get("RAY_TMPDIR", "/tmp")}
        ended = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True, timeout=90)
        assert sorted(ended.stdout.split()) == ["14", "28", "42"], ended.stdout + ended.stderr
