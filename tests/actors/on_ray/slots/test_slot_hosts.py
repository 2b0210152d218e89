"""Which process a slot gets, and when processes begin and end, against a simulated Ray."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from rayflink.actors.messages.scheduling import Slot
from rayflink.actors.on_ray.slots.deployment_check import SlotAssignment

pytestmark = pytest.mark.slow  # imports Ray


class Process:
    """A shared process as its callers see it; `closes` is the answer to a call that closes a slot."""

    def __init__(self, name: str, node: str) -> None:
        self.name, self.node = name, node
        self.closes: object = True
        self.starts, self.can_be_killed = False, True
        self.opened: list[str] = []
        self.life: Future[None] = Future()
        self.exist = SimpleNamespace(remote=lambda: SimpleNamespace(future=lambda: self.life))
        self.__ray_ready__ = SimpleNamespace(remote=lambda: self)
        self.open = SimpleNamespace(remote=lambda token, assignment: self.opened.append(token))
        self.close = SimpleNamespace(remote=lambda token, within_s: (self, token))


class FakeRay:
    """Makes processes, answers their calls, and ends them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from rayflink.actors.on_ray.slots import slot_hosts

        self.made: list[Process] = []
        self.killed: list[Process] = []
        monkeypatch.setattr(slot_hosts, "ray", self)
        monkeypatch.setattr(slot_hosts, "host_class", lambda slots, tasks: self)
        monkeypatch.setattr(slot_hosts, "NodeAffinitySchedulingStrategy", lambda node, soft: node)
        monkeypatch.setattr(slot_hosts.SlotHosts, "_watch", lambda self: None)

    def options(self, name: str, namespace: str, scheduling_strategy: str) -> Any:
        def make(slots: int) -> Process:
            self.made.append(Process(name, scheduling_strategy))
            return self.made[-1]

        return SimpleNamespace(remote=make)

    def wait(self, calls: list[Any], num_returns: int = 1, timeout: float = 0) -> tuple[list[Any], list[Any]]:
        assert num_returns == len(calls)
        pending = [call for call in calls if isinstance(call, Process) and call.starts]
        return [call for call in calls if call not in pending], pending

    def get(self, call: tuple[Process, str], timeout: float) -> object:
        answer = call[0].closes
        if isinstance(answer, Exception):
            raise answer
        return answer

    def kill(self, actor: Process) -> None:
        if not actor.can_be_killed:
            raise ConnectionError("the control service is away")
        self.killed.append(actor)


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRay]:
    yield FakeRay(monkeypatch)


def assignment(job_id: str) -> SlotAssignment:
    return SlotAssignment(job_id, Slot("default", 0), "leader")


def test_slots_fill_a_process_before_another_is_made_on_each_node(ray: FakeRay) -> None:
    from rayflink.actors.on_ray.slots.slot_hosts import HostKind, SlotHosts

    hosts, kind = SlotHosts("coordinators/1"), HostKind.of(2, 3)
    assert hosts.missing(kind, ["n1", "n1", "n1", "n2"]) == 3
    nodes = {"a": "n1", "b": "n1", "c": "n1", "d": "n2"}
    taken = [hosts.take(kind, node, assignment(job)) for job, node in nodes.items()]
    assert [process.node for process in ray.made] == ["n1", "n1", "n2"]
    assert [len(process.opened) for process in ray.made] == [2, 1, 1]
    assert len({slot.token for slot in taken}) == 4
    assert all(process.name.startswith("coordinators/1/slots/") for process in ray.made)
    assert hosts.missing(kind, ["n1"]) == 0 and hosts.missing(kind, ["n1", "n1"]) == 1
    assert hosts.missing(HostKind.of(2, 9), ["n1"]) == 1, "its slots run more tasks"


def test_a_process_that_a_slot_has_left_is_used_again_and_ends_when_it_is_idle(ray: FakeRay) -> None:
    from rayflink.actors.on_ray.slots.slot_hosts import IDLE_S, HostKind, SlotHosts

    hosts, kind = SlotHosts(), HostKind.of(2, 1)
    slot = hosts.take(kind, "n1", assignment("a"))
    assert ray.made[0].name.startswith("a/slots/"), "as the remains of the job are found"
    hosts.end([slot])
    again = hosts.take(kind, "n1", assignment("b"))
    assert len(ray.made) == 1
    hosts.tick(1e12)
    assert ray.killed == []
    hosts.end([again])
    hosts.tick(hosts._hosts[0].idle_since + IDLE_S - 1)
    assert ray.killed == []
    hosts.tick(hosts._hosts[0].idle_since + IDLE_S + 1)
    assert ray.killed == ray.made
    hosts.take(kind, "n1", assignment("c"))
    assert len(ray.made) == 2


@pytest.mark.parametrize("case", ["tasks do not end", "dead", "cannot be reached"])
def test_a_process_in_which_a_slot_does_not_end_ends(ray: FakeRay, case: str) -> None:
    """Also one that cannot be reached, as its tasks may go on."""
    from ray.exceptions import ActorDiedError, ActorUnavailableError

    from rayflink.actors.on_ray.slots.slot_hosts import HostKind, SlotHosts

    hosts, kind = SlotHosts(), HostKind.of(4, 1)
    slot, other = (hosts.take(kind, "n1", assignment(job)) for job in "ab")
    [process] = ray.made
    away = ActorUnavailableError("away", None)
    process.closes = {"tasks do not end": False, "dead": ActorDiedError(), "cannot be reached": away}[case]
    hosts.end([slot])
    assert ray.killed == [process] and not hosts.has(other)
    hosts.take(kind, "n1", assignment("c"))
    assert len(ray.made) == 2, "nobody gets a slot in it any more"
    hosts.end([other])  # its job learns of the end, and gives the slot up


