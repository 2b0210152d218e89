"""Blocks of columns in partitions as a source, without Spark: positions, attempts, and what Spark's errors say."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pyarrow
import pytest

from rayflink.common.connector_base.source import END, ReaderContext
from rayflink.common.errors import TypeMismatch
from rayflink.common.records.batches import ArrowBatch
from rayflink.connectors.frames import spark_frames
from rayflink.connectors.frames.frame_source import FrameFolder, FrameLost, FramePart, FrameSource, FrameSplit
from rayflink.connectors.frames.spark_frames import SparkFailed, blocks_of, reason_of, renamed
from rayflink.datastream import StreamExecutionEnvironment


def block(*numbers: int) -> pyarrow.RecordBatch:
    return pyarrow.RecordBatch.from_pydict({"n": pyarrow.array(numbers, pyarrow.int64())})


@pytest.fixture
def source(tmp_path) -> FrameSource:
    """Partition 0 with blocks of 3 and 2 rows, partition 1 with none, partition 2 with one row; two attempts at 0."""
    folder = tmp_path / "frame"
    folder.mkdir()
    store = FrameFolder(str(folder))
    for attempt in (7, 9):
        place = store.append(0, attempt, 0, block(0, 1, 2))
    store.append(0, 9, 1, block(3, 4))
    store.append(2, 8, 0, block(5))
    parts = [FramePart(2, 8, place, 1, 1, 8), FramePart(0, 9, place, 2, 5, 40), FramePart(1, 5, "", 0, 0, 0)]
    store.keep(parts)
    assert sorted(os.listdir(folder)) == ["0-9-0.arrow", "0-9-1.arrow", "2-8-0.arrow"]
    return FrameSource(store, parts, block().schema)


def numbers_in(polled: object) -> list[int]:
    assert isinstance(polled, ArrowBatch)
    return polled.data["n"].to_pylist()


def test_partitions_are_read_in_order_from_any_position(source):
    reader = source.create_reader(ReaderContext())
    reader.add_splits([FrameSplit(part) for part in source.parts])
    assert numbers_in(reader.poll(2)) == [0, 1]
    assert reader.snapshot_state()[0] == FrameSplit(source.parts[0], 0, 2)
    assert numbers_in(reader.poll(2)) == [2]
    assert numbers_in(reader.poll(1)) == [3]
    held = reader.snapshot_state()
    reader.close()
    again = source.create_reader(ReaderContext())
    again.add_splits(held)
    again.notify_no_more_splits()
    assert [numbers_in(again.poll(10)), numbers_in(again.poll(10))] == [[4], [5]]
    assert again.poll(10) is END and again.snapshot_state() == []


def test_a_job_reads_all_rows_and_none_of_an_empty_table(source, tmp_path):
    env = StreamExecutionEnvironment({"execution.target": "local", "parallelism.default": 2})
    rows = env.from_source(source).execute_and_collect(limit=10)
    assert sorted(row.n for row in rows) == [0, 1, 2, 3, 4, 5] and source.rows == 6
    nothing = FrameSource(FrameFolder(str(tmp_path)), [], block().schema)
    assert env.from_source(nothing).execute_and_collect(limit=10) == []


def test_who_leaves_takes_the_files_along_and_a_later_read_says_what_is_gone(source):
    source.store.leave()
    reader = source.create_reader(ReaderContext())
    reader.add_splits([FrameSplit(source.parts[0])])
    with pytest.raises(FrameLost, match=r"blocks of a DataFrame are gone: .*0-9-0.arrow.*env.from_spark\(df, path="):
        reader.poll(10)


def test_a_job_that_goes_on_does_not_read_another_table_in_place_of_its_own(source, tmp_path):
    later = FrameFolder(str(tmp_path))
    place = later.append(0, 9, 0, block(70, 71, 72))
    again = FrameSource(later, [FramePart(0, 9, place, 1, 3, 24)], block().schema)
    source.store.leave()
    reader = again.create_reader(ReaderContext())
    reader.add_splits([FrameSplit(source.parts[0], 0, 2)])
    with pytest.raises(FrameLost, match="0-9-0.arrow"):
        reader.poll(10)


def test_a_folder_that_cannot_be_written_is_an_error_with_the_remedy(tmp_path):
    with pytest.raises(OSError, match=r"block .*gone/0-1-0.arrow of a DataFrame cannot be written .*io.tmp.dirs"):
        FrameFolder(str(tmp_path / "gone")).append(0, 1, 0, block(1))


def test_small_batches_are_put_together_and_empty_ones_left_out(monkeypatch):
    def batches() -> Iterator[pyarrow.RecordBatch]:
        yield from (block(), block(1), block(2, 3), block(), block(4, 5, 6), block(7))

    assert [found["n"].to_pylist() for found in blocks_of(batches())] == [[1, 2, 3, 4, 5, 6, 7]]
    monkeypatch.setattr(spark_frames, "BLOCK_BYTES", 24)
    assert [found["n"].to_pylist() for found in blocks_of(batches())] == [[1, 2, 3], [4, 5, 6], [7]]
    monkeypatch.setattr(spark_frames, "BLOCK_ROWS", 2)
    assert [found["n"].to_pylist() for found in blocks_of(batches())] == [[1], [2, 3], [4, 5, 6], [7]]
    assert list(blocks_of(iter(()))) == []


JVM = """An error occurred while calling o67.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 2 in stage 0.0 failed 4 times
\tat org.apache.spark.scheduler.DAGScheduler.failJobAndIndependentStages(DAGScheduler.scala:2856)
Caused by: java.lang.ArithmeticException: divide by zero
\tat org.apache.spark.sql.Foo.bar(Foo.scala:1)
"""
PYTHON = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "<stdin>", line 4, in broken
    raise ValueError("no sevens")
ValueError: no sevens

\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:572)
"""
SILENT = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/it.py", line 4, in broken
    raise
  File "/it.py", line 3, in broken
    assert row: int
           ^^^^^^^^
