"""Savepoints made of DataFrames: Spark distributes rows to key groups, and its tasks write each key group's file."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial, reduce
from os import PathLike
from typing import TYPE_CHECKING, Any

from rayflink.actors.on_ray.driver.user_program import pack, unpack
from rayflink.common.errors import RayflinkError
from rayflink.connectors.frames.spark_frames import SparkFailed, arrow_schema, in_arrow, reason_of
from rayflink.graph.uids import uid_to_operator_id
from rayflink.state.descriptors import StateDescriptor
from rayflink.state.errors import StateError
from rayflink.state.group_content import encode_group
from rayflink.state.keys.key_groups import key_group
from rayflink.state.schema.state_summary import StateSummary, merge_summaries
from rayflink.state.snapshots import Blob, StoredSnapshot
from rayflink.state.storage.manifest import METADATA, OperatorManifest
from rayflink.state.storage.manifest_format import encode_manifest
from rayflink.state.storage.snapshot_files import SnapshotFileWriter, SnapshotPlace, random_name
from rayflink.state.storage.storage import Storage, StorageError, put_own
from rayflink.state.storage.storage_schemes import from_root, open_storage
from rayflink.state_processor import ColumnError, Savepoint, SavepointExistsError
from rayflink.state_processor.edits import TimersDescriptor
from rayflink.state_processor.savepoint import DEFAULT_KEY_GROUPS
from rayflink.state_processor.tables import Column
from rayflink.state_processor.writing import empty_manifest

from .state_rows import PLACED, GivenState, contents, placed

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

STORED_BYTES = 16 << 20
"""Key groups are put into one file up to about this size."""
END_S = 30.0
"""Time that tasks no longer wanted may take to end before their files are removed."""
_LOOKS_EVERY_S = 0.05
_TASKS_A_CORE = 4
_BESIDES = ("window_start", "window_end", "namespace", "last_access")
"""Columns that are taken where a DataFrame has them."""


@dataclass(frozen=True)
class _Operator:
    uid: str
    max_parallelism: int


@dataclass(frozen=True)
class Written:
    """The output of a task.

    Args:
        groups: (operator, key group, where it is).
        states: (operator, what one of its states is).
    """

    groups: tuple[tuple[int, int, Blob], ...]
    states: tuple[tuple[int, StateSummary], ...]


class SparkSavepoint:
    """A savepoint that Spark writes from DataFrames; a value: `with_state` and `with_timers` make another one.

    >>> from rayflink.datastream.state import ValueStateDescriptor
    >>> from rayflink.spark import SparkSavepoint
    >>> totals = spark.createDataFrame([("ann", 300), ("bob", 500)], ["user", "cents"])         # doctest: +SKIP
    >>> made = SparkSavepoint("shop").with_state(                                               # doctest: +SKIP
    ...     "totals", ValueStateDescriptor("total"), totals, key="user", value="cents"
    ... )
    >>> made.write("savepoints/first")                                                          # doctest: +SKIP
    <savepoint 1 of job 'shop': 1 operators>

    Args:
        job_name: for people.
    """

    def __init__(self, job_name: str = "bootstrapped") -> None:
        self._job_name = job_name
        self._operators: tuple[_Operator, ...] = ()
        self._given: tuple[tuple[GivenState, DataFrame], ...] = ()

    def with_state(
        self,
        operator: str,
        state: StateDescriptor,
        df: DataFrame,
        key: Column = "key",
        value: Column = "value",
        order_by: str | Iterable[str] = (),
        max_parallelism: int | None = None,
    ) -> SparkSavepoint:
        """Return a savepoint with one state more.

        Args:
            operator: uid of the operator.
            state: descriptor of the state.
            df: its rows. Reads the columns of key and value, `map_key` of a map, `position` of a list, `window_start`
                and `window_end`, `namespace` and `last_access`, as `read_state` gives them. Null is the key None.
            key: the column of the keys, several that make tuples, or a function of a row as a dict.
            value: of the values, likewise. A function is given all columns.
            order_by: the columns that order the rows of a key, nulls first: of several rows for one value, or for one
                entry of a map, the last counts; elements of a list are in that order, which is by `position` if nothing
                is said and there is that column, else in any.
            max_parallelism: key groups of the operator, 128 if nothing is said; the job must have as many, or set none.

        Raises:
            ColumnError: the DataFrame has not the columns.
            TypeMismatch: it is no DataFrame, or Arrow has no type for one of its columns.
            ParallelismError: max_parallelism is out of range.
            StateError: the operator has the state already, or another max parallelism.
        """
        if not isinstance(state, StateDescriptor):
            remedy = "give its descriptor, such as ValueStateDescriptor('total')"
            raise StateError(f"a state of operator {operator!r} was given as {state!r:.100}; {remedy}")
        columns = [order_by] if isinstance(order_by, str) else list(order_by)
        arrow_schema(df, "the table of a state")
        if not columns and state.kind == "list" and "position" in df.columns:
            columns = ["position"]
        wanted = [*_named(key), *_named(value), *columns]
        wanted += ["map_key"] if state.kind == "map" else []
        wanted += ["window_end"] if "window_start" in df.columns else []
        for column in wanted:
            if column not in df.columns:
                raise ColumnError(column, ", ".join(map(repr, df.columns)) or "none at all")
        if not callable(key) and not callable(value):
            df = _only(df, (*wanted, *_BESIDES))
        return self._with((state, key, value, tuple(columns)), df, operator, max_parallelism)

    def with_timers(
        self,
        operator: str,
        df: DataFrame,
        queue: str = "user-timers/event",
        key: Column = "key",
        time: Column = "time",
        max_parallelism: int | None = None,
    ) -> SparkSavepoint:
        """Return a savepoint with the timers of an operator; one that is there twice is one.

        Args:
            operator, df, key, max_parallelism: as in `with_state`.
            queue: "user-timers/event" or "user-timers/processing" for those that functions set, "window-timers/event"
                or "window-timers/processing" for those of windows.
            time: the column of their timestamps in epoch milliseconds, or a function of a row as a dict.

        Raises: as `with_state`.
        """
        return self.with_state(operator, TimersDescriptor(queue), df, key, time, (), max_parallelism)

    def write(self, path: str | PathLike[str], options: Mapping[str, str] | None = None) -> Savepoint:
        """Let Spark write it to a folder that does not exist yet; the savepoint there.

        A task holds the rows of one key group of an operator at a time, as Python objects and as bytes: more key groups
        (`max_parallelism`) are smaller ones. The driver holds where each key group is.

        Args:
            path: a path or the URL of a storage that all executors reach.
            options: Flink's `s3.` options by name, as strings.

        Raises:
            SavepointExistsError: there is one.
            DuplicateRowError: several rows are for one value, and no order says which counts.
            InvalidKeyError, SerializationError, TypeMismatch: a key or a value cannot be in the state.
            StorageError: the storage refuses.
            SparkFailed: Spark cannot compute a DataFrame, or write it.
        """
        if not self._given:
            raise StateError("a savepoint of no state was to be written; give it some by with_state or with_timers")
        path = from_root(os.fspath(path))
        storage = open_storage(path, options)
        if METADATA in storage.list():
            raise SavepointExistsError(path)
        spark, run = self._given[0][1].sparkSession, random_name()
        named: set[str] = set()
        with _jobs_of(spark, run, f"rayflink: savepoint {path}"):
            try:
                written = self._computed(spark, _Writing(path, dict(options or {}), run, self._packed(), STORED_BYTES))
                manifest = replace(empty_manifest(self._job_name), operators=tuple(self._manifests(written)))
                ensure_seen(storage, manifest.files())
                named = set(manifest.files())
            finally:  # attempts that failed, or came second
                await_ended(spark, run)
                remove_others(storage, run, named)
            try:
                if not put_own(storage, METADATA, encode_manifest(manifest)):
                    raise SavepointExistsError(path)
            except BaseException:
                remove_others(storage, run, ())
                raise
        return Savepoint.load(path, options)

    def _with(
        self,
        declaration: tuple[StateDescriptor, Column, Column, tuple[str, ...]],
        df: DataFrame,
        uid: str,
        most: int | None,
    ) -> SparkSavepoint:
        state = declaration[0]
        groups = DEFAULT_KEY_GROUPS if most is None else most
        key_group(0, groups)  # which refuses what is out of range
        index = next(
            (index for index, operator in enumerate(self._operators) if operator.uid == uid), len(self._operators)
        )
        operators = self._operators
        if index == len(operators):
            operators = (*operators, _Operator(uid, groups))
        elif most not in (None, operators[index].max_parallelism):
            problem = f"operator {uid!r} has a max parallelism of {operators[index].max_parallelism}"
            raise StateError(f"{problem} for its other state, and of {most} for {state.name!r}; give the same, or none")
        if any((other.operator, other.descriptor.name) == (index, state.name) for other, _ in self._given):
            problem = f"operator {uid!r} was given the state {state.name!r} twice"
            raise StateError(f"{problem}; give all rows at once, as with_state(..., df.unionByName(other))")
        new_state = GivenState(index, *declaration, operators[index].max_parallelism, int(time.time() * 1000))
        new = SparkSavepoint(self._job_name)
        new._operators, new._given = operators, (*self._given, (new_state, df))
        return new

    def _packed(self) -> bytes:
        return pack([state for state, _ in self._given], "the rows of a savepoint")

    def _computed(self, spark: SparkSession, writing: _Writing) -> list[Written]:
        """Return the results that all tasks have written.

        Raises:
            RayflinkError: what is wrong with rows.
            SparkFailed: Spark cannot.
        """
        frames = [
            in_arrow(df, partial(_placed, number=number, packed=writing.states), PLACED)
            for number, (_, df) in enumerate(self._given)
        ]
        most = sum(operator.max_parallelism for operator in self._operators)
        tasks = min(most, _TASKS_A_CORE * spark.sparkContext.defaultParallelism)
        placed_rows = reduce(lambda left, right: left.unionAll(right), frames).repartition(tasks, "place")
        try:
            answers = placed_rows.sortWithinPartitions("place").mapInArrow(writing, "answer binary").collect()
        except Exception as error:  # of a class of Spark's own
            raise SparkFailed("written as a savepoint", reason_of(error)) from error
        results = [pickle.loads(bytes(row.answer)) for row in answers]
        for result in results:
            if isinstance(result, RayflinkError):
                raise result
        return results

    def _manifests(self, written: list[Written]) -> Iterator[OperatorManifest]:
        for number, operator in enumerate(self._operators):
            groups = {group: blob for result in written for index, group, blob in result.groups if index == number}
            declared = [state.summary() for state, _ in self._given if state.operator == number]
            seen = [summary for result in written for index, summary in result.states if index == number]
            yield OperatorManifest(
                str(uid_to_operator_id(operator.uid)),
                operator.uid,
                operator.uid,
                1,
                operator.max_parallelism,
                (StoredSnapshot({group: groups[group] for group in sorted(groups)}) if groups else None,),
                states=merge_summaries((*declared, *seen)),
            )


@dataclass(frozen=True)
class _Writing:
    """The work of each task on the rows of its key groups, which come one after the other.

    Args:
        path, options: of the storage.
        run: what the names of all files begin with.
        states: packed, with the program's classes.
        stored_bytes: key groups of one file.
    """

    path: str
    options: dict[str, str]
    run: str
    states: bytes
    stored_bytes: int

    def __call__(self, batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        """Write the key groups, and report where they are, or describe the error in the rows."""
        import pyarrow as pa

        answer: Any
        try:
            answer = self.written(batches)
        except StorageError:
            raise  # Spark tries again
        except RayflinkError as error:
            answer = error
        yield pa.RecordBatch.from_pydict({"answer": pa.array([pickle.dumps(answer)], pa.binary())})

    def written(self, batches: Iterable[pyarrow.RecordBatch]) -> Written:
        """Return the key groups, stored in files that no other attempt knows.

        Raises:
            RayflinkError: something is wrong with the rows, or the storage refuses; then no file is left.
        """
        states: list[GivenState] = unpack(self.states)
        groups: list[tuple[int, int, Blob]] = []
        summaries: dict[int, list[StateSummary]] = {}
        place = SnapshotPlace.of_savepoint(1, 0)
        storage = open_storage(self.path, self.options)
        writer = SnapshotFileWriter(storage, place, 0, lambda: f"{self.run}-{random_name()}")
        stored = 0
        try:
            for operator, group, content, seen in contents(batches, states):
                groups.append((operator, group, writer.put(encode_group(content, "a savepoint"))))
                summaries[operator] = list(merge_summaries((*summaries.get(operator, ()), *seen)))
                if writer.bytes_written - stored >= self.stored_bytes:
                    writer.finish()
                    stored = writer.bytes_written
            writer.finish()
        except BaseException:
            writer.abort()
            raise
        seen_states = tuple((operator, summary) for operator, parts in summaries.items() for summary in parts)
        return Written(tuple(groups), seen_states)


def _placed(batches: Iterable[pyarrow.RecordBatch], number: int, packed: bytes) -> Iterator[pyarrow.RecordBatch]:
    """The work of each task on the rows of its key groups, which come one after the other."""
    return placed(batches, number, unpack(packed)[number])


def remove_others(storage: Storage, run: str, named: Iterable[str]) -> None:
    """Delete what tasks have written and no manifest names: of attempts that failed, or came second.

    Args:
        run: what the names of all their files begin with.
        named: files that stay.
    """
    for path in sorted(set(storage.list()).difference(named)):
        if path.startswith(f"{run}-"):
            storage.delete(path)


def ensure_seen(storage: Storage, named: Iterable[str]) -> None:
    """Check that the driver finds the files that tasks have written.

    Raises:
        StorageError: it does not.
    """
    lacking = sorted(set(named).difference(storage.list()))
    if lacking:
        why = "a task of Spark has written it, so the address is another place on another node; give one that all share"
        raise StorageError(f"find {lacking[0]}", storage.url, why)


def await_ended(spark: SparkSession, run: str) -> None:
    """Wait until no task of a group of jobs runs any more, or that has taken too long."""
    tracker, until = spark.sparkContext.statusTracker(), time.monotonic() + END_S
    with suppress(Exception):  # of py4j, where Spark itself has ended
        while time.monotonic() < until:
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(run)]
            stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
            if not any(stage.numActiveTasks for stage in stages if stage is not None):
                return
            time.sleep(_LOOKS_EVERY_S)


@contextmanager
def _jobs_of(spark: SparkSession, run: str, description: str) -> Iterator[None]:
    """Group the jobs that this thread begins."""
    context: Any = spark.sparkContext
    names = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
    before = {name: context.getLocalProperty(name) for name in names}
    context.setJobGroup(run, description)
    try:
        yield
    finally:
        with suppress(Exception):  # of py4j, where Spark itself has ended
            for name, value in before.items():
                context.setLocalProperty(name, value)


def _only(df: DataFrame, columns: tuple[str, ...]) -> DataFrame:
    """Return those columns, which Spark finds by their numbers: of two names that differ in case alone it knows
    neither.
    """
    taken = {f"c{number}": name for number, name in enumerate(df.columns) if name in columns}
    return df.toDF(*(f"c{number}" for number in range(len(df.columns)))).select(*taken).toDF(*taken.values())


def _named(column: Column) -> list[str]:
    return [column] if isinstance(column, str) else [] if callable(column) else list(column)


__all__ = ["SparkSavepoint", "Written", "await_ended", "ensure_seen", "remove_others"]
