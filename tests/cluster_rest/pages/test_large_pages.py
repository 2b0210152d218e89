"""The dashboard with much to show: it stays readable and small, and a refresh leaves readers where they are."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from rayflink.cluster.pages.static_pages import StaticPages
from rayflink.cluster.rest.live_endpoints import LiveEndpoints
from rayflink.serving.http_server import HttpServer
from rayflink.serving.json_application import JsonApplication
from rayflink.serving.json_requests import Role, Route
from rayflink.serving.server_settings import ServerSettings
from tests.cluster_rest.pages.job_statuses import NOW_MS
from tests.cluster_rest.pages.large_jobs import LONG, LargeJob, LargeJobs, job_id, layered_edges

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
MOST_ELEMENTS = 6_000
DEEP, SUBTASKS, FAILURES, CHECKPOINTS, CHAIN, OTHERS = 1, 2, 3, 4, 5, 10
READ_PLACE = """() => {
  const room = document.querySelector(".graph-scroll");
  return {focused: document.activeElement.querySelector("title")?.textContent || "", left: room.scrollLeft,
          top: room.scrollTop, page: scrollY};
}"""
Look = Callable[..., "Page"]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A server that shows large jobs."""
    pytest.importorskip("uvicorn")
    states = itertools.cycle(("FAILED", "RUNNING", "RUNNING", "RUNNING"))
    others = [LargeJob(OTHERS + number, f"{number} {LONG}", state=next(states)) for number in range(200)]
    jobs = LargeJobs(
        LargeJob(DEEP, f"deep and wide {LONG}", [2] * 100, layered_edges(20, 5)),
        LargeJob(SUBTASKS, "subtasks", [1, 500], ((0, 1),)),
        LargeJob(FAILURES, "failures", failures=10_000),
        LargeJob(CHECKPOINTS, "checkpoints", checkpoints=1_000),
        LargeJob(CHAIN, "chain", [1] * 40, [(number, number + 1) for number in range(39)]),
        *others,
    )
    ticks = itertools.count(NOW_MS, 1_000)
    settings = ServerSettings("127.0.0.1", 0)
    routes = [
        *LiveEndpoints(jobs, now_ms=lambda: next(ticks)).routes(),
        *StaticPages().routes(),
        Route("GET", "/config", lambda request: {"refresh-interval": 500}, Role.NONE),
    ]
    server = HttpServer(settings, JsonApplication(settings, routes))
    server.start()
    yield server.url
    server.stop()


def elements(page: Page) -> int:
    return page.locator("css=*").count()


def overflow(page: Page, of: str = "html") -> dict[str, float]:
    """Return by how many pixels what an element contains is larger than its room."""
    script = "e => ({x: e.scrollWidth - e.clientWidth, y: e.scrollHeight - e.clientHeight})"
    found: dict[str, float] = page.locator(of).evaluate(script)
    return found


def await_refresh(page: Page) -> None:
    """Wait until the page has drawn an answer that was asked for from now on."""
    for _ in range(2):  # the first may have been asked for before
        with page.expect_response(lambda answer: answer.url.endswith("/findings")) as known:
            pass
        known.value.finished()
    page.evaluate("new Promise(requestAnimationFrame)")


def test_subtasks_are_put_in_order_by_a_click(url: str, look_at: Look) -> None:
    page = look_at(f"{url}/#/jobs/{job_id(SUBTASKS)}/graph/{1:032x}", expected=(404,))
    table = page.get_by_role("table", name="Subtasks of step 1")
    table.get_by_role("button", name="In/s").click()
    assert table.locator("tbody tr").first.locator("td").nth(2).inner_text() == "58"
    table.get_by_role("button", name="Subtask").click()
    assert table.locator("tbody tr").first.locator("th").inner_text() == "499"


