"""A stream's result as blocks in a store: each record once whatever dies, and what has no columns is an error."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow
import pytest

from rayflink.common.errors import JobFailed, PlanError, TypeMismatch
from rayflink.common.records.batches import ArrowBatch, Element, RowBatch
from rayflink.connectors.collected import DrawnOnce, DrawnSink, RowBlock, rows_go_to
from rayflink.connectors.frames import frame_writing
from rayflink.connectors.frames.frame_source import FrameFolder, FrameLost, FramePart
from rayflink.connectors.frames.frame_writing import Frame, FrameOperator, WrittenPart, frame_of
from rayflink.connectors.frames.spark_results import plain_type
from rayflink.datastream import DataStream, StreamExecutionEnvironment
from rayflink.datastream.streams.results import _frame
from rayflink.operators.base import OperatorContext
from rayflink.operators.factory import Factory
from rayflink.testing import KillTask, simulate

LOCAL = {"execution.target": "local", "parallelism.default": "2"}
CHECKPOINTS = {
    **LOCAL,
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "50",
    "restart-strategy.fixed-delay.delay": "1 ms",
    "execution.checkpointing.interval": "5 ms",
}


def environment(**more: Any) -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment({**LOCAL, **more})


def collected(stream: DataStream, schema: pyarrow.Schema | None = None) -> Frame:
    return _frame(stream, "to_spark", schema, None, False)


def rows_in(frame: Frame) -> list[dict[str, Any]]:
    blocks = [frame.block(part, number) for part in frame.parts for number in range(part.blocks)]
    assert all(block.schema.equals(frame.schema) for block in blocks)
    return pyarrow.Table.from_batches(blocks, frame.schema).to_pylist()


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the stores of the test lie."""
    monkeypatch.setitem(LOCAL, "io.tmp.dirs", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_all_records_are_in_the_frame_and_those_of_a_task_in_order(folders, mode):
    env = environment(**{"execution.runtime-mode": mode})
    frame = collected(env.from_sequence(1, 5_000).map(lambda n: (n, None if n % 7 else str(n))))
    rows = rows_in(frame)
    assert sorted(row["f0"] for row in rows) == list(range(1, 5_001))
    assert all(row["f1"] == (None if row["f0"] % 7 else str(row["f0"])) for row in rows)
    one = collected(environment().from_collection([3, 1, 2]).map(lambda n: n).set_parallelism(1))
    assert rows_in(one) == [{"value": 3}, {"value": 1}, {"value": 2}]
    keyed = environment().from_collection([("a", 1), ("b", 2), ("a", 3)]).key_by(lambda pair: pair[0])
    assert sorted(row["f1"] for row in rows_in(collected(keyed))) == [1, 2, 3]
    frame.store.leave()
    with pytest.raises(FrameLost, match="blocks of a DataFrame are gone: .*FileSink for a stream's result"):
        frame.block(frame.parts[0], 0)


def opened(store: FrameFolder, attempt: int = 0) -> FrameOperator:
    operator = FrameOperator(store)
    operator.setup(OperatorContext("0" * 32, "Columns", subtask=1, attempt=attempt))
    return operator


def told(elements: Iterable[Element]) -> list[WrittenPart]:
    return [part for batch in elements for part in batch.values]


def test_blocks_and_parts_have_a_size_and_a_checkpoint_ends_both(tmp_path, monkeypatch):
    monkeypatch.setattr(frame_writing, "BLOCK_ROWS", 1_000)
    monkeypatch.setattr(frame_writing, "PART_BYTES", 2 * 8_000)
    store = FrameFolder(str(tmp_path))
    operator = opened(store)
    for first in range(0, 5_200, 400):
        assert not list(operator.process(RowBatch(list(range(first, first + 400))), 0))
    first = told(operator.prepare_snapshot(1))
    assert [(one.part.blocks, one.part.rows) for one in first] == [(3, 2_400), (3, 2_400), (1, 400)]
    assert not list(operator.prepare_snapshot(2))
    operator.process(RowBatch([5_200]), 0)
    second = told(operator.finish())
    assert [(one.part.blocks, one.part.rows) for one in second] == [(1, 1)]
    again = opened(store, attempt=1)
    again.process(RowBatch([7]), 0)
    frame = frame_of(store, [*first, *second])
    assert [row["value"] for row in rows_in(frame)] == list(range(5_201))
    third = told(again.finish())
    assert len({one.part.attempt for one in [*first, *second, *third]}) == 5, "attempts at a subtask are told apart"


def test_an_operator_without_records_tells_its_schema_once(tmp_path):
    operator = opened(FrameFolder(str(tmp_path)))
    assert not list(operator.prepare_snapshot(1))
    operator.process(ArrowBatch(pyarrow.RecordBatch.from_pydict({"n": pyarrow.array([], pyarrow.int8())})), 0)
    (only,) = told(operator.prepare_snapshot(2))
    assert (only.part.rows, only.schema) == (0, pyarrow.schema([("n", pyarrow.int8())]))
    assert not list(operator.finish())


def test_records_without_a_field_are_kept_until_others_have_some(tmp_path):
    store = FrameFolder(str(tmp_path))
    operator = opened(store)
    operator.process(RowBatch([{}, {}]), 0)
    first = told(operator.prepare_snapshot(1))
    with pytest.raises(TypeMismatch, match="columns of the stream: found records without a field, wanted a field in"):
        frame_of(store, first)
    operator.process(RowBatch([{"n": 1}]), 0)
    assert rows_in(frame_of(store, [*first, *told(operator.finish())])) == [{"n": None}, {"n": None}, {"n": 1}]


def test_small_parts_of_a_subtask_are_read_together():
    small = [FramePart(subtask, number, "", 1, 1, 20 << 20) for subtask in (0, 1) for number in range(4)]
    groups = Frame(FrameFolder(""), tuple(small), pyarrow.schema([])).groups()
    assert [[(part.partition, part.attempt) for part in group] for group in groups] == [
        [(0, 0), (0, 1), (0, 2)], [(0, 3)], [(1, 0), (1, 1), (1, 2)], [(1, 3)],
    ]  # fmt: skip


class Arrived(list[RowBlock]):
    """What the tasks have sent."""

    def put(self, block: RowBlock) -> None:
        self.append(block)

    def flush(self) -> None:
        pass


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.slow
def test_each_record_is_there_once_whatever_dies_and_blocks_of_the_dead_go(tmp_path, seed):
    store = FrameFolder(str(tmp_path))
    env = StreamExecutionEnvironment(CHECKPOINTS)
    numbers = env.from_collection(range(200)).map(lambda number: (number, number / 2))
    numbers._add_operator("Columns", Factory(FrameOperator, store)).sink_to(DrawnSink()).set_parallelism(1)
    arrived = Arrived()
    faults = [
        KillTask("Columns", move=100 + seed * 23),
        KillTask("Source", move=400 + seed * 17),
        KillTask("Sink", move=800),
    ]
    with rows_go_to(arrived):
        story = simulate(env, seed, faults)
    assert story.status.value == "FINISHED"
    frame = frame_of(store, DrawnOnce("7" * 32).new(arrived))
    assert sorted(row["f0"] for row in rows_in(frame)) == list(range(200))
    assert len(os.listdir(tmp_path)) == sum(part.blocks for part in frame.parts)


def test_a_failed_job_leaves_no_block(folders):
    def broken(number: int) -> int:
        if number == 4_000:
            raise ValueError("no four thousands")
        return number

    env = environment(**{"restart-strategy.type": "none"})
    with pytest.raises(JobFailed, match="no four thousands"):
        collected(env.from_sequence(1, 5_000).map(broken))
    assert os.listdir(folders) == []


def test_a_record_that_does_not_fit_fails_the_job_and_is_named(folders):
    env = environment(**{"restart-strategy.type": "none"})
    with pytest.raises(JobFailed, match=r"record \('x', 'y'\) does not fit the columns .*'f1' has values of") as error:
        collected(env.from_collection([("a", 1), ("x", "y")]))
    assert "test_frame_writing.py" in str(error.value)
    schema = pyarrow.schema([("word", pyarrow.string()), ("n", pyarrow.int64())])
    with pytest.raises(JobFailed, match=r"record \('x', 'y'\) does not fit the columns .*give a schema"):
        collected(env.from_collection([("a", 1), ("x", "y")]), schema)
    assert os.listdir(folders) == []


def test_an_empty_stream_needs_a_schema_and_a_declared_type_is_one(folders):
    from rayflink.common.typeinfo import Types

    with pytest.raises(TypeMismatch, match=r"columns of the stream: found no record.*schema=.*test_frame_writing.py"):
        collected(environment().from_collection([]))
    assert os.listdir(folders) == []
    schema = pyarrow.schema([("word", pyarrow.string())])
    frame = collected(environment().from_collection([]).map(str), schema)
    assert (frame.schema, frame.parts, rows_in(frame)) == (schema, (), [])
    declared = Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.INT()])
    frame = collected(environment().from_sequence(1, 3).map(lambda n: (str(n), n), declared))
    assert frame.schema == pyarrow.schema([("word", pyarrow.string()), ("n", pyarrow.int32())])
    assert sorted(row["n"] for row in rows_in(frame)) == [1, 2, 3]
    assert collected(environment().from_collection([]).map(str, declared)).schema == frame.schema


