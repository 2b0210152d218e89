"""Each protection of the runtime, taken away, makes the simulation fail: the tests would see it missing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest

from rayflink.actors.exchange.credits import ChannelCredit
from rayflink.actors.exchange.endpoint import ExchangeEndpoint
from rayflink.actors.exchange.gate import InputGate
from rayflink.actors.exchange.links import Incoming
from rayflink.actors.messages.states import JobStatus
from rayflink.common.records.batches import Element, Watermark
from rayflink.operators.keyed.keyed_operator import KeyedOperator
from rayflink.testing import (
    DelayCalls,
    DuplicateCalls,
    Fault,
    KillTask,
    LoseCall,
    ReorderCalls,
    StaleAttempt,
    simulate,
)
from tests.golden_jobs import GOLDEN_JOBS

pytestmark = pytest.mark.slow

JOBS = {job.name: job for job in GOLDEN_JOBS}
SEEDS = range(12)


def failures(name: str, faults: Sequence[Fault], seeds: Iterable[int] = SEEDS) -> Iterator[str]:
    """What goes wrong in the runs of a golden job, a text for each seed that fails."""
    job = JOBS[name]
    graph = job.graph()
    for seed in seeds:
        try:
            story = simulate(graph, seed, faults)
            assert story.result is not None
            job.check(story.result)
        except AssertionError as error:
            yield str(error)


def unordered(self: Incoming, envelope: Any, now_ms: int) -> list[Any]:
    return [envelope]


@pytest.mark.parametrize("fault", [ReorderCalls(), DuplicateCalls(chance=1.0)])
def test_without_sequence_numbers_of_calls_a_reordered_or_repeated_call_is_seen(monkeypatch, fault):
    assert not any(failures("word count", [fault, DelayCalls()]))
    monkeypatch.setattr(Incoming, "accept", unordered)
    assert any(failures("word count", [fault, DelayCalls()]))


def test_without_any_sequence_number_a_reordered_channel_gives_wrong_results(monkeypatch):
    receive = InputGate.receive

    def without_check(self: InputGate, frame: Any, *more: Any) -> Any:
        if 0 <= frame.receiver < len(self.channels):
            self.channels[frame.receiver].next_sequence = frame.sequence
        return receive(self, frame, *more)

    monkeypatch.setattr(Incoming, "accept", unordered)
    monkeypatch.setattr(InputGate, "receive", without_check)
    assert any(failures("ordered word count", [ReorderCalls(), DelayCalls()]))


def test_a_duplicate_call_that_is_not_recognised_is_seen(monkeypatch):
    accept = Incoming.accept

    def forgetful(self: Incoming, envelope: Any, now_ms: int) -> list[Any]:
        repeated = self.repeated
        ready = accept(self, envelope, now_ms)
        return [envelope] if self.repeated > repeated else ready

    assert not any(failures("word count", [DuplicateCalls(chance=1.0)]))
    monkeypatch.setattr(Incoming, "accept", forgetful)
    assert any(failures("word count", [DuplicateCalls(chance=1.0)]))


def test_a_stale_attempt_that_is_not_recognised_is_seen(monkeypatch):
    take = ExchangeEndpoint.take

    def credulous(self: ExchangeEndpoint, envelope: Any, now_ms: int) -> None:
        me, self._me = self._me, envelope.receiver
        take(self, envelope, now_ms)
        self._me = me

    assert not any(failures("word count", [StaleAttempt(chance=1.0)], range(3)))
    monkeypatch.setattr(ExchangeEndpoint, "take", credulous)
    assert any(failures("word count", [StaleAttempt(chance=1.0)], range(3)))


def test_a_credit_that_is_never_announced_hangs_the_job_and_the_hang_is_explained(monkeypatch):
    announce = ChannelCredit.announce

    def forgetful(self: ChannelCredit) -> int:
        announce(self)
        return 0

    monkeypatch.setattr(ChannelCredit, "announce", forgetful)
    told = next(failures("rebalance 2 to 3", []), "")
    assert re.match(r"seed \d+: no progress for 240000 ms of virtual time; the job is RUNNING", told), told
    assert "waits for input on channels [" in told
    assert "the last moves:" in told


def test_a_watermark_that_is_passed_on_before_its_timers_is_seen(monkeypatch):
    def too_early(self: KeyedOperator, watermark: Watermark) -> Iterable[Element]:
        yield watermark
        if watermark.timestamp > self.watermark:
            self.watermark = watermark.timestamp
            yield from self.on_event_time(watermark.timestamp)

    assert not any(failures("window of windows", [], range(3)))
    monkeypatch.setattr(KeyedOperator, "process_watermark", too_early)
    assert any(failures("window of windows", [], range(3)))


def test_a_lost_call_with_later_ones_behind_it_ends_the_job_with_a_gap():
    told = list(failures("skew", [LoseCall(nth=3, carrying="BufferResponse", receiver="Map")], range(6)))
    assert len(told) == 6
    assert any(re.search(r"is FAILED: MessageGap: message .* is missing, waited 30\d\d\d ms", text) for text in told), (
        told
    )


def test_a_lost_call_that_nothing_follows_is_a_hang_that_is_explained():
    lost = [LoseCall(nth=0, carrying="AddCredit"), LoseCall(nth=0, carrying="PartitionRequest")]
    told = list(failures("one record", lost, range(3)))
    assert told
    assert all("no progress for 240000 ms" in text or "is missing" in text for text in told)


def test_a_killed_task_ends_the_job_and_names_it():
    graph = JOBS["word count"].graph()
    story = simulate(graph, 1, [KillTask("Collect (2/2)", move=40)])
    if story.status is not JobStatus.FAILED:
        raise AssertionError(story.describe("the task was not killed"))
    assert story.failure == (
        "lost task Keyed Aggregation -> Sink: Collect (2/2) (attempt #0): the simulation killed it"
    )