def test_a_graph_of_a_hundred_vertices_fits_and_a_refresh_moves_nothing(url: str, look_at: Look) -> None:
    page = look_at(f"{url}/#/jobs/{job_id(DEEP)}/graph", expected=(404,))
    room = page.locator(".graph-scroll")
    room.get_by_role("button", name="step 99").wait_for()
    assert page.get_by_role("listitem").filter(has_text="is busy").count() <= 6
    page.get_by_role("button", name="Fit").click()
    fits = "document.querySelector('.graph-scroll .vertex-far') !== null"
    assert page.evaluate(fits) and (size := overflow(page, ".graph-scroll"))["x"] <= 0 and size["y"] <= 0, "it fits"
    page.get_by_role("button", name="Larger").click()
    page.get_by_role("button", name="Larger").click()
    assert overflow(page, ".graph-scroll")["x"] > 500
    page.get_by_role("table", name="Vertices").get_by_role("link", name="step 99").click()
    page.get_by_role("table", name="Subtasks of step 99").wait_for()
    box = room.get_by_role("button", name="step 99")
    place, around = box.bounding_box(), room.bounding_box()
    assert place and around and around["x"] <= place["x"] < around["x"] + around["width"], "the open vertex is seen"
    box.focus()
    before = page.evaluate(READ_PLACE)
    await_refresh(page)
    assert page.evaluate(READ_PLACE) == before
    assert before["focused"].startswith("step 99") and before["left"] > 0
    assert elements(page) < MOST_ELEMENTS


def test_a_straight_run_of_vertices_is_one_box_until_it_is_opened(url: str, look_at: Look) -> None:
    page = look_at(f"{url}/#/jobs/{job_id(CHAIN)}/graph", expected=(404,))
    boxes, vertices = page.locator(".graph-scroll").get_by_role("button"), page.get_by_role("table", name="Vertices")
    run = page.locator(".graph-scroll").get_by_role("button", name="38 vertices")
    run.wait_for()
    assert boxes.count() == 3
    vertices.get_by_role("link", name="step 21").click()
    page.get_by_role("table", name="Subtasks of step 21").wait_for()
    assert boxes.count() == 40, "the vertex that is open is seen"
    page.keyboard.press("Escape")
    run.click()
    run.wait_for(state="detached")
    assert boxes.count() == 40
    page.get_by_role("button", name="Fold", exact=True).click()
    run.wait_for()
    vertices.get_by_role("button", name="Busy").click()
    read = "cells => cells.map(cell => parseInt(cell.textContent))"
    busy = vertices.locator("tbody td:nth-child(8)").evaluate_all(read)
    assert busy == sorted(busy, reverse=True) and busy[0] > busy[-1]


@pytest.mark.parametrize(
    ("place", "table", "first", "all_"),
    [(f"jobs/{job_id(SUBTASKS)}/graph/{1:032x}", "Subtasks of step 1", 100, 500),
     (f"jobs/{job_id(CHECKPOINTS)}/checkpoints", "Checkpoints, the newest first", 50, 1_000),
     ("jobs", "Running jobs", 100, 155)],
)  # fmt: skip
def test_long_tables_begin_with_their_first_rows(
    place: str, table: str, first: int, all_: int, url: str, look_at: Look
) -> None:
    page = look_at(f"{url}/#/{place}", expected=(404,))
    rows = page.get_by_role("table", name=table).locator("tbody tr")
    rows.first.wait_for()
    assert rows.count() == first and elements(page) < MOST_ELEMENTS
    page.get_by_text(f"{first} of {all_:,} are shown").wait_for()
    page.get_by_role("button", name=f"Show all {all_:,}" if all_ > 2 * first else f"Show {all_ - first} more").click()
    assert rows.count() == all_
    assert overflow(page)["x"] <= 0


def test_ten_thousand_failures_and_long_names_are_a_page_of_its_width(url: str, look_at: Look) -> None:
    page = look_at(f"{url}/#/jobs/{job_id(FAILURES)}/exceptions", expected=(404,))
    page.get_by_text("20 of 10,000 are shown").wait_for()
    assert elements(page) < MOST_ELEMENTS
    page.goto(f"{url}/#/jobs/{job_id(DEEP)}/graph")
    page.locator(".graph-scroll").wait_for()
    page.set_viewport_size({"width": 360, "height": 800})
    assert overflow(page)["x"] <= 0