def test_columns_keep_their_types(folders):
    def times(columns: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        ids = columns.column(0)
        zoned = ids.cast(pyarrow.timestamp("ms", "America/New_York"))
        return pyarrow.RecordBatch.from_pydict({"at": zoned, "price": ids.cast(pyarrow.decimal128(30, 2))})

    frame = collected(environment().from_sequence(1, 100).map_batches(times))
    assert frame.schema.types == [pyarrow.timestamp("ms", "America/New_York"), pyarrow.decimal128(30, 2)]
    assert len(rows_in(frame)) == 100


def test_subtasks_that_found_types_that_do_not_go_together_are_an_error(tmp_path):
    parts = [
        WrittenPart(FramePart(at, 1, "", 1, 1, 8), pyarrow.schema([("n", kind)]), False)
        for at, kind in enumerate((pyarrow.int64(), pyarrow.string()))
    ]
    with pytest.raises(TypeMismatch, match="column 'n' has values of int64 and string, wanted records of one form"):
        frame_of(FrameFolder(str(tmp_path)), parts)


def test_blocks_that_are_gone_when_the_job_has_ended_are_told(tmp_path):
    operator = opened(FrameFolder(str(tmp_path)))
    operator.process(RowBatch([1]), 0)
    parts = told(operator.finish())
    (block,) = tmp_path.iterdir()
    block.unlink()
    with pytest.raises(FrameLost, match=f"blocks of a DataFrame are gone: {block} is not there"):
        frame_of(FrameFolder(str(tmp_path)), parts)


def test_an_endless_stream_is_refused_before_anything_runs(folders):
    from rayflink.connectors.generator import DataGeneratorSource

    endless = environment().from_source(DataGeneratorSource(lambda n: n))
    with pytest.raises(PlanError, match=r"to_spark\(\) needs a stream that ends, and 'Source: .*FileSink"):
        collected(endless)
    assert os.listdir(folders) == []


def test_types_that_spark_has_under_another_name():
    text = pyarrow.dictionary(pyarrow.int8(), pyarrow.large_string())
    map_of_text = pyarrow.map_(pyarrow.large_string(), pyarrow.int8())
    nested = pyarrow.large_list(pyarrow.struct([("a", text), ("b", map_of_text)]))
    assert plain_type(nested) == pyarrow.list_(
        pyarrow.struct([("a", pyarrow.string()), ("b", pyarrow.map_(pyarrow.string(), pyarrow.int8()))])
    )
    assert plain_type(pyarrow.binary(3)) == pyarrow.binary() and plain_type(pyarrow.date32()) == pyarrow.date32()
