"""Who keeps blocks of DataFrames, as far as it can be seen without a cluster."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.slow  # imports Ray


@pytest.fixture
def frames(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, with a Ray that runs and puts nothing anywhere."""
    from rayflink.actors.on_ray.driver import ray_frames

    monkeypatch.setattr(ray_frames.FrameKeeper, "_watch", lambda self: None)
    monkeypatch.setattr(ray_frames.ray, "is_initialized", lambda: True)
    monkeypatch.setattr(ray_frames.ray, "put", lambda block: block)
    return ray_frames


def test_a_control_service_that_does_not_answer_for_a_while_silences_no_program(
    frames: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "LOOKS_EVERY_S", 0.001)
    store, asked = frames.RayFrames.__new__(frames.RayFrames), []
    store.__setstate__({"_namespace": "rayflink", "_address": "", "_name": "n/frames"})

    def names(all_namespaces: bool) -> list[Any]:
        asked.append(all_namespaces)
        if len(asked) == 1:
            raise frames.exceptions.GetTimeoutError("the control service is busy")
        store._left.set()
        return []

    monkeypatch.setattr(frames.ray.util, "list_named_actors", names)
    store._tell()
    assert len(asked) == 2


def test_a_job_is_there_until_it_is_known_to_be_gone(frames: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def get_actor(name: str, namespace: str) -> object:
        if name == "unknown":
            raise frames.exceptions.GetTimeoutError("the control service is busy")
        if name == "gone":
            raise ValueError("no such actor")
        return object()

    monkeypatch.setattr(frames.ray, "get_actor", get_actor)
    keeper = frames.FrameKeeper("rayflink")
    assert [keeper._is_there(name) for name in ("there", "unknown", "gone")] == [True, True, False]


def test_an_attempt_that_puts_more_when_others_have_been_chosen_takes_no_room(frames: Any) -> None:
    keeper = frames.FrameKeeper("rayflink")
    for attempt in (7, 9):
        keeper.put(0, attempt, 0, f"block of {attempt}")
    assert keeper.keep([(0, 9)]) == {(0, 9): 1}
    keeper.put(0, 7, 1, "late")
    keeper.put(0, 9, 1, "wanted")
    assert keeper.refs(0, 7) == [] and keeper.refs(0, 9) == ["block of 9", "wanted"]
