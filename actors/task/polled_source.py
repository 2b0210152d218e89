"""The source at the head of a task, from its first poll to its end."""

from __future__ import annotations

from collections.abc import Iterator

from rayflink.common.records.batches import MAX_TIMESTAMP, Element, EndOfData, Watermark
from rayflink.operators.base import Operator, SourceOperator
from rayflink.operators.capabilities import SplitReceiver

from ..messages.messages import AssignSplits


class PolledSource:
    """Polls a source operator until it ends or is asked to stop.

    Args:
        operator: the head of the task's chain.
        name: of the operator, for errors.

    Raises:
        TypeError: the operator is no source.
    """

    def __init__(self, operator: Operator, name: str) -> None:
        if not isinstance(operator, SourceOperator):
            raise TypeError(f"operator {name!r} has no input and is no source")
        self._operator = operator
        self._receiver = operator if isinstance(operator, SplitReceiver) else None
        self._stopping = False
        self.ended = False

    def stop(self) -> None:
        """Stop the source: the next poll finds its end; an iteration ends when nothing enters it any more."""
        self._stopping = not self._operator.ends_by_itself

    def assign(self, command: AssignSplits) -> None:
        """Add splits from the enumerator."""
        if self._receiver is None:
            return
        if command.splits:
            self._receiver.add_splits(list(command.splits))
        if command.no_more:
            self._receiver.no_more_splits()

    def watermark_announced(self, max_allowed: int) -> None:
        """Set the watermark up to which aligned sources may read."""
        if self._receiver is not None:
            self._receiver.watermark_announced(max_allowed)

    def poll(self, max_records: int) -> tuple[Element, ...] | None:
        """Return the available elements, about `max_records` at most; None when the source has ended."""
        elements = None if self._stopping else self._operator.poll(max_records)
        self.ended = elements is None
        return None if elements is None else tuple(elements)

    def last_elements(self) -> Iterator[Element]:
        """Return the last elements of an ended source: its own, the last watermark, the end of its data."""
        yield from self._operator.finish()
        yield Watermark(MAX_TIMESTAMP)
        yield EndOfData()

    def next_poll_ms(self) -> int | None:
        """Return when polling makes sense again, in epoch milliseconds; None: when a mail comes, or never."""
        if self.ended:
            return None
        return 0 if self._stopping else self._operator.next_poll_ms()
