"""The figures of jobs over the last hour."""

from __future__ import annotations

from typing import Any

from rayflink.cluster.jobs.trends import FIGURES, Trends
from tests.cluster_rest.pages.job_statuses import NOW_MS, status, subtask, vertex


def job(busy: int, jid: str = "d" * 32, **more: Any) -> dict[str, Any]:
    return {**status(vertex("source", [subtask(0, 5, busy, 0)]), **more), "jid": jid}


def busy(trends: Trends, jid: str = "d" * 32) -> list[float | None]:
    return [point[1 + FIGURES.index("busy_ms_per_second")] for point in trends.of(jid)]


def test_points_are_taken_at_even_distances_and_the_oldest_go() -> None:
    trends = Trends(every_ms=10, most_points=3)
    for number in range(10):
        trends.note([job(100 + number)], NOW_MS + 5 * number)
    assert busy(trends) == [104, 106, 108]
    assert [point[0] for point in trends.of("d" * 32)] == [NOW_MS + 20, NOW_MS + 30, NOW_MS + 40]
    trends.note([job(7)], NOW_MS - 60_000)
    assert busy(trends)[-1] == 7, "a clock that was put back does not stop them"


def test_a_job_whose_status_has_another_form_is_left_out() -> None:
    trends = Trends()
    trends.note([{"jid": "0" * 32, "state": "RUNNING"}, job(100)], NOW_MS)
    assert busy(trends) == [100] and trends.of("0" * 32) == []


def test_what_is_not_known_is_no_number() -> None:
    trends = Trends()
    trends.note([job(100)], NOW_MS)
    [point] = trends.of("d" * 32)
    assert dict(zip(("now_ms", *FIGURES), point, strict=True)) == {
        "now_ms": NOW_MS, "read_per_second": None, "lag_ms": None, "busy_ms_per_second": 100,
        "back_pressured_ms_per_second": 0,
    }  # fmt: skip


def test_a_job_that_has_ended_keeps_its_points_until_there_are_too_many_jobs() -> None:
    trends = Trends(every_ms=10, most_jobs=2)
    ended, others = "e" * 32, ["1" * 32, "2" * 32]
    trends.note([job(1, ended)], NOW_MS)
    trends.note([job(2, ended, state="FINISHED"), job(3, others[0])], NOW_MS + 10)
    assert busy(trends, ended) == [1] and busy(trends, others[0]) == [3]
    trends.note([job(4, others[0]), job(5, others[1])], NOW_MS + 20)
    assert busy(trends, ended) == [] and busy(trends, others[0]) == [3, 4] and busy(trends, others[1]) == [5]
