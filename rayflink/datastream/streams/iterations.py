"""Streams into which later steps feed records back."""

from __future__ import annotations

from typing import Any

from rayflink.common.functions.type_variables import Record, Record2
from rayflink.graph import transformations as graph
from rayflink.graph.errors import PlanError

from .connected import ConnectedStreams
from .step import as_type, transformation_of
from .stream import DataStream


class IterativeStream(DataStream[Record]):
    """A stream together with what `close_with` feeds back into it.

    Args:
        stream: what goes in from outside.
        max_wait_time_millis: accepted for Flink's sake. An iteration ends when its input has ended and no record is in
            the loop any more, however long a record takes to come round.
    """

    def __init__(self, stream: DataStream[Record], max_wait_time_millis: int = 0) -> None:
        self._outside = transformation_of(stream)
        self._wait_ms = max_wait_time_millis
        step = graph.Feedback(self._outside, max_wait_time_millis, output_type=self._outside.output_type)
        super().__init__(stream.get_execution_environment(), step)
        self._loop = step

    def close_with(self, feedback_stream: DataStream[Record]) -> DataStream[Record]:
        """Feed the records of `feedback_stream` back; it has the parallelism of what it joins.

        Returns: the stream that is fed back.
        Raises:
            PlanError: it does not come from this iteration.
        """
        _add_feedback(self._loop, feedback_stream)
        return feedback_stream

    def with_feedback_type(self, feedback_type: Any = None) -> ConnectedIterativeStreams[Record, Any]:
        """Let records of another type be fed back: they come as the second of two connected streams.

        Args:
            feedback_type: of the records that are fed back; None: any.
        """
        outside: DataStream[Record] = DataStream(self._env, self._outside)
        loop = graph.CoFeedback(self._wait_ms, output_type=as_type(feedback_type))
        return ConnectedIterativeStreams(outside, DataStream(self._env, loop), loop)


class ConnectedIterativeStreams(ConnectedStreams[Record, Record2, Any]):
    """A stream, and next to it what `close_with` feeds back.

    Args:
        stream: what goes in from outside, the first input.
        feedback: what is fed back, the second.
        loop: where it is fed back to.
    """

    def __init__(self, stream: DataStream[Record], feedback: DataStream[Record2], loop: graph.CoFeedback) -> None:
        super().__init__(stream, feedback)
        self._loop = loop

    def close_with(self, feedback_stream: DataStream[Record2]) -> DataStream[Record2]:
        """Feed the records of `feedback_stream` back, as the second stream.

        Returns: the stream that is fed back.
        Raises:
            PlanError: it does not come from this iteration.
        """
        _add_feedback(self._loop, feedback_stream)
        return feedback_stream


def _add_feedback(loop: graph.Feedback | graph.CoFeedback, feedback: DataStream) -> None:
    step = transformation_of(feedback)
    if not _comes_from(step, loop):
        problem = f"close_with was given {step.name!r}, which does not come from this iteration"
        raise PlanError(problem, "give it a stream made of what iterate() returned", graph.call_site())
    loop.add_feedback_edge(step)


def _comes_from(step: graph.Transformation, origin: graph.Transformation) -> bool:
    seen: set[int] = set()
    waiting = [step]
    while waiting:
        candidate = waiting.pop()
        if candidate is origin:
            return True
        if candidate.id not in seen:
            seen.add(candidate.id)
            waiting += candidate.inputs
    return False


__all__ = ["ConnectedIterativeStreams", "IterativeStream"]
