"""What tasks have printed reaches the terminal of the driver, and a paused terminal stops nobody but who prints."""

from __future__ import annotations

import io
import sys
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from rayflink.actors.messages.states import JobStatus
from rayflink.actors.on_ray.driver import driver_output as module
from rayflink.actors.on_ray.driver.driver_output import DriverOutput
from rayflink.actors.on_ray.driver.terminal import READER_LOST_S, News, Terminal


class Paused(io.StringIO):
    """Takes nothing before it goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.goes_on = threading.Event()
        self.waits = threading.Event()

    def write(self, text: str) -> int:
        self.waits.set()
        assert self.goes_on.wait(30)
        return super().write(text)


def test_texts_are_written_in_order_each_to_its_stream(capsys: pytest.CaptureFixture[str]) -> None:
    output = DriverOutput("screen")
    output.put([(False, "a\n"), (True, "b\n")])
    output.put([])
    output.put([(False, "c\n")])
    output.finish()
    output.finish()
    assert capsys.readouterr() == ("a\nc\n", "b\n")
    assert output._writer is not None
    output._writer.join(10)
    assert not output._writer.is_alive()


def test_a_paused_terminal_has_room_for_a_bounded_amount(monkeypatch: pytest.MonkeyPatch) -> None:
    paused = Paused()
    monkeypatch.setattr(sys, "stdout", paused)
    monkeypatch.setattr(module, "MAX_NEWS_CHARS", 3)
    output = DriverOutput("screen")
    assert output.wait_for_room(0)
    output.put([(False, "abc")])
    assert output.wait_for_room(0)
    output.put([(False, "d")])
    assert paused.waits.wait(10)
    assert not output.wait_for_room(0.01), "what is being written counts"
    paused.goes_on.set()
    assert output.wait_for_room(10)
    output.finish()
    assert paused.getvalue() == "abcd"


def test_what_writing_raises_is_raised_where_it_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(sys, "stdout", SimpleNamespace(write=broken))
    output = DriverOutput("screen")
    output.put([(False, "a")])
    with pytest.raises(BrokenPipeError):
        output.finish()
    with pytest.raises(BrokenPipeError):
        output.wait_for_room(0)


def test_a_driver_that_attends_without_reading_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    held = Terminal(now=lambda: now[0])
    for _ in range(5):
        now[0] += 0.9 * READER_LOST_S
        held.attend()
        held.put([(False, "x")])
    assert held.take(0) == ((False, "x"),) * 5


@pytest.mark.slow  # imports Ray
def test_a_driver_whose_terminal_is_paused_goes_on_to_say_that_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    from rayflink.actors.on_ray.driver import ray_cluster

    paused = Paused()
    monkeypatch.setattr(sys, "stdout", paused)
    monkeypatch.setattr(module, "MAX_NEWS_CHARS", 3)
    monkeypatch.setattr(ray_cluster, "FOLLOW_S", 0.01)
    monkeypatch.setattr(ray_cluster.ray, "kill", lambda actor: None)
    monkeypatch.setattr(
        ray_cluster.RayJob,
        "_ask",
        lambda self, what, *given, timeout_s=None: getattr(self._coordinator, what).remote(*given),
    )
    monkeypatch.setattr(ray_cluster.RayJob, "_look_for_control_service", lambda self: None)
    monkeypatch.setattr(ray_cluster.RayJob, "_read", lambda self, packed: packed)
    calls: list[bool] = []

    def follow(timeout_s: float, with_texts: bool) -> News:
        calls.append(with_texts)
        if not with_texts:
            return News()
        return News(((False, f"{calls.count(True)} text\n"),), "", b"result" if calls.count(True) == 3 else None)

    job: Any = ray_cluster.RayJob.__new__(ray_cluster.RayJob)
    answers = SimpleNamespace(follow=SimpleNamespace(remote=follow), status=SimpleNamespace(remote=lambda: {}))
    job.__dict__.update(
        _coordinator=answers, _ask_timeout_s=10, _leaving=False, _output=DriverOutput("screen"),
        _ended=threading.Event(), _last_status=None, _noted_at=0.0, _error=None, _result=None,
        _drawing=threading.Lock(), _idle_s=0.0, _is_over=False,
    )  # fmt: skip
    follower = threading.Thread(target=job._follow)
    follower.start()
    deadline = time.monotonic() + 10
    while calls.count(False) < 3 and time.monotonic() < deadline:
        paused.waits.wait(0.01)
    assert calls[:1] == [True] and calls.count(False) >= 3 and calls.count(True) <= 2
    assert not job._ended.is_set()
    paused.goes_on.set()
    follower.join(10)
    assert job._ended.is_set() and (job._error, job._result) == (None, b"result")
    assert paused.getvalue() == "1 text\n2 text\n3 text\n"


@pytest.mark.slow  # imports Ray
def test_a_sign_of_life_takes_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    from rayflink.actors.on_ray.ray_coordinator import Coordinator

    coordinator: Any = Coordinator()
    coordinator._slots = SimpleNamespace(wait=SimpleNamespace(note=""))
    coordinator._job = SimpleNamespace(status=JobStatus.RUNNING)
    coordinator._terminal.put([(False, "text")])
    coordinator._owner_seen = 0.0
    assert coordinator.follow(60, False) == News()
    assert coordinator._owner_seen > 0
    assert coordinator.follow(0, True) == News(((False, "text"),))
