"""Flink's own web UI shows our cluster, in Chromium, without an error; skips where one of the two is missing."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.runs.environments import Unavailable
from tests.cluster_rest.flink_clients.flink_pages import flink_pages
from tests.cluster_rest.flink_clients.live_cluster import flink_libraries, live_cluster

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_SHOWN_BY_TAB = {
    "log-list": r"taskmanager\.out", "profiler": "Create Profiling Instance", "metrics": "Flink Memory Model",
    "config": r"rest\.port", "log": r"jobmanager\.out",
}  # fmt: skip
_OF_FLINK = re.compile(r"TypeError: Cannot read properties of null \(reading 'layout'\)")
"""An error of Flink's pages with any server: a text has come before the editor that shows it."""
SHOWN_MS = 60_000
"""Time within which a page shows what it should, on a machine that has other work too."""
_CUT_OFF = "net::ERR_ABORTED"
"""Why a request fails whose page is left."""


class Pages:
    """Flink's pages in a browser, with everything that goes wrong in it.

    Args:
        page: of the browser.
        url: of Flink's pages.
    """

    def __init__(self, page: Any, url: str) -> None:
        self._page, self._url = page, url
        self._asked: set[Any] = set()
        self.problems: list[str] = []
        page.on("console", lambda message: self._note("console", message.text, message.type == "error"))
        page.on("pageerror", lambda error: self._note("error of the page", error))
        page.on("request", lambda request: self._asked.add(request))
        page.on("requestfinished", lambda request: self._asked.discard(request))
        page.on("requestfailed", self._note_failure)
        page.on("response", lambda answer: self._note(answer.status, answer.url, answer.status >= 400))

    def _note(self, what: object, text: object, is_problem: bool = True) -> None:
        if is_problem and _OF_FLINK.search(str(text)) is None:
            self.problems.append(f"{what}: {text}")

    def _note_failure(self, request: Any) -> None:
        self._asked.discard(request)
        self._note("request failed", f"{request.url}: {request.failure}", request.failure != _CUT_OFF)

    def open(self, route: str, *strings: str) -> None:
        """Open a page, and wait until it shows these strings, each a pattern."""
        self._page.goto(f"{self._url}/#/{route}")
        self.shows(*strings)

    def click(self, selector: str, *strings: str) -> None:
        """Click something, and wait until the page shows these strings."""
        self._page.locator(selector).first.click(timeout=SHOWN_MS)
        self.shows(*strings)

    def shows(self, *strings: str) -> None:
        for text in strings:
            pattern = re.compile(text)
            try:
                self._page.get_by_text(pattern).first.wait_for(timeout=SHOWN_MS)
            except Exception as error:
                shown = " ".join(self._page.inner_text("body").split())
                raise AssertionError(f"{self._page.url} does not show {text!r}, but {shown[:2000]}") from error

    def contains(self, text: str) -> None:
        """Wait until an editor or a table has a string, however it is laid out."""
        script = "text => document.body.innerText.replace(/\\s+/g, ' ').includes(text)"
        self._page.wait_for_function(script, arg=text, timeout=SHOWN_MS)

    def settle(self) -> None:
        """Wait until what the page has asked for so far is answered; it goes on asking."""
        asked, until = set(self._asked), time.monotonic() + SHOWN_MS / 1000
        while asked & self._asked:
            assert time.monotonic() < until, f"no answer: {[request.url for request in asked & self._asked]}"
            self._page.wait_for_timeout(20)


@contextmanager
def browser_page() -> Iterator[Any]:
    """Yield a page of a browser."""
    api = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    programs = [program for name in BROWSERS if (program := shutil.which(name)) is not None]
    if not programs:
        pytest.skip("no chromium on PATH: apt-get install chromium")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=programs[0], args=["--no-sandbox"])
        try:
            yield browser.new_page(viewport={"width": 1280, "height": 800})
        finally:
            browser.close()


@pytest.mark.soak  # walks through two dozen pages
@pytest.mark.timeout(300)
def test_flinks_pages_show_a_cluster_of_ours(tmp_path: Path) -> None:
    try:
        (jar,) = flink_libraries().glob("flink-dist-*.jar")
    except Unavailable as error:
        pytest.skip(str(error))
    with live_cluster(tmp_path) as cluster, flink_pages(jar, cluster.server.url) as url, browser_page() as page:
        running, failed = cluster.submit("running"), cluster.submit("failed")
        cluster.wait_for(running, "RUNNING")
        cluster.wait_for(failed, "FAILED")
        pages = Pages(page, url)
        pages.open("overview", "Running Application List", r"SingleJobApplication\(running job\)", "RUNNING", "FAILED")
        _walk_through_running_job(pages, running)
        _walk_through_failed_job(pages, failed)
        (process,) = cluster.processes.list()
        _walk_through_processes(pages, process.process_id)
        assert pages.problems == []


def _walk_through_running_job(pages: Pages, job_id: str) -> None:
    pages.open("job/running", "Running Jobs", "running job")
    pages.click('tbody tr >> text="running job"', job_id, "Cancel Job", "HASH", "Parallelism: 2", r"Busy \(max\): \d+%")
    pages.click("text=Source: events", "Detail")
    for tab, shown in (
        ("SubTasks", "RUNNING"), ("TaskManagers", "Endpoint"), ("Watermarks", "Datetime of Watermark"),
        ("Accumulators", "parsed"), ("BackPressure", "Back Pressure Status"), ("Metrics", "Add Metric"),
    ):  # fmt: skip
        pages.click(f'flink-job-overview-drawer >> text="{tab}"', shown)
    pages.settle()
    for route, shown in (
        ("exceptions", "Root Exception"), ("timeline", "Vertex TimeLine"), ("configuration", "Execution Configuration"),
        ("dataskew", "What is Data Skew"), ("rescales", "Rescales"), ("checkpoints", "Latest Completed Checkpoint"),
    ):  # fmt: skip
        pages.open(f"job/running/{job_id}/{route}", shown)
        pages.settle()
    for tab, shown in (("History", "COMPLETED"), ("Summary", "Minimum"), ("Configuration", "Exactly Once")):
        pages.click(f'flink-job-checkpoints >> text="{tab}"', shown)
    pages.settle()


def _walk_through_failed_job(pages: Pages, job_id: str) -> None:
    pages.open(f"job/completed/{job_id}/overview", "failed job", "FAILED", "Parallelism: 2")
    pages.settle()
    pages.open(f"job/completed/{job_id}/exceptions", "Root Exception")
    pages.contains("record 50 is broken")
    pages.settle()


def _walk_through_processes(pages: Pages, process_id: str) -> None:
    pages.open("task-manager", re.escape(process_id))
    pages.click(f"text={process_id}", "Flink Memory Model", "Physical Memory")
    pages.settle()
    for tab in ("logs", "stdout", "log-list", "thread-dump", "profiler"):
        pages.open(f"task-manager/{process_id}/{tab}", _SHOWN_BY_TAB.get(tab, "Thread Dump"))
        pages.settle()
    for tab in ("metrics", "config", "logs", "stdout", "log", "thread-dump", "profiler"):
        pages.open(f"job-manager/{tab}", _SHOWN_BY_TAB.get(tab, "Thread Dump"))
        pages.settle()
