"""A Prometheus that scrapes one address."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from benchmarks.servers.bound_process import start_bound
from tests.cluster.head import free_ports
from tests.cluster.watching import eventually

MISSING = "Prometheus is not installed: apt-get install prometheus"
CONFIG = """
global: {{scrape_interval: 250ms, evaluation_interval: 500ms}}
rule_files: [{rules}]
scrape_configs:
  - job_name: rayflink
    static_configs: [{{targets: ["{target}"]}}]
"""


class Prometheus:
    """A running server.

    Args:
        url: on which it answers.
    """

    def __init__(self, url: str) -> None:
        self.url = url

    def query(self, expression: str) -> list[Any]:
        """The series of an expression now."""
        return self.ask("query", query=expression)["result"]

    def ask(self, path: str, **parameters: str) -> Any:
        body = urllib.parse.urlencode(parameters).encode() if parameters else None
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/{path}", body, timeout=10) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@contextmanager
def scraping(url: str, rules: Path, folder: Path) -> Iterator[Prometheus]:
    """Run Prometheus until the block ends.

    Args:
        url: of what it scrapes.
        rules: file of alert rules.
        folder: for its data.
    """
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip(MISSING)
    config, [port] = folder / "prometheus.yml", free_ports(1)
    config.write_text(CONFIG.format(rules=rules, target=urlsplit(url).netloc), encoding="utf-8")
    command = [program, f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}", "--log.level=error",
               f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.retention.time=1h"]  # fmt: skip
    process = start_bound(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={"GOMAXPROCS": "1"})
    server = Prometheus(f"http://127.0.0.1:{port}")
    try:
        assert eventually(server.is_ready, within_s=30)
        yield server
    finally:
        process.terminate()
        process.wait(20)
