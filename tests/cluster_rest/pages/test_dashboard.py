"""The dashboard in a browser: what its pages show of live jobs, and what can be done by click and by key.

RAYFLINK_WRITE_PICTURES=1 writes the pictures of docs/dashboard.md anew.
"""

from __future__ import annotations

import io
import logging
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rayflink.cluster.cluster_server import ClusterServer
from rayflink.cluster.pages.static_pages import StaticPages
from rayflink.cluster.rest.live_endpoints import LiveEndpoints
from rayflink.serving.http_server import HttpServer
from rayflink.serving.json_application import JsonApplication
from rayflink.serving.server_settings import ServerSettings
from tests.cluster.watching import eventually
from tests.cluster_rest.pages import dashboard_jobs
from tests.cluster_rest.pages.conftest import WRITES_PICTURES
from tests.cluster_rest.pages.dashboard_jobs import HOSTILE

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
PICTURES = Path(__file__).parents[3] / "docs" / "pictures" / "dashboard"
MOST_PICTURE_BYTES = 150_000
OF_COLOURS = ("color-contrast", "link-in-text-block")
"""The rules of axe-core that a theme may break alone."""
Open = Callable[..., "Page"]
JOB, REVENUE, SCORES, BROKEN = "#/jobs/{}/{}", "revenue", "scores", "broken"
VIEWS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "jobs": ("", "jobs", ("revenue", "click scores", "RUNNING", "FAILED", "Task managers", "back-pressured")),
    "graph": (REVENUE, "graph", ("revenue by customer", "drops late records", "skew 1.", "Source: orders")),
    "bottleneck": (SCORES, "graph", ("score with the model is the bottleneck", "back-pressured")),
    "checkpoints": (REVENUE, "checkpoints", ("COMPLETED", "exactly once", "alignment", "async")),
    "exceptions": (BROKEN, "exceptions", ("ValueError: order 20 has no price", "dashboard_jobs.py", "On record")),
    "state": (REVENUE, "state", ("window-contents", "by key group", "uid revenue")),
    "configuration": (REVENUE, "configuration", ("execution.checkpointing.interval", "restart")),
    "history": ("", "history", ("FAILED", "ValueError")),
    "taskmanagers": ("", "taskmanagers", ("Slots", "Heard", "Memory in use")),
    "jobmanager": ("", "jobmanager/configuration", ("rest.port", "web.refresh-interval")),
}


def address(cluster: ClusterServer, jobs: dict[str, str], view: str) -> str:
    job, part, _ = VIEWS[view]
    return f"{cluster.url}/{JOB.format(jobs[job], part) if job else f'#/{part}'}"


def wait_for(page: Page, *strings: str) -> None:
    """Wait until the page shows these strings."""
    for text in strings:
        page.get_by_text(text).locator("visible=true").first.wait_for()


