"""Savepoints that a user of a simulated run requests until there is one."""

from __future__ import annotations

from collections.abc import Mapping

from rayflink.actors.messages.commands import Answer, AnswerSavepoint
from rayflink.common.options.stop_mode import StopMode

from ..story import Story

RETRY_INTERVAL_MS = 10
"""Virtual time after which a savepoint that failed is requested again."""


class RequestedSavepoints:
    """The newest request for each way to stop the job, None being not at all, and its time."""

    def __init__(self) -> None:
        self._requests: dict[StopMode | None, tuple[str, int]] = {}

    def is_taken(self, stop: StopMode | None, answers: Mapping[str, Answer]) -> bool:
        """Return whether the savepoint was taken."""
        request_id, _ = self._requests.get(stop, ("", 0))
        answer = answers.get(request_id)
        return answer is not None and not answer.failure

    def is_due(self, stop: StopMode | None, answers: Mapping[str, Answer], now_ms: int) -> bool:
        """Return whether to request it now: for the first time, or since it failed a while ago."""
        request_id, requested_ms = self._requests.get(stop, ("", 0))
        return not request_id or (request_id in answers and now_ms >= requested_ms + RETRY_INTERVAL_MS)

    def add(self, stop: StopMode | None, request_id: str, now_ms: int) -> None:
        """Note a request."""
        self._requests[stop] = (request_id, now_ms)

    def forget(self) -> None:
        """Forget the requests: the coordinator that received them is gone."""
        self._requests.clear()

    def describe_in(self, story: Story, answers: Mapping[str, Answer]) -> None:
        """Write the outcome of all requests into the story, those for other parallelisms too."""
        stopping = {request_id for stop, (request_id, _) in self._requests.items() if stop is not None}
        for request_id, answer in answers.items():
            if answer.failure:
                continue
            if not isinstance(answer, AnswerSavepoint):
                story.rescales += 1
                continue
            story.savepoints.append(answer.location)
            if request_id in stopping:
                story.stopped_with = answer.location


__all__ = ["RequestedSavepoints"]
