"""The processes of a finished job wait for the next one: who takes them, and when they end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from rayflink.actors.job.submission import Submission
from rayflink.actors.messages.commands import SlotsGranted
from rayflink.actors.messages.scheduling import required_slots
from rayflink.actors.on_ray.driver.idle_coordinator import Processes
from rayflink.actors.on_ray.slots.deployment_check import SlotAssignment
from rayflink.common.options import registry as options
from tests.actors.job.job_events import Job, three_vertices

pytestmark = pytest.mark.slow  # imports Ray


class FakeRay:
    """Ray as those who keep processes see it: notes which are killed; those in `lost` do not answer."""

    def __init__(self, address: str = "head:1") -> None:
        self.address, self.killed, self.lost = address, [], set[str]()

    def is_initialized(self) -> bool:
        return bool(self.address)

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(gcs_address=self.address, current_actor="coordinator")

    def kill(self, actor: Any) -> None:
        self.killed.append(actor)

    def get(self, answers: Any, timeout: float) -> None:
        from ray.exceptions import RayActorError

        if self.lost & set(answers if isinstance(answers, list) else [answers]):
            raise RayActorError

    def put(self, value: Any) -> Any:
        return value


class Process:
    """A handle of an actor whose calls are answered by its name."""

    def __init__(self, name: str) -> None:
        self.name, self.assigned = name, []
        self.status = SimpleNamespace(remote=lambda: name)
        self.assign = SimpleNamespace(remote=self._assign)

    def _assign(self, assignment: SlotAssignment) -> str:
        self.assigned.append(assignment)
        return self.name


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, FakeRay]]:
    from rayflink.actors.on_ray.driver import idle_coordinator

    ray = FakeRay()
    monkeypatch.setattr(idle_coordinator, "ray", ray)
    yield idle_coordinator.IdleCoordinator(), ray


def test_a_job_takes_the_coordinator_of_one_that_was_like_it(idle: Any) -> None:
    waiting, ray = idle
    first = Processes(Process("first"), 100.0)
    waiting.put(first, ("rayflink", 2), 60)
    assert waiting.take(("rayflink", 2), changed=99.0) is first
    assert waiting.take(("rayflink", 2), changed=99.0) is None, "none waits any more"
    assert ray.killed == []


def test_a_coordinator_that_no_job_can_have_ends(idle: Any) -> None:
    waiting, ray = idle
    other, late, lost, old, first = (Process(name) for name in ("other", "late", "lost", "old", "first"))
    ray.lost = {"lost"}
    for process, likeness, timeout_s, since in ((other, 1, 60, 9.0), (late, 2, -1, 9.0), (lost, 2, 60, 9.0),
                                                (old, 2, 60, 7.0)):  # fmt: skip
        waiting.put(Processes(process, since), likeness, timeout_s)
        assert waiting.take(2, changed=8.0) is None
    waiting.put(Processes(first, 9.0), 2, 60)
    waiting.put(Processes(other, 9.0), 2, 60)
    assert ray.killed == [other, late, lost, old, first], "one waits at a time"


def test_a_coordinator_of_a_cluster_that_was_left_is_forgotten(idle: Any) -> None:
    waiting, ray = idle
    waiting.put(Processes(Process("first"), 9.0), 1, 60)
    ray.address = ""
    assert waiting.take(1, changed=0.0) is None and ray.killed == []


def slots_of(job: Job, idle: Any, monkeypatch: pytest.MonkeyPatch, ray: FakeRay) -> tuple[Any, list[Any]]:
    from rayflink.actors.on_ray import ray_slots
    from rayflink.actors.on_ray.slots import idle_slots

    posted: list[Any] = []
    for module in (idle_slots, ray_slots):
        monkeypatch.setattr(module, "ray", ray)
    monkeypatch.setattr(idle_slots, "remove_placement_group", ray.killed.append)
    monkeypatch.setattr(ray_slots, "remove_folders_on", lambda *given: [])
    monkeypatch.setattr(ray_slots, "NodeWatch", lambda in_use, lost: None)
    monkeypatch.setattr(ray_slots.SlotProcesses, "_new_group", lambda self: SimpleNamespace(wait=lambda seconds: True))
    job.master.graph.configuration[options.IDLE_PROCESS_TIMEOUT.key] = "1 min"
    leader = ray_slots.Leader("the coordinator", "leader")
    return ray_slots.SlotProcesses(job.master, Submission(b"program"), leader, posted.append, idle=idle), posted


def kept_slots(monkeypatch: pytest.MonkeyPatch, ray: FakeRay) -> tuple[Any, list[Process]]:
    """What a finished job leaves: its slots, and their processes."""
    job = Job(three_vertices())
    slots, _ = slots_of(job, None, monkeypatch, ray)
    wanted = required_slots(job.master.graph)
    slots.request(wanted)
    processes = [Process(str(slot)) for slot in wanted]
    slots._slots = dict(zip(wanted, processes, strict=True))
    return slots.keep(), processes


def test_the_next_job_has_the_slots_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = FakeRay()
    kept, processes = kept_slots(monkeypatch, ray)
    job = Job(three_vertices())
    slots, posted = slots_of(job, kept, monkeypatch, ray)
    slots.request(required_slots(job.master.graph))
    assert posted == [SlotsGranted()] and slots.granted and ray.killed == []
    assert list(slots._slots.values()) == processes
    assigned = [assignment for process in processes for assignment in process.assigned]
    assert [(each.job_id, each.slot, each.leader_id) for each in assigned] == [
        (job.master.graph.id, slot, "leader") for slot in required_slots(job.master.graph)
    ]


@pytest.mark.parametrize("case", ["a process is lost", "fewer slots"])
def test_slots_that_do_not_fit_are_released(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = FakeRay()
    kept, processes = kept_slots(monkeypatch, ray)
    job = Job(three_vertices())
    slots, _ = slots_of(job, kept, monkeypatch, ray)
    wanted = required_slots(job.master.graph)
    if case == "a process is lost":
        ray.lost = {processes[1].name}
    else:
        wanted = wanted[:1]
    slots.request(wanted)
    assert ray.killed == [*processes, kept.group] and slots._slots == {}


def test_slots_that_have_lost_a_process_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job(three_vertices())
    slots, _ = slots_of(job, None, monkeypatch, FakeRay())
    slots.request(required_slots(job.master.graph))
    assert slots.keep() is None, "no process was made"


def test_a_coordinator_waits_until_its_successor_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    from rayflink.actors.on_ray.ray_coordinator import Coordinator

    released: list[str] = []
    first: Any = Coordinator()
    first._idle, first._idle_s = SimpleNamespace(release=lambda: released.append("slots")), 60.0
    waiting = threading.Thread(target=first._linger)
    waiting.start()
    second: Any = first.successor()
    waiting.join(10)
    assert not waiting.is_alive() and released == []
    assert second._idle is not None and first._idle is None and not second._is_first


def test_a_coordinator_without_a_successor_releases_its_slots_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    from rayflink.actors.on_ray import ray_coordinator

    monkeypatch.setattr(ray_coordinator, "LINGER_S", 0.0)
    monkeypatch.setattr(ray_coordinator, "IDLE_MARGIN_S", 0.0)
    released: list[str] = []
    coordinator: Any = ray_coordinator.Coordinator()
    coordinator._idle, coordinator._idle_s = SimpleNamespace(release=lambda: released.append("slots")), 0.0
    coordinator._linger()
    assert released == ["slots"] and not coordinator._succeeded.is_set()