def violations(page: Page, *rules: str) -> list[str]:
    """Return what axe-core finds wrong with a page for people who do not see it, or see it differently.

    Args:
        page: of the browser.
        rules: those that count; none: all.
    """
    axe = pytest.importorskip("axe_playwright_python.base", reason="pip install axe-playwright-python")
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe.AXE_SCRIPT)
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    found: list[Any] = page.evaluate("options => axe.run(options).then(answer => answer.violations)", options)
    return [
        f"{rule['id']} ({rule['impact']}): {node['target']} {node['failureSummary']}"
        for rule in found
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


def keep_picture(page: Page, name: str) -> None:
    """Write the picture of a page, with few colours; else make sure that there is one."""
    path = PICTURES / f"{name}.png"
    if WRITES_PICTURES:
        image_library = pytest.importorskip("PIL.Image", reason="pip install pillow")
        image = image_library.open(io.BytesIO(page.screenshot()))
        path.parent.mkdir(parents=True, exist_ok=True)
        few = image.convert("RGB").quantize(
            192, image_library.Quantize.MAXCOVERAGE, dither=image_library.Dither.NONE
        )
        few.save(path, optimize=True)
    assert 0 < path.stat().st_size < MOST_PICTURE_BYTES, f"{path.name}: RAYFLINK_WRITE_PICTURES=1 writes it"


@pytest.mark.spec("S04", "page", "U09", "execution")
@pytest.mark.parametrize("view", list(VIEWS))
def test_a_page_shows_live_jobs_in_both_themes(
    view: str, cluster: ClusterServer, jobs: dict[str, str], look_at: Open
) -> None:
    page = look_at(address(cluster, jobs, view))
    wait_for(page, *VIEWS[view][2])
    if WRITES_PICTURES:
        page.wait_for_timeout(6_000)  # some points for the lines of the pictures
    if view != "bottleneck":
        keep_picture(page, view)
    problems = violations(page)
    page.emulate_media(color_scheme="dark")
    problems += [f"dark: {problem}" for problem in violations(page, *OF_COLOURS)]
    if view == "bottleneck":
        keep_picture(page, "dark")
    assert not problems, "\n".join(problems)


def test_a_vertex_shows_its_subtasks_watermarks_and_metrics(
    cluster: ClusterServer, jobs: dict[str, str], open_page: Open
) -> None:
    page = open_page(address(cluster, jobs, "graph"))
    vertex = page.get_by_role("button", name="revenue by customer").first
    vertex.focus()
    page.keyboard.press("Enter")
    panel = page.get_by_role("region", name="revenue by customer")
    panel.get_by_role("table", name="Subtasks of revenue by customer").wait_for()
    panel.get_by_text("dashboard_jobs.py").wait_for()
    keep_picture(page, "vertex")
    panel.get_by_role("button", name="Operators").click()
    panel.get_by_text("Watermark out").first.wait_for()
    panel.locator("summary").first.click()
    panel.get_by_text("numLateRecordsDropped").wait_for()
    assert not violations(page)
    page.get_by_role("link", name="Source: orders -> valid").first.click()
    page.get_by_role("button", name="Accumulators (1)").click()
    page.get_by_role("table", name="Accumulators").get_by_text("orders", exact=True).wait_for()
    page.keyboard.press("Escape")
    panel.wait_for(state="detached")


def test_a_vertex_shows_where_its_time_goes(cluster: ClusterServer, jobs: dict[str, str], open_page: Open) -> None:
    if not (shutil.which("py-spy") or Path(sys.executable).with_name("py-spy").exists()):
        pytest.skip("pip install py-spy")
    page = open_page(address(cluster, jobs, "bottleneck"), height=1100)
    page.get_by_role("button", name="score with the model").first.click()
    page.get_by_role("button", name="Flame graph").click()
    page.get_by_text("samples; a bar's width").wait_for()
    bar = page.locator(".flame").get_by_text("score (").first
    keep_picture(page, "flame")
    bar.click()
    page.get_by_role("button", name="Show all").wait_for()
    assert not violations(page)


def test_hostile_names_are_text(
    cluster: ClusterServer, jobs: dict[str, str], look_at: Open, open_page: Open
) -> None:
    for part in ("graph", "exceptions", "checkpoints", "state", "configuration"):
        page = look_at(f"{cluster.url}/{JOB.format(jobs[BROKEN], part)}")
        page.get_by_role("region", name=part, exact=False).locator("visible=true").first.wait_for()
        page.get_by_text("loading", exact=True).first.wait_for(state="detached")
        assert page.locator("h1 bdi").text_content() == f"broken {HOSTILE}".replace("\u202e", "\\u202e")
        assert page.locator("main img, main script, main iframe").count() == 0
    page = open_page(f"{cluster.url}/#/jobs/{'<img src=x onerror=alert(1)>'}", expected=(400,))
    wait_for(page, "32 hexadecimal digits")


def test_a_process_shows_its_log_output_threads_and_profile(
    cluster: ClusterServer, jobs: dict[str, str], look_at: Open
) -> None:
    page = look_at(f"{cluster.url}/{JOB.format(jobs[SCORES], 'processes')}")
    processes = page.get_by_role("table", name="Processes of the job")
    processes.get_by_role("cell", name="%").wait_for()
    processes.get_by_role("link", name="log").click()
    parts = page.get_by_role("navigation", name="Parts of the process")
    parts.get_by_role("link", name="Threads").click()
    page.locator("summary").get_by_text("job click scores").first.click()
    page.get_by_text("File ").locator("visible=true").first.wait_for()
    keep_picture(page, "threads")
    parts.get_by_role("link", name="Metrics").click()
    page.get_by_role("row").nth(3).wait_for()
    parts.get_by_role("link", name="Files").click()
    page.get_by_role("table", name="Files").wait_for()
    assert not violations(page)
    page.goto(address(cluster, jobs, "jobmanager").replace("configuration", "environment"))
    page.locator("pre.output").wait_for()
    assert cluster.token not in page.content()


def test_the_cluster_remembers_figures_for_pages_that_are_opened_later(
    cluster: ClusterServer, jobs: dict[str, str], open_page: Open
) -> None:
    assert eventually(lambda: cluster.dispatcher.trends.of(jobs[SCORES]), 60)
    page = open_page(f"{cluster.url}/{JOB.format(jobs[SCORES], 'timeline')}")
    drawing = page.get_by_role("img", name="the table has them")
    drawing.get_by_text("busiest subtask, at most").wait_for()
    with page.expect_response(lambda answer: answer.url.endswith("/trends")) as known:
        page.reload()
    assert known.value.json()["points"]


def test_a_log_is_searched_and_downloaded(cluster: ClusterServer, look_at: Open) -> None:
    logging.getLogger("rayflink").warning("the list of prices is old")
    page = look_at(f"{cluster.url}/#/jobmanager/log")
    log = page.get_by_role("region", name="log", exact=True)
    log.get_by_text("the list of prices is old").wait_for()
    page.keyboard.press("/")
    page.keyboard.type("no such words")
    page.get_by_text("0 of the last").wait_for()
    page.get_by_label("Find in the log").fill("LIST of prices")
    page.get_by_role("button", name="Warnings and errors").click()
    log.get_by_text("the list of prices is old").wait_for()
    assert not violations(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    assert "the list of prices is old" in Path(download.value.path()).read_text()


@pytest.mark.spec("U09", "checkpoints")
def test_a_checkpoint_opens_down_to_its_subtasks(
    cluster: ClusterServer, jobs: dict[str, str], look_at: Open
) -> None:
    page = look_at(address(cluster, jobs, "checkpoints"))
    rows = page.get_by_role("table", name="Checkpoints, the newest first")
    rows.get_by_role("row").nth(4).get_by_role("button").click()
    rows.get_by_role("button", name="revenue by customer").click()
    subtasks = rows.get_by_role("table", name="Subtasks at checkpoint")
    subtasks.get_by_role("row").nth(2).wait_for()
    assert "COMPLETED" in subtasks.inner_text()


def test_a_job_is_operated_by_click(
    cluster: ClusterServer, submit: Callable[[Callable[[str], Any]], str], open_page: Open
) -> None:
    job = submit(dashboard_jobs.scores)
    page = open_page(f"{cluster.url}/{JOB.format(job, 'graph')}")
    outcome = page.locator(".outcome")
    page.get_by_role("button", name="Savepoint…").click()
    page.get_by_role("dialog").get_by_role("button", name="Take it").click()
    outcome.get_by_text("The savepoint is done").wait_for()
    assert "savepoints/savepoint-" in outcome.inner_text()
    if WRITES_PICTURES:
        page.wait_for_timeout(20_000)  # lines of the time before and after
    page.get_by_role("button", name="Rescale…").first.click()  # a finding may have one, too
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("most subtasks of score with the model").fill("0")
    dialog.get_by_role("button", name="Rescale").click()
    assert dialog.is_visible(), "the browser refuses what is out of bounds"
    dialog.get_by_label("most subtasks of score with the model").fill("3")
    assert not violations(page)
    keep_picture(page, "rescale")
    dialog.get_by_role("button", name="Rescale").click()
    outcome.get_by_text("rescaled within").wait_for()
    if WRITES_PICTURES:
        page.wait_for_timeout(20_000)
    page.get_by_role("button", name="Cancel…").click()
    dialog.get_by_role("button", name="Back").click()
    page.get_by_role("button", name="Cancel…").click()
    dialog.get_by_role("button", name="Cancel it").click()
    page.get_by_role("heading", level=1).get_by_text("CANCELED").wait_for()
    assert page.get_by_role("button", name="Savepoint…").count() == 0
    page.get_by_role("link", name="Timeline").click()
    events = page.get_by_role("table", name="Events, the newest first")
    for text in ("The job is CANCELED", "Parallelism changed", "score with the model: 2 → 3", "Savepoint", "began"):
        events.get_by_text(text).first.wait_for()
    problems = violations(page)
    keep_picture(page, "timeline")
    page.emulate_media(color_scheme="dark")
    assert not [*problems, *violations(page, *OF_COLOURS)]
    page.emulate_media(color_scheme="light")
    page.get_by_role("button", name="Last 10 minutes").click()
    events.get_by_text("The job is CANCELED").wait_for()
    page.get_by_role("link", name="Graph").click()
    page.get_by_role("button", name="Start again…").first.click()
    dialog.get_by_label("the newest: savepoint").wait_for()
    keep_picture(page, "restart")
    assert not violations(page)


@pytest.fixture
def guarded(cluster: ClusterServer, jobs: dict[str, str]) -> Iterator[HttpServer]:
    """The pages of the same jobs by a server that has nobody read without a token."""
    settings = ServerSettings("0.0.0.0", 0, "a-secret-of-the-tests")
    routes = [*LiveEndpoints(cluster.dispatcher).routes(), *StaticPages().routes()]
    server = HttpServer(settings, JsonApplication(settings, routes))
    server.start()
    yield server
    server.stop()


def test_a_token_is_entered_once_and_old_figures_say_so(guarded: HttpServer, open_page: Open) -> None:
    url = f"http://127.0.0.1:{guarded.url.rpartition(':')[2]}"
    page = open_page(url, expected=(0, 401, 404))
    field = page.get_by_role("dialog").get_by_label("Token")
    field.fill("a-secret-of-the-tests")
    page.get_by_role("button", name="Use it").click()
    wait_for(page, "revenue")
    assert page.evaluate("sessionStorage.getItem('rayflink.token')") == "a-secret-of-the-tests"
    page.reload()
    wait_for(page, "revenue")
    assert page.get_by_role("dialog").count() == 0
    guarded.stop()
    page.get_by_role("alert").get_by_text("the cluster does not answer").wait_for()
    assert "as of" in page.locator("#freshness").inner_text() and page.get_by_text("revenue").first.is_visible()


def test_jobs_that_want_a_look_are_shown_alone(
    cluster: ClusterServer, jobs: dict[str, str], open_page: Open
) -> None:
    page = open_page(f"{cluster.url}/")
    running = page.get_by_role("table", name="Running jobs")
    running.get_by_role("row", name="revenue").wait_for()
    running.get_by_role("row", name="click scores").get_by_text("back-pressured").wait_for()
    page.get_by_role("button", name="show them").click()
    running.get_by_role("row", name="revenue").wait_for(state="detached")
    running.get_by_role("row", name="click scores").wait_for()
    page.get_by_role("button", name="show all").click()
    running.get_by_role("row", name="revenue").wait_for()


def test_pages_are_reached_by_keys_and_fit_a_narrow_screen(
    cluster: ClusterServer, jobs: dict[str, str], open_page: Open
) -> None:
    page = open_page(f"{cluster.url}/")
    wait_for(page, "revenue")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("/")
    page.keyboard.type("clicks")
    page.get_by_text("no running job matches").wait_for()
    page.locator("#find").fill("click")
    page.get_by_role("row", name="click scores RUNNING").wait_for()
    page.locator("#find").blur()
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keyboard").wait_for()
    assert not violations(page)
    page.keyboard.press("Escape")
    page.get_by_role("dialog", name="Keyboard").wait_for(state="detached")  # closed: it may be in the page yet
    page.keyboard.press("g")
    page.keyboard.press("h")
    page.get_by_role("heading", name="Jobs that have ended").wait_for()
    page.goto(f"{cluster.url}/{JOB.format(jobs[REVENUE], 'graph')}")
    wait_for(page, "revenue by customer")
    page.keyboard.press("]")
    page.get_by_role("table", name="Checkpoints, the newest first").wait_for()
    for width in (640, 360):
        page.set_viewport_size({"width": width, "height": 800})
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"the page is {wide} px wider than a screen of {width} px"
    page.get_by_role("button", name="Theme").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