AssertionError
"""
ENDED = """An error occurred while calling o67.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Python worker exited unexpectedly (crashed)
\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:572)
Caused by: java.io.EOFException
"""


def test_the_cause_is_found_in_what_spark_says():
    assert reason_of(RuntimeError(SILENT)) == "AssertionError"
    assert reason_of(RuntimeError(ENDED)).startswith("Python worker exited unexpectedly: a function has ended the")
    assert reason_of(RuntimeError(JVM)) == "RuntimeError: java.lang.ArithmeticException: divide by zero"
    assert reason_of(RuntimeError(PYTHON)) == "ValueError: no sevens"
    assert reason_of(RuntimeError("[PATH_ALREADY_EXISTS] /x\nmore")) == "RuntimeError: [PATH_ALREADY_EXISTS] /x"
    assert reason_of(RuntimeError("")) == "RuntimeError"
    told = str(SparkFailed("read as a stream", "ValueError: no"))
    assert told.startswith("Spark could not compute the DataFrame that was to be read as a stream: ValueError: no; ")


def test_batches_that_spark_has_renamed_have_their_names_again():
    fields = [pyarrow.field("c0", pyarrow.int8(), False), pyarrow.field("c1", pyarrow.string())]
    batch = pyarrow.RecordBatch.from_arrays(
        [pyarrow.array([1], "int8"), pyarrow.array(["x"])], schema=pyarrow.schema(fields)
    )
    (found,) = renamed(iter([batch]), ["a.b", "A.b"])
    assert found.schema == pyarrow.schema(
        [field.with_name(name) for field, name in zip(fields, ["a.b", "A.b"], strict=True)]
    )
    assert found.columns == batch.columns


def test_a_path_object_is_a_path(tmp_path):
    class Conf(dict):
        set, unset = dict.__setitem__, dict.pop

    written: list[str] = []
    df = SimpleNamespace(sparkSession=SimpleNamespace(conf=Conf()), write=SimpleNamespace(parquet=written.append))
    spark_frames._filed(df, tmp_path / "rows", block(1).schema)
    assert written == [str(tmp_path / "rows")]


def test_what_is_no_dataframe_is_refused_where_spark_is_not_even_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, "pyspark.sql", raising=False)
    with pytest.raises(TypeMismatch, match=r"found list \[1\], wanted a pyspark.sql.DataFrame; give what spark.read"):
        StreamExecutionEnvironment({"execution.target": "local"}).from_spark([1])
