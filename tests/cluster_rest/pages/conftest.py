"""One cluster with jobs, and one browser, for all tests of the dashboard."""

from __future__ import annotations

import os
import re
import shutil
import socket
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
PATIENCE_MS = 60_000
"""Time within which a page shows what is waited for, on a machine that has other work too."""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("dashboard"))


@pytest.fixture(scope="module")
def cluster(directory: str) -> Iterator[ClusterServer]:
    running = local_cluster(Configuration.from_dict({"rest.port": "0", "web.refresh-interval": "1 s"}))
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


SHOWN_HOST = "worker-1"
_HOST = re.compile(rf"\b{re.escape(socket.gethostname())}\b")


def without_places(text: str, directory: str) -> str:
    """Return an answer as it would be on any machine, for pictures: without its folders and its name."""
    places = {directory: "/data", str(ROOT): "/home/me/shop", sys.prefix: "/home/me/venv", sys.base_prefix: "/usr"}
    for place, shown in places.items():
        text = text.replace(place, shown)
    return _HOST.sub(SHOWN_HOST, text)


class Window:
    """A window of the browser, with what its pages complain of."""

    def __init__(self, browser: Browser, directory: str) -> None:
        self._context = browser.new_context(reduced_motion="reduce", timezone_id="UTC")
        if WRITES_PICTURES:
            self._context.route(ANSWERS, lambda route: answer_without_places(route, directory))
        self._page = self._context.new_page()
        self._page.set_default_timeout(PATIENCE_MS)
        self._page.on("console", self._note)
        self._page.on("pageerror", lambda error: self.complaints.append(f"uncaught: {error}"))
        self._page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        self._expected: tuple[int, ...] = ()
        self.complaints: list[str] = []

    def look_at(
        self, url: str, expected: tuple[int, ...] = (), color_scheme: Any = "light", height: int = 800
    ) -> Page:
        """Open an address; a page of the same cluster stays loaded, as after a click on a link.

        Args:
            url: of a page.
            expected: statuses of answers that are no complaint; 0: there is no answer.
            color_scheme: light or dark.
            height: of the window.
        """
        self._expected = expected
        self._page.set_viewport_size({"width": 1280, "height": height})
        self._page.emulate_media(color_scheme=color_scheme)
        self._page.goto(url)
        return self._page

    def open(self, url: str, **options: Any) -> Page:
        """Load an address anew; nothing is left of what was done before."""
        self.forget()
        return self.look_at(url, **options)

    def forget(self) -> None:
        """Leave the page, with all that it has stored."""
        if self._page.url.startswith("http"):
            self._page.evaluate("sessionStorage.clear(), localStorage.clear()")
        self._page.goto("about:blank")

    def close(self) -> None:
        """Close it."""
        self._context.close()

    def _note(self, message: Any) -> None:
        is_expected = any(f"status of {status} " in message.text for status in self._expected)
        is_expected |= 0 in self._expected and "ERR_" in message.text
        if message.type in ("error", "warning") and not is_expected:
            self.complaints.append(f"{message.type}: {message.text} {message.location}")


def answer_without_places(route: Any, directory: str) -> None:
    """Answer a request as the server does, for pictures; the pages ask for what the pictures name."""
    from playwright.sync_api import Error

    try:
        answer = route.fetch(url=route.request.url.replace(SHOWN_HOST, socket.gethostname()))
    except Error:  # the server is gone
        route.abort()
    else:
        route.fulfill(response=answer, body=without_places(answer.text(), directory))


@pytest.fixture(scope="module")
def own_window(browser: Browser, directory: str) -> Iterator[Window]:
    """One for all tests of a module: a new one costs more than all that most of them do in it."""
    window = Window(browser, directory)
    yield window
    window.close()


@pytest.fixture
def window(own_window: Window) -> Iterator[Window]:
    """The window; what its pages complain of fails the test."""
    own_window.complaints.clear()
    yield own_window
    assert not own_window.complaints, "\n".join(own_window.complaints)


@pytest.fixture
def look_at(window: Window) -> Callable[..., Page]:
    """Open an address in a page that is loaded already, for tests that change nothing in it."""
    return window.look_at


@pytest.fixture
def open_page(window: Window) -> Iterator[Callable[..., Page]]:
    """Load an address anew."""
    yield window.open
    window.forget()