def test_a_process_that_does_not_answer_yet_ends_when_it_never_does(ray: FakeRay) -> None:
    """It may be starting, with slots of other jobs; its place is not given to others meanwhile."""
    from ray.exceptions import GetTimeoutError

    from rayflink.actors.on_ray.slots.slot_hosts import ANSWERS_WITHIN_S, HostKind, SlotHosts

    hosts, kind, now = SlotHosts(), HostKind.of(1, 1), time.monotonic()
    slot, other = (hosts.take(kind, "n1", assignment(job)) for job in "ab")
    for process in ray.made:
        process.closes, process.starts = GetTimeoutError(), True
    hosts.end([slot, other])
    assert ray.killed == [] and hosts.missing(kind, ["n1"]) == 1
    hosts.tick(now + 1)
    ray.made[0].closes = True
    hosts.tick(now + 2)
    assert ray.killed == [] and hosts.missing(kind, ["n1"]) == 0
    hosts.tick(now + ANSWERS_WITHIN_S + 1)
    assert ray.made[1] in ray.killed and not hosts.has(other)


def test_a_process_that_has_run_tasks_and_does_not_answer_ends_soon(ray: FakeRay) -> None:
    from ray.exceptions import GetTimeoutError

    from rayflink.actors.on_ray.slots import slot_hosts
    from rayflink.actors.on_ray.slots.slot_hosts import HostKind, SlotHosts

    hosts = SlotHosts()
    slot = hosts.take(HostKind.of(1, 1), "n1", assignment("a"))
    ray.made[0].closes = GetTimeoutError()
    later = time.monotonic() + slot_hosts.CLOSES_WITHIN_S + slot_hosts.MARGIN_S
    hosts.close(slot)
    assert ray.killed == [], "it has its time"
    hosts.tick(later + 1)
    assert ray.killed == ray.made


def test_a_process_that_dies_without_a_task_gets_no_slots(ray: FakeRay) -> None:
    from rayflink.actors.on_ray.slots.slot_hosts import HostKind, SlotHosts

    hosts, kind = SlotHosts(), HostKind.of(4, 1)
    slot = hosts.take(kind, "n1", assignment("a"))
    hosts.end([slot])
    ray.made[0].life.set_exception(ConnectionError("it died"))
    hosts.take(kind, "n1", assignment("b"))
    assert len(ray.made) == 2


def test_a_process_that_cannot_be_ended_gets_no_slots_and_is_ended_later(ray: FakeRay) -> None:
    from rayflink.actors.on_ray.slots.slot_hosts import HostKind, SlotHosts

    hosts, kind = SlotHosts(), HostKind.of(4, 1)
    slot = hosts.take(kind, "n1", assignment("a"))
    [process] = ray.made
    process.can_be_killed = False
    hosts.end_process(slot)
    hosts.tick(time.monotonic())
    assert ray.killed == [] and not hosts.has(slot)
    process.can_be_killed = True
    hosts.tick(time.monotonic())
    hosts.tick(time.monotonic())
    assert ray.killed == [process]


def test_a_lost_process_gets_no_slots_and_is_ended(ray: FakeRay) -> None:
    from rayflink.actors.on_ray.slots.slot_hosts import HostKind, SlotHosts

    hosts, kind = SlotHosts(), HostKind.of(4, 1)
    lost = hosts.take(kind, "n1", assignment("a"))
    with hosts._lock:  # Ray's thread, which calls this, must not wait for those who wait for Ray
        hosts.lost(lost)
    other = hosts.take(kind, "n1", assignment("b"))
    assert len(ray.made) == 2 and ray.killed == [ray.made[0]]
    assert not hosts.has(lost) and hosts.has(other)


class Slots(RuleBasedStateMachine):
    """No process has more slots than it may, none that is dead is given out, and as many start as were announced."""

    def __init__(self) -> None:
        super().__init__()
        from rayflink.actors.on_ray.slots.slot_hosts import HostKind, SlotHosts

        self.patch = pytest.MonkeyPatch()
        self.ray = FakeRay(self.patch)
        self.hosts, self.kind = SlotHosts("c"), HostKind.of(3, 1)
        self.taken: list[Any] = []

    def teardown(self) -> None:
        self.patch.undo()

    @rule(nodes=st.lists(st.sampled_from(["n1", "n2"]), min_size=1, max_size=5))
    def take(self, nodes: list[str]) -> None:
        before, announced = len(self.ray.made), self.hosts.missing(self.kind, nodes)
        self.taken += [self.hosts.take(self.kind, node, assignment("j")) for node in nodes]
        assert len(self.ray.made) - before == announced

    @precondition(lambda self: self.taken)
    @rule(data=st.data(), closes=st.booleans())
    def end(self, data: st.DataObject, closes: bool) -> None:
        slot = self.taken.pop(data.draw(st.integers(0, len(self.taken) - 1)))
        slot.host.closes = closes
        self.hosts.end([slot])
        if not closes:
            self.taken = [each for each in self.taken if each.host is not slot.host]

    @rule()
    def wait(self) -> None:
        self.hosts.tick(1e12)

    @invariant()
    def each_process_has_room_for_its_slots(self) -> None:
        for process in self.ray.made:
            slots = [slot for slot in self.taken if slot.host is process]
            assert len(slots) <= 3 and not (slots and process in self.ray.killed)


TestSlots = Slots.TestCase
