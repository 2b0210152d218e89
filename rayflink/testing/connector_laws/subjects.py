"""Connectors under test, each with the outside system behind it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import ClassVar

from rayflink.common.connector_base.delivery_guarantee import DeliveryGuarantee
from rayflink.common.connector_base.sink import Sink
from rayflink.common.connector_base.source import Source
from rayflink.user_types import UserRecord


class Subject:
    """A connector with an outside system of its own, which is empty at the beginning of a run."""

    guarantee: ClassVar[DeliveryGuarantee] = DeliveryGuarantee.EXACTLY_ONCE
    """The promise that is checked."""
    parallelisms: ClassVar[Sequence[int]] = (1, 2, 3)
    """The parallelisms that a job is started with, and restored with."""
    options: Mapping[str, str] = MappingProxyType({})
    """Options of the job, such as those of an object store."""

    def outage(self) -> AbstractContextManager[object] | None:
        """Return a context in which the outside system is slow, fails or is away; None: there is none to try.

        The job runs in the thread that ends the context, so a connector that waits for the outside system needs
        timeouts of a second or two.
        """
        return None

    def close(self) -> None:
        """Remove what is left of the run in the outside system."""


class SinkSubject(Subject, ABC):
    """A sink under test. The job writes `record(0)`, `record(1)`, ...; readers of the outside system see them."""

    @abstractmethod
    def create_sink(self) -> Sink:
        """Return the sink of a job that starts, or is restored; each writes to the same place."""

    @abstractmethod
    def read(self) -> Iterable[int]:
        """Return the numbers of the records that an outside reader sees now, in any order."""

    def record(self, number: int) -> UserRecord:
        """Return the record of a number; by default the number."""
        return number


class SourceSubject(Subject, ABC):
    """A source under test. Numbers are written to the outside system before and while the job reads."""

    @abstractmethod
    def create_source(self) -> Source:
        """Return the source of a job that starts, or is restored."""

    @abstractmethod
    def write(self, numbers: Sequence[int]) -> None:
        """Write numbers to the outside system."""

    def number(self, record: UserRecord) -> int:
        """Return the number of a record; by default the record."""
        return int(record)


__all__ = ["SinkSubject", "SourceSubject", "Subject"]
