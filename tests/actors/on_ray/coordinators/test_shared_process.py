"""Coordinators that share a process: who has a place in it, which calls reach whom, and how one of them ends."""

from __future__ import annotations

import logging
import pickle
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rayflink.actors.checkpoints.storage_work import StorageWork
from rayflink.actors.job.submission import Stored
from rayflink.cluster.runners.shared_settings import shared_settings
from rayflink.common.text_output.logs import bound, identity
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.launch.remote_submission import RemoteSubmission
from tests.cluster import watching

JOB, OTHER = "0" * 32, "1" * 32
STORED = Stored("/checkpoints", {})
pytestmark = pytest.mark.slow  # imports Ray


class Client:
    """The key-value store of a control service."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}

    def internal_kv_put(self, key: bytes, value: bytes, overwrite: bool, namespace: bytes, timeout: int) -> int:
        if key in self.values and not overwrite:
            return 0
        self.values[key] = value
        return 1

    def internal_kv_get(self, key: bytes, namespace: bytes, timeout: int) -> bytes | None:
        return self.values.get(key)

    def internal_kv_del(self, key: bytes, by_prefix: bool, namespace: bytes, timeout: int) -> int:
        return int(self.values.pop(key, None) is not None)

    def internal_kv_keys(self, prefix: bytes, namespace: bytes, timeout: int) -> list[bytes]:
        return [key for key in self.values if key.startswith(prefix)]

    def internal_kv_multi_get(self, keys: list[bytes], namespace: bytes, timeout: int) -> dict[bytes, bytes]:
        return {key: self.values[key] for key in keys if key in self.values}


discarded: list[str] = []


class Inner:
    """A coordinator whose calls are noted."""

    fails = False
    ends = True

    def __init__(self, stored: Stored, is_first: bool, home: Any) -> None:
        self.stored, self.home = stored, home
        self.begin = threading.Event()

    def start(self, submission: Any) -> None:
        if self.fails:
            raise ModuleNotFoundError("No module named 'mine'")
        self.home.log_goes_to(SimpleNamespace(close=lambda: None))
        self.home.answer()

    def come_back(self, job_id: str) -> None:
        self.start(job_id)

    def discard(self) -> None:
        discarded.append(self.home.place.job_id)

    def status(self) -> str:
        return f"status of {self.home.place.job_id}"

    def abandon(self, within_s: float) -> bool:
        return self.ends


@pytest.fixture
def places() -> Any:
    from rayflink.actors.on_ray.coordinators.job_places import JobPlaces

    return JobPlaces(Client(), "rayflink")


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, places: Any) -> Iterator[Any]:
    from rayflink.actors.on_ray.coordinators import coordinator_host

    context = SimpleNamespace(current_actor="me", was_current_actor_reconstructed=False)
    monkeypatch.setattr(coordinator_host.ray, "get_runtime_context", lambda: context)
    monkeypatch.setattr(coordinator_host.JobPlaces, "of_cluster", lambda namespace: places)
    monkeypatch.setattr(coordinator_host.CoordinatorHost, "_end_when_idle", lambda self: None)
    monkeypatch.setattr(coordinator_host, "Coordinator", Inner)
    present, ended = ("host", "host/slots/1", "host2/slots/1", f"{JOB}/default/0/1"), []
    monkeypatch.setattr(
        coordinator_host, "named", lambda prefix, namespace: [name for name in present if name.startswith(prefix)]
    )
    monkeypatch.setattr(coordinator_host, "end_named", lambda names, namespace: ended.extend(names))
    logger = logging.getLogger("rayflink")
    handlers, last = list(logger.handlers), logging.lastResort
    made = coordinator_host.CoordinatorHost
    yield SimpleNamespace(make=lambda: made("host", "rayflink"), context=context, ended=ended)
    logger.handlers, logging.lastResort = handlers, last


def placed(places: Any, job_id: str = JOB, number: int = 1, host: str = "host") -> str:
    from rayflink.actors.on_ray.coordinators.job_places import JobPlace

    token = f"{job_id}/{number}"
    assert places.claim(JobPlace(job_id, token, host, STORED))
    return token


def gone() -> type[Exception]:
    from rayflink.actors.on_ray.coordinators.hosted_coordinator import CoordinatorGone

    return CoordinatorGone


def test_a_job_has_one_place_until_it_is_freed_by_the_start_that_has_it(places: Any) -> None:
    from rayflink.actors.on_ray.coordinators.job_places import JobPlace

    token = placed(places)
    second = JobPlace(JOB, f"{JOB}/2", "elsewhere", STORED)
    assert not places.claim(second)
    places.free(second.token)
    assert places.find(JOB).token == token
    other = placed(places, OTHER)
    assert [place.token for place in places.all()] == [token, other]
    places.free(token)
    assert places.find(JOB) is None and places.claim(second)


def test_calls_go_to_the_process_with_the_token_first_and_travel_to_tasks() -> None:
    from rayflink.actors.on_ray.coordinators import hosted_coordinator

    made: list[tuple[Any, ...]] = []
    names = hosted_coordinator.CALL_NAMES
    process = SimpleNamespace(**{name: SimpleNamespace(remote=lambda *given: made.append(given)) for name in names})
    coordinator = hosted_coordinator.HostedCoordinator(process, "rayflink", "token")
    for name in sorted(names):
        getattr(coordinator, name).remote(name, 1)
    assert made == [("token", name, 1) for name in sorted(names)] and {"start", "report", "withdraw"} <= names
    assert not hasattr(coordinator, "__ray_ready__") and not hasattr(coordinator, "leave")
    there = pickle.loads(pickle.dumps(replace(coordinator, host="actor")))
    assert there == coordinator and there != replace(coordinator, token="another")


def test_every_call_of_a_coordinator_is_a_call_of_the_process(host: Any) -> None:
    from rayflink.actors.on_ray.coordinator_actor import CALLS
    from rayflink.actors.on_ray.coordinators import coordinator_host

    for group, calls in CALLS.items():
        for name in calls.names:
            method = getattr(coordinator_host.CoordinatorHost, name)
            assert (method.__name__, method.__ray_concurrency_group__) == (name, group)
            assert group in coordinator_host.THREADS
    assert coordinator_host.host_class() is not None


def test_each_start_reaches_its_own_coordinator_once(host: Any, places: Any) -> None:
    process, first, second = host.make(), placed(places), placed(places, OTHER)
    process.start(first, "submission")
    process.start(second, "submission")
    assert (process.status(first), process.status(second)) == (f"status of {JOB}", f"status of {OTHER}")
    assert process.expect() == 2
    for token in (first, f"{JOB}/2", f"{'2' * 32}/1"):  # it runs, has another place, has none
        with pytest.raises(gone()):
            process.start(token, "submission")
    with pytest.raises(gone()):
        process.status(f"{JOB}/2")


def test_a_start_that_fails_leaves_no_place_and_no_job(
    host: Any, places: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    process, token = host.make(), placed(places)
    monkeypatch.setattr(Inner, "fails", True)
    with pytest.raises(ModuleNotFoundError):
        process.start(token, "submission")
    assert places.find(JOB) is None and process.expect() == 0 and discarded.pop() == JOB


def test_a_job_that_is_ended_while_it_starts_ends_when_it_has_started(
    host: Any, places: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    process, token, gate, ended = host.make(), placed(places), threading.Event(), []
    start = Inner.start

    def late(self: Inner, submission: Any) -> None:
        gate.wait(10)
        start(self, submission)

    monkeypatch.setattr(Inner, "start", late)
    monkeypatch.setattr(Inner, "abandon", lambda self, within_s: ended.append(within_s) or True)
    gone_at_start: list[BaseException] = []

    def begin() -> None:
        try:
            process.start(token, "submission")
        except gone() as error:
            gone_at_start.append(error)

    starting, ending = threading.Thread(target=begin), threading.Thread(target=process.end, args=(token,))
    starting.start()
    assert watching.eventually(lambda: process.expect() == 1, within_s=10)
    ending.start()
    assert watching.eventually(lambda: process.withdraw(token), within_s=10), "it is refused"
    assert not ended
    gate.set()
    starting.join(10)
    ending.join(10)
    assert ended and gone_at_start and places.find(JOB) is None and process.expect() == 0


@pytest.mark.parametrize("has_arrived", [False, True])
def test_a_start_is_withdrawn_unless_it_has_arrived(host: Any, places: Any, has_arrived: bool) -> None:
    process, token = host.make(), placed(places)
    if has_arrived:
        process.start(token, "submission")
    assert process.withdraw(token) == (not has_arrived)
    if not has_arrived:
        with pytest.raises(gone()):
            process.start(token, "submission")


def test_a_coordinator_that_is_ended_has_no_place_and_answers_no_more(host: Any, places: Any) -> None:
    process, token, other = host.make(), placed(places), placed(places, OTHER)
    process.start(token, "submission")
    process.start(other, "submission")
    assert process.end(token) and places.find(JOB) is None
    with pytest.raises(gone()):
        process.status(token)
    assert process.status(other) == f"status of {OTHER}"
    assert process.end(f"{JOB}/7"), "it never came"


def test_a_coordinator_that_does_not_end_keeps_its_place(
    host: Any, places: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    process, token = host.make(), placed(places)
    process.start(token, "submission")
    monkeypatch.setattr(Inner, "ends", False)
    assert not process.end(token) and places.find(JOB).token == token


def test_a_coordinator_that_has_not_begun_is_busy(host: Any, places: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from rayflink.actors.on_ray.coordinators.hosted_coordinator import CoordinatorBusy

    process, token = host.make(), placed(places)
    monkeypatch.setattr(Inner, "start", lambda self, submission: None)
    process.start(token, "submission")
    with pytest.raises(CoordinatorBusy):
        process.status(token)


def test_a_process_that_was_lost_comes_back_with_the_jobs_that_have_a_place_there(host: Any, places: Any) -> None:
    token, other = placed(places), placed(places, OTHER, host="another process")
    host.context.was_current_actor_reconstructed = True
    process = host.make()
    for thread in threading.enumerate():
        if thread.name == "come back":
            thread.join(10)
    assert process.status(token) == f"status of {JOB}" and process.expect() == 1
    assert host.ended == ["host/slots/1"], "the shared slots of the process that was lost"
    with pytest.raises(gone()):
        process.status(other)


def test_a_coordinator_that_does_not_end_takes_along_the_slots_that_jobs_share(
    places: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ray.exceptions import GetTimeoutError

    from rayflink.actors.on_ray.coordinators import find_coordinator
    from rayflink.actors.on_ray.coordinators.hosted_coordinator import HostedCoordinator

    token, steps = placed(places), []

    def get(call: object, timeout: float) -> None:
        raise GetTimeoutError

    ray = SimpleNamespace(get=get, kill=lambda actor, no_restart: steps.append(("killed", actor.name, no_restart)))
    monkeypatch.setattr(find_coordinator, "ray", ray)
    monkeypatch.setattr(find_coordinator.JobPlaces, "of_cluster", lambda namespace: places)
    monkeypatch.setattr(find_coordinator, "named", lambda prefix, namespace: [f"{prefix}slots/1"])
    monkeypatch.setattr(find_coordinator, "end_named", lambda names, namespace: steps.append(("ended", *names)))
    host = SimpleNamespace(name="host", end=SimpleNamespace(remote=lambda token: token))
    find_coordinator.end_coordinator(HostedCoordinator(host, "rayflink", token))
    assert steps == [("killed", "host", False), ("ended", "host/slots/1")] and places.find(JOB) is None


def test_a_job_that_cannot_come_back_leaves_its_place(
    host: Any, places: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    placed(places)
    monkeypatch.setattr(Inner, "fails", True)
    host.context.was_current_actor_reconstructed = True
    host.make()
    for thread in threading.enumerate():
        if thread.name == "come back":
            thread.join(10)
    assert places.find(JOB) is None


def test_lines_go_to_the_log_of_the_job_that_writes_them(tmp_path: Path) -> None:
    from rayflink.actors.on_ray.task_log import JobLogs, TaskLog

    logger = logging.getLogger("rayflink")
    handlers, last = list(logger.handlers), logging.lastResort
    try:
        logs = JobLogs()
        earlier, own, other = (TaskLog(tmp_path / job_id, "coordinator") for job_id in (JOB, JOB, OTHER))
        for job_id, task_log in ((JOB, earlier), (JOB, own), (OTHER, other)):
            logs.add(job_id, task_log)
        logs.remove(JOB, earlier)
        with bound(job=JOB):
            logger.warning("of one")
        logger.warning("of none")
        logs.remove(OTHER, other)
        logger.warning("after its end")
        logs.remove(JOB, own)
    finally:
        logger.handlers, logging.lastResort = handlers, last
    texts = [(tmp_path / job_id / "coordinator.0.log").read_text() for job_id in (JOB, OTHER)]
    assert ["of one" in text for text in texts] == [True, False]
    assert ["of none" in text for text in texts] == [True, True]
    assert ["after its end" in text for text in texts] == [True, False]


def test_lines_of_work_on_files_are_of_the_job_that_has_asked_for_it() -> None:
    work, seen = StorageWork(), []
    with bound(job=JOB):
        work.submit(lambda: seen.append(identity()))
    work.submit(lambda: seen.append(identity()))
    work.close()
    assert work.end(10) and seen == [{"job": JOB}, {}]


def test_work_on_files_that_is_dropped_is_not_done() -> None:
    work, begun, gate, done = StorageWork(), threading.Event(), threading.Event(), []

    def wait() -> None:
        begun.set()
        gate.wait(10)

    work.submit(wait)
    work.submit(done.append, 1)
    assert begun.wait(10) and not work.abandon(0.01), "a piece is being done"
    gate.set()
    assert work.abandon(10) and not done
    work.close()
    assert work.end(10)


class OfMain:
    """A class that stands for one of a program's own script."""


