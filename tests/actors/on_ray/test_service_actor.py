"""A service of a Ray cluster ends for good when one of its clients asks for that."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from rayflink.actors.on_ray import service_actor
from rayflink.actors.on_ray.service_actor import ServiceActor


class Service:
    """Notes what is asked of it."""

    url = "http://127.0.0.1:1"

    def __init__(self) -> None:
        self.shut_down = threading.Event()
        self.calls: list[str] = []

    def start(self) -> None:
        self.calls.append("start")

    def stop(self) -> None:
        self.calls.append("stop")


MADE: list[Service] = []


def service(configuration: dict[str, Any]) -> Service:
    MADE.append(Service())
    return MADE[-1]


def test_a_service_that_is_asked_to_end_stops_and_takes_its_process_along(monkeypatch: pytest.MonkeyPatch) -> None:
    killed = threading.Event()
    monkeypatch.setattr(service_actor, "keep_logs", lambda stream, warn: None)
    monkeypatch.setattr(service_actor, "end_own_actor", killed.set)
    monkeypatch.setattr(service_actor, "begin_session", lambda: None)
    actor = ServiceActor(f"{__name__}:service", {})
    assert MADE[-1].calls == ["start"] and actor.url() == Service.url and not killed.is_set()
    MADE[-1].shut_down.set()
    assert killed.wait(10) and MADE[-1].calls == ["start", "stop"]
