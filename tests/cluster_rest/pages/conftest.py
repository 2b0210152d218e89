"""One cluster with jobs, and one browser, for all tests of the dashboard."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from rayflink.cluster.cluster_server import ClusterServer, local_cluster
from rayflink.common.configuration import Configuration
from rayflink.graph.job_graph import JobGraph
from rayflink.launch.remote_submission import RemoteSubmission
from tests.cluster_rest.pages import dashboard_jobs
from tests.source_files import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HOW = "apt-get install chromium"
WRITES_PICTURES = bool(os.environ.get("RAYFLINK_WRITE_PICTURES"))
ANSWERS = re.compile(r"//[^/]+/(rayflink|jobs|taskmanagers|jobmanager)\b")
"""Addresses of what the pages show."""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("dashboard"))


@pytest.fixture(scope="module")
def cluster(directory: str) -> Iterator[ClusterServer]:
    running = local_cluster(Configuration.from_dict({"rest.port": "0", "web.refresh-interval": "500 ms"}))
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def submit(cluster: ClusterServer, directory: str) -> Callable[[Callable[[str], JobGraph]], str]:
    """Submit a job and return its id."""

    def run(program: Callable[[str], JobGraph]) -> str:
        return cluster.dispatcher.submit(RemoteSubmission.of(program(directory), [], None).encode(), "tests")

    return run


@pytest.fixture(scope="module")
def jobs(submit: Callable[[Callable[[str], JobGraph]], str]) -> dict[str, str]:
    """The ids of the jobs by the names of their functions."""
    programs = (dashboard_jobs.revenue, dashboard_jobs.scores, dashboard_jobs.broken)
    return {program.__name__: submit(program) for program in programs}


@pytest.fixture(scope="module")  # its event loop would be in the way of tests that run their own
def browser() -> Iterator[Browser]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip(f"no Chromium is installed: {HOW}")
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield running
        running.close()


def without_paths(text: str, directory: str) -> str:
    """Return an answer as it would be on any machine, for pictures."""
    places = {directory: "/data", str(ROOT): "/home/me/shop", sys.prefix: "/home/me/venv", sys.base_prefix: "/usr"}
    for place, shown in places.items():
        text = text.replace(place, shown)
    return text


@pytest.fixture
def open_page(browser: Browser, directory: str) -> Iterator[Callable[..., Page]]:
    """Open an address in a new window; what it complains of fails the test.

    `expected` are statuses of answers that are no complaint.
    """
    complaints: list[str] = []
    contexts = []

    def answer_without_paths(route: Any) -> None:
        from playwright.sync_api import Error

        try:
            answer = route.fetch()
        except Error:  # the server is gone
            route.abort()
        else:
            route.fulfill(response=answer, body=without_paths(answer.text(), directory))

    def run(url: str, expected: tuple[int, ...] = (), **options: Any) -> Page:
        context = browser.new_context(
            **{"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce", "timezone_id": "UTC", **options}
        )
        contexts.append(context)
        if WRITES_PICTURES:
            context.route(ANSWERS, answer_without_paths)
        page = context.new_page()
        page.set_default_timeout(30_000)

        def note(message: Any) -> None:
            is_expected = any(f"status of {status} " in message.text for status in expected)
            is_expected |= 0 in expected and "ERR_" in message.text
            if message.type in ("error", "warning") and not is_expected:
                complaints.append(f"{message.type}: {message.text} {message.location}")

        page.on("console", note)
        page.on("pageerror", lambda error: complaints.append(f"uncaught: {error}"))
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        page.goto(url)
        return page

    yield run
    for context in contexts:
        context.close()
    assert not complaints, "\n".join(complaints)
