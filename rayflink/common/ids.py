"""Identities of jobs, vertices, operators and attempts: 32 hex digits, each kind its own type."""

from __future__ import annotations

from collections.abc import Callable
from typing import NewType, TypeVar

__all__ = [
    "AttemptNumber",
    "CheckpointId",
    "ExecutionAttemptID",
    "HexId",
    "JobID",
    "JobVertexID",
    "OperatorID",
    "SubtaskIndex",
]

SubtaskIndex = NewType("SubtaskIndex", int)
"""Position of a subtask in its vertex, in [0, parallelism)."""
AttemptNumber = NewType("AttemptNumber", int)
"""The number of earlier attempts of the same subtask, from 0."""
CheckpointId = NewType("CheckpointId", int)
"""Number of a checkpoint within its job, from 1."""

_DIGITS = frozenset("0123456789abcdef")
_Id = TypeVar("_Id", bound="HexId")


class HexId(str):
    """A 128-bit identity written as 32 lower-case hex digits.

    Raises: ValueError: the text is anything else.
    """

    __slots__ = ()

    def __new__(cls: type[_Id], digits: str) -> _Id:
        if len(digits) != 32 or not _DIGITS.issuperset(digits):
            raise ValueError(
                f"{cls.__name__} must be 32 lower-case hex digits, found {digits!r}; make one with {cls.__name__}.new()"
            )
        return super().__new__(cls, digits)

    @classmethod
    def new(cls: type[_Id], random_bytes: Callable[[int], bytes]) -> _Id:
        """Make an id from 16 bytes of `random_bytes`: ``os.urandom``, or ``random.Random(seed).randbytes``."""
        return cls(random_bytes(16).hex())

    @classmethod
    def from_bytes(cls: type[_Id], digest: bytes) -> _Id:
        """Make an id from a digest of exactly 16 bytes."""
        return cls(digest.hex())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class JobID(HexId):
    """Identity of one submission of a job."""

    __slots__ = ()


class JobVertexID(HexId):
    """Identity of a vertex: a chain of operators deployed as one."""

    __slots__ = ()


class OperatorID(HexId):
    """Identity of an operator across versions of a program; its state is found by it."""

    __slots__ = ()


class ExecutionAttemptID(HexId):
    """Identity of one attempt to run one subtask."""

    __slots__ = ()
