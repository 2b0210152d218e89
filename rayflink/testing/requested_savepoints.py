"""Savepoints that a user of a simulated run requests until there is one."""

from __future__ import annotations

from collections.abc import Mapping

from rayflink.actors.messages.commands import Answer, AnswerSavepoint
from rayflink.common.options.stop_mode import StopMode

from .story import Story

ASK_AGAIN_MS = 10
"""Virtual time after which a savepoint is asked for again that could not be had."""


class RequestedSavepoints:
    """One wish for each way to stop, None being not at all: the request that stands for it, and when it was made."""

    def __init__(self) -> None:
        self._asked: dict[StopMode | None, tuple[str, int]] = {}

    def is_there(self, stop: StopMode | None, answers: Mapping[str, Answer]) -> bool:
        """Return whether the savepoint was taken."""
        answer = answers.get(self._asked.get(stop, ("", 0))[0])
        return answer is not None and not answer.failure

    def is_due(self, stop: StopMode | None, answers: Mapping[str, Answer], now_ms: int) -> bool:
        """Return whether to ask now: for the first time, or since it failed a while ago."""
        number, asked_ms = self._asked.get(stop, ("", 0))
        return not number or (number in answers and now_ms >= asked_ms + ASK_AGAIN_MS)

    def note(self, stop: StopMode | None, number: str, now_ms: int) -> str:
        """Note a request for a savepoint, by its number."""
        self._asked[stop] = (number, now_ms)
        return number

    def forget(self) -> None:
        """Forget the requests: the coordinator that received them is gone."""
        self._asked.clear()

    def tell(self, story: Story, answers: Mapping[str, Answer]) -> None:
        """Put what became of all wishes into the story."""
        stopping = {number for stop, (number, _) in self._asked.items() if stop is not None}
        for number, answer in answers.items():
            if answer.failure:
                continue
            if not isinstance(answer, AnswerSavepoint):
                story.rescales += 1
                continue
            story.savepoints.append(answer.location)
            if number in stopping:
                story.stopped_with = answer.location


__all__ = ["RequestedSavepoints"]
