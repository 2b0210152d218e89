"""A driver's view of its cluster, as far as it can be seen without one."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.slow  # imports Ray


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Callable[[float, bool], float | None]:
    """(moment, whether the service answers then) -> for how long it is lost; it may be gone for 45 s."""
    from rayflink.actors import ray_connection

    now = SimpleNamespace(s=0.0, answers=True)
    monkeypatch.setattr(ray_connection.time, "monotonic", lambda: now.s)
    monkeypatch.setattr(ray_connection, "answers", lambda address: now.answers)
    watched = ray_connection.ControlService("10.0.0.1:6379", 45)

    def at(moment: float, answers: bool) -> Any:
        now.s, now.answers = moment, answers
        return watched.lost_for_s()

    return at


def test_a_control_service_that_comes_back_in_time_is_not_lost(service: Any) -> None:
    seen = [service(2, True), service(40, False), service(46, False), service(47, True), service(91, False)]
    assert seen == [None] * 5


def test_a_control_service_that_stays_away_is_lost_and_it_is_said_for_how_long(service: Any) -> None:
    assert [service(2, True), service(47, False), service(48, False)] == [None, None, 46]


def test_a_control_service_is_not_looked_for_at_every_turn(service: Any) -> None:
    assert [service(60, False), service(60.5, False), service(61, False)] == [60, None, 61]


def test_patience_is_shorter_than_that_of_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    from rayflink.actors import ray_connection

    context = SimpleNamespace(gcs_address="10.0.0.1:6379")
    monkeypatch.setattr(ray_connection.ray, "get_runtime_context", lambda: context)
    monkeypatch.setattr(ray_connection, "answers", lambda address: False)
    moment = [0.0]
    monkeypatch.setattr(ray_connection.time, "monotonic", lambda: moment[0])
    for variable, last in ((None, 45), ("200", 150)):
        moment[0] = 0.0
        if variable:
            monkeypatch.setenv("RAY_gcs_rpc_server_reconnect_timeout_s", variable)
        watched = ray_connection.ControlService.joined()
        moment[0] = last
        assert watched.lost_for_s() is None
        moment[0] = last + 1
        assert watched.lost_for_s() == last + 1