OfMain.__module__ = "__main__"


def submission(tmp_path: Path, owner_timeout_ms: int | None = None, value: Any = 1, **config: Any) -> RemoteSubmission:
    env = StreamExecutionEnvironment({"execution.checkpointing.dir": str(tmp_path), **config})
    env.from_collection([1]).map(lambda each: (each, value)).add_sink(lambda each: None)
    return RemoteSubmission.decode(RemoteSubmission.of(env.get_job_graph(), (), owner_timeout_ms).encode())


def test_jobs_share_a_process_that_nobody_follows_and_that_want_the_same_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = shared_settings(submission(tmp_path))
    assert shared is not None and shared == shared_settings(submission(tmp_path))
    assert shared_settings(submission(tmp_path, **{"rayflink.log.level": "DEBUG"})) not in (shared, None)
    assert shared_settings(submission(tmp_path, owner_timeout_ms=10_000)) is None
    assert shared_settings(submission(tmp_path, **{"rayflink.ray.share-coordinators": False})) is None
    inner = replace(submission(tmp_path).submission, defaults={"rayflink.ray.share-coordinators": "false"})
    assert shared_settings(replace(submission(tmp_path), submission=inner)) is None
    monkeypatch.setattr("__main__.OfMain", OfMain, raising=False)
    assert shared_settings(submission(tmp_path, value=OfMain)) is None
