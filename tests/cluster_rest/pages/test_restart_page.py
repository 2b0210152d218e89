"""A user's walk: three jobs, of which one fails and one is slow, found and mended by the dashboard alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rayflink.cluster.cluster_server import ClusterServer, local_cluster
from rayflink.common.configuration import Configuration
from tests.cluster.watching import eventually
from tests.cluster_rest.pages.test_dashboard import violations
from tests.cluster_rest.restarts.lines_jobs import LinesJob, submissions, three_jobs

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
Open = Callable[..., "Page"]


@pytest.fixture
def own_cluster() -> Iterator[ClusterServer]:
    """A cluster for the three jobs alone."""
    pytest.importorskip("uvicorn")
    running = local_cluster(Configuration.from_dict({"rest.port": "0", "web.refresh-interval": "500 ms"}))
    running.start()
    yield running
    running.stop()


def job_link(page: Page, table: str, name: str) -> Any:
    return page.get_by_role("table", name=table).get_by_role("link", name=name)


def test_a_failed_and_a_slow_job_are_found_and_mended_by_clicks(
    own_cluster: ClusterServer, tmp_path: Path, open_page: Open
) -> None:
    jobs = three_jobs(tmp_path)
    for submission in submissions(jobs):
        own_cluster.dispatcher.submit(submission.encode(), "tests")
    page = open_page(own_cluster.url, expected=(400, 401))
    # the failed one: the list says so, its page says why and where, and has the button
    page.get_by_text("✕ 1").first.wait_for()
    job_link(page, "Jobs that ended last", "orders").click()
    finding = page.get_by_role("listitem").filter(has_text="The job has failed")
    finding.get_by_text("there is no list of prices").wait_for()
    jobs["failing"].prices.touch()  # what was wrong outside is put right
    finding.get_by_role("button", name="Start again…").click()
    dialog = page.get_by_role("dialog", name="Start the job again")
    dialog.get_by_label("the newest: checkpoint").wait_for()
    assert dialog.get_by_label("the newest: checkpoint").is_checked()
    dialog.get_by_text("Other options").click()
    dialog.get_by_label("Options of the job").fill("execution.checkpointing.intervall: 300 ms")
    dialog.get_by_role("button", name="Start it").click()
    dialog.get_by_label("Token").fill(own_cluster.token)
    dialog.get_by_role("button", name="Start it").click()
    dialog.get_by_role("alert").get_by_text("did you mean execution.checkpointing.interval?").wait_for()
    dialog.get_by_label("Options of the job").fill("execution.checkpointing.interval: 300 ms")
    assert not violations(page)
    dialog.get_by_role("button", name="Start it").click()
    page.locator(".outcome").get_by_text("started again from").wait_for()
    page.get_by_role("heading", level=1).get_by_text("RUNNING").wait_for()
    # the slow one: its page names the vertex, and has the button that gives it more subtasks
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Jobs").click()
    job_link(page, "Running jobs", "slow clicks").click()
    finding = page.get_by_role("listitem").filter(has_text="score is the bottleneck")
    finding.get_by_role("button", name="Rescale…").click()
    dialog = page.get_by_role("dialog", name="Change the parallelism")
    assert dialog.get_by_label("most subtasks of score").input_value() == "2"
    dialog.get_by_role("button", name="Rescale").click()
    page.locator(".outcome").get_by_text("rescaled within").wait_for()
    for lines in jobs.values():
        lines.release()
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Jobs").click()
    page.get_by_text("no job runs").wait_for(timeout=90_000)
    for lines in jobs.values():
        assert lines.verdict().is_exact, lines.verdict().report()


def test_a_job_that_runs_is_stopped_and_started_again_in_one_go(
    own_cluster: ClusterServer, tmp_path: Path, open_page: Open
) -> None:
    lines = LinesJob(tmp_path, records=600)
    job_id = own_cluster.dispatcher.submit(lines.scored(0.0).encode(), "tests")
    assert eventually(lambda: lines.newest_checkpoint() >= 1, within_s=60)
    page = open_page(f"{own_cluster.url}/#/jobs/{job_id}/graph")
    page.evaluate("token => sessionStorage.setItem('rayflink.token', token)", own_cluster.token)
    page.get_by_role("button", name="Stop and start again…").click()
    dialog = page.get_by_role("dialog", name="Stop the job, and start it again")
    dialog.get_by_text("Other numbers of subtasks").click()
    dialog.get_by_label("subtasks of score").fill("2")
    dialog.get_by_role("button", name="Stop and start it").click()
    page.locator(".outcome").get_by_text("started again from").wait_for()
    page.get_by_text("started again, was").wait_for()
    vertices = page.get_by_role("table", name="Vertices of the job")
    vertices.get_by_role("row", name="score").get_by_text("2").first.wait_for()
    page.get_by_role("link", name=job_id[:8]).click()
    page.get_by_text("It was started again as").wait_for()
    lines.release()
    assert eventually(lambda: lines.verdict().is_exact, within_s=60), lines.verdict().report()
