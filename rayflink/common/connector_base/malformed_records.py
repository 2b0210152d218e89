"""The policy for messages of an outside system that cannot be decoded, the same in every source."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ..errors import RayflinkError
from ..output_tag import OutputTag


@dataclass(frozen=True)
class MalformedRecord:
    """A message that could not be decoded, as it goes to a side output.

    Args:
        message: the bytes, as they came.
        error: the reason why they could not be decoded.
        place: the position of the message in the outside system, such as "topic orders, partition 3, offset 17".
    """

    message: bytes
    error: str
    place: str


class MalformedMessage(ValueError):
    """A message cannot be decoded, and the policy is to fail.

    Args:
        place: its position in the outside system.
        message: the bytes, shortened.
        reason: the error of the schema.
    """

    def __init__(self, place: str, message: str, reason: str) -> None:
        super().__init__(place, message, reason)
        self.place, self.message, self.reason = place, message, reason

    def __str__(self) -> str:
        remedy = "correct the producer or the schema, or set MalformedRecords.skip() or .side_output(tag) on the source"
        return f"{self.place}: {self.message} cannot be decoded ({self.reason}); {remedy}"


class DecoderUnavailable(RayflinkError):
    """Messages cannot be decoded for a reason that is not in them, such as a schema registry that does not answer.

    The job fails whatever the policy for malformed records: these messages are not malformed.
    """


class _Action(Enum):
    FAIL = "fail"
    SKIP = "skip"
    SIDE_OUTPUT = "side_output"


@dataclass(frozen=True)
class MalformedRecords:
    """The policy of a source for messages that cannot be decoded: fail, skip them, or send them to a side output.

    They are counted in the metric `numRecordsInErrors` in each case.

    >>> MalformedRecords.skip()
    MalformedRecords.skip()
    >>> MalformedRecords.side_output(OutputTag("malformed")).tag
    OutputTag('malformed')

    Args:
        tag: of the side output, whose records are `MalformedRecord` objects; None: there is none.
    """

    _action: _Action = _Action.FAIL
    tag: OutputTag[MalformedRecord] | None = None

    @staticmethod
    def fail() -> MalformedRecords:
        """Return the default policy: the job fails, with an error that names the message and its place."""
        return MalformedRecords()

    @staticmethod
    def skip() -> MalformedRecords:
        """Return the policy that leaves such messages out."""
        return MalformedRecords(_Action.SKIP)

    @staticmethod
    def side_output(tag: OutputTag[MalformedRecord]) -> MalformedRecords:
        """Return the policy that sends a `MalformedRecord` for each such message to a side output of the source."""
        return MalformedRecords(_Action.SIDE_OUTPUT, tag)

    @property
    def fails(self) -> bool:
        """True if a malformed message fails the job."""
        return self._action is _Action.FAIL

    def __repr__(self) -> str:
        return f"MalformedRecords.{self._action.value}({'' if self.tag is None else repr(self.tag)})"


__all__ = ["DecoderUnavailable", "MalformedMessage", "MalformedRecord", "MalformedRecords"]
