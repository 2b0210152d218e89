"""A stream whose result is stored by the first job that computes it and read by later jobs."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, NoReturn

from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.functions.type_variables import Record
from rayflink.common.job_status import JobStatus
from rayflink.connectors.frames.cached import BlockStore, CachePlace, CacheSink, CacheSource
from rayflink.graph import transformations as graph
from rayflink.graph.checks import endless_source
from rayflink.graph.errors import PlanError
from rayflink.operators.factory import Factory, SourceFactory
from rayflink.operators.sinks import SinkOperator

from .stream import DataStream

if TYPE_CHECKING:
    from rayflink.common.job_client import JobClient

    from ..environment import StreamExecutionEnvironment


class CachedResult:
    """The result of one cached stream: a place for its records, and the job that writes them.

    It is read once that job has finished; a job that runs in the meantime computes the records itself.
    """

    def __init__(self) -> None:
        self._given_up: list[tuple[JobClient, BlockStore]] = []
        self._job: JobClient | None = None
        self._begin_anew()

    @property
    def partitions(self) -> int:
        """Return the number of subtasks that have written the result."""
        return self.place.partitions

    @property
    def is_complete(self) -> bool:
        """Return whether later jobs can read the result."""
        if self._job is None or self.place.store is None or not getattr(self.place.store, "is_there", True):
            return False
        return JobStatus(self._job.status()["state"]) is JobStatus.FINISHED

    @property
    def is_wanted(self) -> bool:
        """Return whether a job that computes the records is to store them: none has, and none is about to."""
        return self._job is None or (not self.is_complete and self._ended)

    @property
    def _ended(self) -> bool:
        return self._job is not None and JobStatus(self._job.status()["state"]).is_terminal

    def begin(self, store: BlockStore, partitions: int) -> None:
        """Note that a job is about to write the result."""
        if self.place.store is not None:
            self.place.store.clear()
        self.place.store, self.place.partitions, self._job = store, partitions, None

    def written_by(self, job: JobClient) -> None:
        """Note that the job has been submitted."""
        self._job = job

    def clear(self) -> None:
        """Give up what is kept; a job that still writes it writes to its end, and then that goes too."""
        store, job = self.place.store, self._job
        if store is not None and job is not None and not self._ended:
            self._given_up.append((job, store))
        elif store is not None:
            store.clear()
        self._job = None
        self._begin_anew()
        for job, store in list(self._given_up):
            if JobStatus(job.status()["state"]).is_terminal:
                self._given_up.remove((job, store))
                store.clear()

    def discard(self) -> None:
        """Remove everything, as the program is over."""
        self.clear()
        while self._given_up:
            self._given_up.pop()[1].clear()

    def _begin_anew(self) -> None:
        """Begin with a new place; a job that was given the earlier one stays with it."""
        self.place = CachePlace()
        self.writer = Factory(SinkOperator, CacheSink(self.place))
        self.reader = SourceFactory(CacheSource(self.place), None)


class CachedDataStream(DataStream[Record]):
    """A bounded stream that is computed once: the first job that needs it keeps its records, later ones read them.

    The records are kept until `invalidate`, until the environment is closed, or until the program ends: in files of
    the temporary folder where execution.target is local, else in Ray's object store, which spills to disk. Their
    timestamps are kept with them, watermarks are not. What concerns an operator is set on the step before.
    """

    def __init__(self, env: StreamExecutionEnvironment, transformation: graph.Cached) -> None:
        super().__init__(env, transformation)
        self._result: CachedResult = transformation.result

    def invalidate(self) -> None:
        """Give up the records that are kept; the next job that needs the stream computes and keeps it again."""
        self._result.clear()

    def get_name(self) -> str:
        """Refuse, as a cached stream has no name.

        Raises: PlanError: always: a cached stream has no operator.
        """
        self._refuse("name")

    def _operator(self, what: str) -> NoReturn:
        self._refuse(what)

    def _refuse(self, what: str) -> NoReturn:
        remedy = f"use the {what} of the step before cache(), or behind it"
        raise PlanError(f"a {what} does not belong to a cached stream", remedy, graph.call_site())


def cached(env: StreamExecutionEnvironment, stream: graph.Transformation) -> CachedDataStream:
    """Return a cached stream, which is computed once.

    Raises:
        PlanError: it has no end.
    """
    endless = endless_source([stream])
    if endless is not None:
        problem = f"cache() needs a stream that ends, and {endless.name!r} does not"
        raise PlanError(problem, "cache a bounded stream", graph.call_site())
    result = CachedResult()
    weakref.finalize(env, result.discard)
    known = stream.output_type
    declared = known.of_other_times() if isinstance(known, TypeInformation) else known
    transformation = graph.Cached(stream, result, output_type=declared)
    env.add_cached(transformation)
    return CachedDataStream(env, transformation)


__all__ = ["CachedDataStream", "CachedResult", "cached"]
