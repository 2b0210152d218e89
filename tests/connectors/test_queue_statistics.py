"""Queues between a thread of a connector and its reader say how much waits in them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rayflink.common.records.batches import RowBatch
from rayflink.connectors.http.http_source import WebhookQueue, WebhookStatistics
from rayflink.connectors.message_logs.fetch_queue import FetchQueue, FetchStatistics


def test_the_runs_of_each_split_that_wait_are_counted_with_their_messages() -> None:
    queue: FetchQueue[Any] = FetchQueue()
    queue.add("a")
    queue.add("b")
    for split_id, messages in (("a", [1, 2]), ("a", [3]), ("b", []), ("gone", [4])):
        queue.put(SimpleNamespace(split_id=split_id, messages=messages))
    assert queue.statistics() == FetchStatistics({"a": 2, "b": 1}, messages=3)
    queue.take(paused=["b"])
    queue.remove("b")
    assert queue.statistics() == FetchStatistics({"a": 1}, messages=1)


def test_webhooks_are_counted_until_their_checkpoint() -> None:
    queue = WebhookQueue(most_waiting=3, waits_for_checkpoint=True)
    for number in range(4):  # there is no room for the last one
        queue.add(RowBatch([number]))
    queue.take(), queue.take()
    assert queue.statistics() == WebhookStatistics(waiting=1, unsafe=2, taken=2)
    queue.confirm(1)
    assert queue.statistics() == WebhookStatistics(waiting=1, unsafe=1, taken=2)
