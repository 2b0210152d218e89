"""Statuses of jobs in the control service of a cluster, by a control service that is a dictionary."""

from __future__ import annotations

import math
import threading
from typing import Any

import pytest
from ray.exceptions import RpcError

from rayflink.actors.on_ray.driver import ray_job_board
from rayflink.actors.on_ray.driver.ray_job_board import JobBoard, JobEntry, StatusPublisher

STATUS = {"jid": "a" * 32, "name": "counts", "state": "RUNNING"}


class Service(dict[tuple[bytes, bytes], bytes]):
    """Key and value of a control service, per namespace."""

    def internal_kv_put(self, key: bytes, value: bytes, overwrite: bool, namespace: bytes, timeout: int) -> None:
        assert overwrite
        self[namespace, key] = value

    def internal_kv_multi_get(self, keys: list[bytes], namespace: bytes, timeout: int) -> dict[bytes, bytes]:
        return {key: self[namespace, key] for key in keys if (namespace, key) in self}

    def internal_kv_keys(self, prefix: bytes, namespace: bytes, timeout: int) -> list[bytes]:
        return [key for space, key in self if space == namespace and key.startswith(prefix)]

    def internal_kv_del(self, key: bytes, by_prefix: bool, namespace: bytes, timeout: int) -> None:
        assert not by_prefix
        self.pop((namespace, key), None)


def test_what_is_published_is_read_until_it_is_removed():
    board = JobBoard(Service(), "rayflink")
    other = {**STATUS, "jid": "b" * 32}
    for status in (other, STATUS, {**STATUS, "state": "CANCELLING"}):
        board.publish(status, 1_000, 2_000)
    assert board.statuses(5_999) == [{**STATUS, "state": "CANCELLING"}, other]
    board.remove(STATUS["jid"])
    assert board.statuses(5_999) == [other]


def test_jobs_of_other_namespaces_are_not_seen():
    service = Service()
    JobBoard(service, "mine").publish(STATUS, 0, 0)
    assert JobBoard(service, "yours").statuses(0) == []


def test_an_entry_that_should_have_been_replaced_is_not_believed():
    board = JobBoard(Service(), "rayflink")
    board.publish(STATUS, 1_000, 2_000)
    assert board.statuses(6_000) == [STATUS]
    assert board.statuses(6_001) is None


def test_what_has_not_changed_is_decoded_once():
    board = JobBoard(Service(), "rayflink")
    other = {**STATUS, "jid": "b" * 32}
    for status in (STATUS, other):
        board.publish(status, 1_000, 2_000, {"counts": {"completed": 1}})
    first = list(board.entries())
    assert [entry.checkpoints for entry in first] == 2 * [{"counts": {"completed": 1}}]
    board.publish({**other, "state": "FINISHED"}, 1_500, 2_500)
    again = list(board.entries())
    assert again[0] is first[0] and again[1] == JobEntry({**other, "state": "FINISHED"}, None, 2_500)


def test_a_metric_without_a_word_in_json_is_read():
    board = JobBoard(Service(), "rayflink")
    board.publish({**STATUS, "metrics": {"rate": math.inf}}, 1_000, 2_000)
    assert board.statuses(1_000) == [{**STATUS, "metrics": {"rate": math.inf}}]


@pytest.fixture
def publisher(monkeypatch):
    service = Service()
    monkeypatch.setattr(JobBoard, "of_cluster", lambda namespace: JobBoard(service, namespace))
    return service, lambda: StatusPublisher("rayflink", lambda: STATUS, lambda: None)


def test_a_job_is_published_from_its_beginning_to_its_end(publisher):
    service, publish = publisher
    published = publish()
    assert len(service) == 1
    published.close(STATUS["jid"])
    assert not service
    published._publish()
    assert not service, "nothing comes after the end"


def test_a_change_is_published_before_its_time(publisher, monkeypatch):
    service, publish = publisher
    puts = threading.Semaphore(0)
    monkeypatch.setattr(service, "internal_kv_put", lambda *given: puts.release(), raising=False)
    monkeypatch.setattr(ray_job_board, "PUBLISH_EVERY_S", 3600.0)
    published = publish()
    assert puts.acquire(timeout=10) and puts.acquire(timeout=10), "that of the caller, and the first of the thread"
    published.changed()
    assert puts.acquire(timeout=10), "an hour early"
    published.close(STATUS["jid"])


def test_a_control_service_that_does_not_answer_is_no_failure_of_the_job(publisher, monkeypatch):
    service, publish = publisher

    def refuse(*given: Any) -> None:
        raise RpcError("gone")

    monkeypatch.setattr(service, "internal_kv_put", refuse)
    monkeypatch.setattr(service, "internal_kv_del", refuse)
    publish().close(STATUS["jid"])


def test_a_status_that_takes_long_is_published_less_often():
    assert ray_job_board._pause_s(0.01) == 2.0
    assert ray_job_board._pause_s(0.5) == 10.0
