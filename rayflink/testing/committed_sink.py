"""A sink in two phases for simulated jobs: what it has committed outlives every task, coordinator and job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from rayflink.common.connector_base.commits import CommitRequest
from rayflink.common.connector_base.sink import Committer, Sink, SinkWriter, WriterContext
from rayflink.common.records.batches import Batch, rows_of


@dataclass
class _Outside:
    """A system outside the job: transaction -> records."""

    prepared: dict[str, list[Any]] = field(default_factory=dict)
    committed: dict[str, list[Any]] = field(default_factory=dict)


_SYSTEMS: dict[str, _Outside] = {}


class CommittedSink(Sink):
    """Writes into transactions of a system outside the job, which is this process; each is committed once.

    In a test it stands for a job's own sink. Only what a complete checkpoint covers is committed.

    >>> from rayflink.datastream import StreamExecutionEnvironment
    >>> from rayflink.testing import CommittedSink, simulate
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> _ = env.from_collection([1, 2, 3]).sink_to(CommittedSink("numbers"))
    >>> _ = simulate(env, seed=1)
    >>> CommittedSink.records("numbers")
    [1, 2, 3]
    >>> CommittedSink.forget("numbers")

    Args:
        system: name of the outside system.
    """

    name = "Sink: Committed"

    def __init__(self, system: str) -> None:
        self.system = system

    def create_writer(self, ctx: WriterContext) -> SinkWriter:
        return _Writer(self.system)

    def create_committer(self) -> Committer:
        return _Committer(self.system)

    @staticmethod
    def records(system: str) -> list[Any]:
        """Return all committed records, in the order of the commits."""
        return list(chain.from_iterable(_outside(system).committed.values()))

    @staticmethod
    def forget(system: str) -> None:
        """Begin anew with an empty system."""
        _SYSTEMS.pop(system, None)


class LostTransaction(Exception):
    """A transaction is to be committed that was never prepared."""


class _Writer(SinkWriter):
    def __init__(self, system: str) -> None:
        self._outside, self._rows = _outside(system), list[Any]()

    def write(self, batch: Batch) -> None:
        self._rows += rows_of(batch)

    def flush(self, end_of_input: bool) -> None:
        pass

    def prepare_commit(self) -> Sequence[str]:
        if not self._rows:
            return ()
        transaction = f"transaction {len(self._outside.prepared)}"
        self._outside.prepared[transaction], self._rows = self._rows, []
        return (transaction,)

    def close(self) -> None:
        pass


class _Committer(Committer):
    def __init__(self, system: str) -> None:
        self._outside = _outside(system)

    def commit(self, requests: Sequence[CommitRequest[str]]) -> None:
        for request in requests:
            transaction = request.get_committable()
            if transaction in self._outside.committed:
                request.signal_already_committed()
            elif transaction in self._outside.prepared:
                self.publish(transaction)
            else:
                request.signal_failed_with_unknown_reason(LostTransaction(transaction))

    def publish(self, transaction: str) -> None:
        """Make its records visible."""
        self._outside.committed[transaction] = self._outside.prepared[transaction]


def _outside(system: str) -> _Outside:
    return _SYSTEMS.setdefault(system, _Outside())


__all__ = ["CommittedSink", "LostTransaction"]
