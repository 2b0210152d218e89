"""Savepoints made of DataFrames and read as DataFrames, on a real Spark; jobs that begin from them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, time, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rayflink.common.errors import TypeMismatch
from rayflink.common.typeinfo import Types
from rayflink.connectors.frames.spark_frames import SparkFailed
from rayflink.datastream.functions import KeyedProcessFunction
from rayflink.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from rayflink.spark import DuplicateRowError, SparkSavepoint, read_state, state_reading, state_writing
from rayflink.state.errors import ParallelismError, StateError
from rayflink.state.storage.storage_schemes import open_storage
from rayflink.state.storage.stored_checkpoints import NoCheckpointError
from rayflink.state_processor import ColumnError, NotInSavepointError, Savepoint, SavepointExistsError
from tests.state_processor.programs import EVENTS, shop
from tests.state_processor.savepoints import BACKENDS, environment, savepoint_after, worked

pytestmark = [pytest.mark.spark, pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(200)]

TOTAL, NOTES, COUNTS = ValueStateDescriptor("total"), ListStateDescriptor("notes"), MapStateDescriptor("counts")
USERS = 300


@pytest.fixture(autouse=True)
def times_are_in_utc(spark: Any) -> Iterator[None]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    yield
    spark.conf.set("spark.sql.session.timeZone", before)


def sorted_rows(table: Any) -> list[str]:
    return sorted(repr(row) for row in table)


def as_arrow(df: Any) -> pa.Table:
    """What Spark gives as it is, without its own classes for rows."""
    return pa.Table.from_batches(df._collect_as_arrow() or [], df_schema(df))


def df_schema(df: Any) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(df.schema)


def rows(df: Any) -> list[str]:
    return sorted_rows(as_arrow(df).to_pylist())


def bootstrapped(spark: Any, path: Path, max_parallelism: int | None = None) -> Savepoint:
    users = spark.range(0, USERS, 1, 2).selectExpr("concat('ü', id) AS user", "id * 100 AS cents", "id")
    notes = spark.range(0, 3 * USERS, 1, 2).selectExpr(
        "concat('ü', id % 300) AS user", "concat('note ', 2 - floor(id / 300)) AS note", "-id AS at"
    )
    counts = spark.range(0, 2 * USERS, 1, 1).selectExpr(
        "concat('ü', id % 300) AS key", "if(id < 300, 'x', 'y') AS map_key", "id AS value"
    )
    timers = spark.range(0, USERS, 1, 1).selectExpr("concat('ü', id) AS key", "1000 + id AS time")
    made = SparkSavepoint("shop").with_state(
        "totals", TOTAL, users, key="user", value="cents", max_parallelism=max_parallelism
    )
    made = made.with_state("totals", NOTES, notes, key="user", value="note", order_by="at")
    made = made.with_state("totals", COUNTS, counts).with_timers("totals", timers)
    return made.with_state("others", TOTAL, users, key="id", value=["user", "cents"]).write(path)


def begun_from(made: Savepoint, folder: Path, backend: str, **options: str) -> Any:
    env = environment(folder, backend, **options)
    env.get_configuration().set_string("execution.state-recovery.path", made.path)
    env.get_configuration().set_string("execution.state-recovery.ignore-unclaimed-state", "true")
    return env


class Totals(KeyedProcessFunction):
    """Tells what a user has."""

    def open(self, context: Any) -> None:
        self.total = context.get_state(TOTAL)
        self.notes = context.get_list_state(NOTES)
        self.counts = context.get_map_state(COUNTS)

    def process_element(self, user: str, context: Any) -> Iterator[Any]:
        yield user, self.total.value(), list(self.notes.get()), sorted(self.counts.items())

    def on_timer(self, timestamp: int, context: Any) -> Iterator[Any]:
        yield context.get_current_key(), timestamp


def test_a_job_begins_from_a_dataframe_on_each_backend_and_at_another_parallelism(spark, tmp_path):
    made = bootstrapped(spark, tmp_path / "first")
    assert [(one.uid, one.max_parallelism) for one in made.operators] == [("totals", 128), ("others", 128)]
    assert {(state.name, state.kind) for state in made.operator("totals").states} == {
        ("total", "value"), ("notes", "list"), ("counts", "map"), ("user-timers/event", "timers"),
    }  # fmt: skip
    wanted = [
        *((f"ü{n}", n * 100, ["note 0", "note 1", "note 2"], [("x", n), ("y", 300 + n)]) for n in range(USERS)),
        *((f"ü{n}", 1000 + n) for n in range(USERS)),
    ]
    for backend, parallelism in zip(BACKENDS, ("1", "3"), strict=True):
        env = begun_from(made, tmp_path, backend, parallelism__default=parallelism)
        users = env.from_collection([f"ü{number}" for number in range(USERS)])
        found = users.key_by(lambda user: user).process(Totals()).uid("totals").execute_and_collect(limit=1_000)
        assert sorted_rows(found) == sorted_rows(wanted)
    env = begun_from(made, tmp_path, "hashmap")
    env.set_max_parallelism(64)
    told = env.from_collection(["ü1"]).key_by(lambda user: user).process(Totals()).uid("totals")
    with pytest.raises(Exception, match="128"):
        told.execute_and_collect(limit=10)


def test_a_dataframe_comes_back_as_it_was(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(state_reading, "LEAST_BYTES", 1)
    monkeypatch.setattr(state_reading, "_TASKS_A_CORE", 1)
    df = spark.sql("""
        SELECT if(id = 7, null, concat('schlüssel ', id, '✓')) AS key, 'day' AS namespace,
            if(id % 5 = 0, null, struct(id AS f0, cast(id AS string) AS f1)) AS value
        FROM range(0, 2000, 1, 2)
    """)
    tuples = spark.sql("""
        SELECT struct(id AS f0, if(id % 2 = 0, null, 'ß') AS f1) AS key, id % 3 AS map_key, struct(
                   cast(id AS decimal(12, 2)) AS f0, timestamp_millis(id) AS f1, array(id, null) AS f2,
                   timestamp_ntz'2013-03-10 02:30:00' AS f3, cast('b' AS binary) AS f4, id * 0.5D AS f5
            ) AS value
        FROM range(0, 1000, 1, 2)
    """)
    listed = spark.sql("""
        SELECT cast(id % 10 AS bigint) AS key, id * 10 AS window_start, id * 10 + 10 AS window_end,
            explode(sequence(0L, 4L)) AS position, concat(id, ' ', position) AS value FROM range(0, 100, 1, 1)
    """)
    made = SparkSavepoint().with_state("op", TOTAL, df).with_state("op", COUNTS, tuples)
    written = made.with_state("lists", NOTES, listed, max_parallelism=7).write(tmp_path / "made")
    assert rows(read_state(spark, written.path, "op", "total")) == rows(df)
    assert rows(read_state(spark, written.path, "op", "counts")) == rows(tuples)
    assert rows(read_state(spark, written.path, "lists", "notes")) == rows(listed)
    keys = {row.key: row.value for row in written.state("op", "total").rows()}
    assert keys[None] == (7, "7") and keys["schlüssel 10✓"] is None and keys["schlüssel 11✓"] == (11, "11")
    (entry,) = (row for row in written.state("op", "counts").rows() if row.key == (3, "ß"))
    assert entry.value[0] == Decimal("3.00") and entry.value[3] == datetime(2013, 3, 10, 2, 30)
    assert entry.value[1] == datetime(1970, 1, 1, 0, 0, 0, 3_000, timezone.utc) and entry.part == 0


def test_what_a_job_has_saved_is_the_same_dataframe_as_table(spark, tmp_path):
    env = environment(tmp_path)
    shop(env)
    saved = Savepoint.load(savepoint_after(env, worked("carts of users", len(EVENTS))))
    seen = 0
    for operator in saved.operators:
        for state in operator.states:
            table, df = state.to_arrow(), read_state(spark, saved.path, operator.id, state.name)
            assert df.columns == table.column_names
            assert rows(df) == sorted_rows(table.to_pylist()), state
            seen += 1
    assert seen >= 10
    asked = read_state(spark, saved.path, "carts of users", "cart", "key string, value struct<total: int>")
    assert {row.key: row.value.total for row in asked.collect()} == {"user 0": 18, "user 1": 12, "user 2": 15}


@pytest.mark.soak
def test_values_of_types_that_have_nothing_in_common_or_that_spark_lacks_are_text(spark, tmp_path):
    table = [{"key": number, "value": time(number, 30) if number % 2 else number} for number in range(5)]
    edited = Savepoint.new().with_state("op", TOTAL, table).write(tmp_path / "odd")
    df = read_state(spark, edited.path, "op", "total")
    assert rows(df) == sorted_rows(edited.state("op", "total").to_arrow().to_pylist())
    assert df.schema["value"].metadata == {"form": "repr"}
    with pytest.raises(Exception, match=r"found datetime.time\(1, 30\) \(time\) of key 1"):
        read_state(spark, edited.path, "op", "total", "key long, value long").collect()


@dataclass
class Fragile:
    """A value whose first reading in Spark ends badly."""

    number: int
    ends: str
    flag: str
    driver: int

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.number % 10 == 9 and os.getpid() != self.driver:
            if self.ends == "always":
                raise ValueError("it breaks")
            try:
                os.close(os.open(self.flag, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return
            os.kill(os.getpid(), signal.SIGKILL)


def files(folder: Path) -> list[str]:
    return open_storage(str(folder)).list()


@pytest.mark.soak
def test_a_worker_killed_midway_leaves_no_wrong_row_and_a_failed_one_no_file(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(state_writing, "STORED_BYTES", 1_000)  # a file for nearly each key group
    driver, flag = os.getpid(), str(tmp_path / "flag")

    def fragile(ends: str) -> Any:
        def made(row: dict[str, Any]) -> Any:
            return Fragile(row["id"], ends, flag, driver)

        return made

    numbers = spark.range(0, 400, 1, 2)
    once = SparkSavepoint().with_state("op", TOTAL, numbers, "id", fragile("once")).write(tmp_path / "once")
    assert os.path.exists(flag), "a worker was killed"
    assert {row.key: row.value.number for row in once.state("op", "total").rows()} == {n: n for n in range(400)}
    assert set(files(tmp_path / "once")) == {"_metadata", *once.manifest.files()}
    with pytest.raises(SparkFailed, match="written as a savepoint: ValueError: it breaks"):
        SparkSavepoint().with_state("op", TOTAL, numbers, "id", fragile("always")).write(tmp_path / "never")
    assert files(tmp_path / "never") == []
    with pytest.raises(NoCheckpointError):
        read_state(spark, tmp_path / "never", "op", "total")


def test_what_is_wrong_is_told_before_or_as_what_it_is_and_nothing_is_left(spark, tmp_path):
    df = spark.range(0, 100, 1, 2).selectExpr("id % 99 AS key", "id AS value", "array(id) AS list")
    begun = SparkSavepoint()
    for asked, error, told in (
        ({"key": "user"}, ColumnError, "no column 'user', but 'key', 'value', 'list'"),
        ({"order_by": "at"}, ColumnError, "no column 'at'"),
        ({"max_parallelism": 0}, ParallelismError, "max parallelism"),
        ({"df": [1]}, TypeMismatch, "the table of a state: found list"),
    ):
        with pytest.raises(error, match=told):
            begun.with_state(**{"operator": "op", "state": TOTAL, "df": df, **asked})
    with pytest.raises(ColumnError, match="no column 'map_key'"):
        begun.with_state("op", COUNTS, df)
    twice = begun.with_state("op", TOTAL, df)
    with pytest.raises(StateError, match="the state 'total' twice"):
        twice.with_state("op", TOTAL, df)
    with pytest.raises(StateError, match="a max parallelism of 128 for its other state, and of 64 for 'notes'"):
        twice.with_state("op", NOTES, df, max_parallelism=64)
    with pytest.raises(DuplicateRowError, match="'total' is given several rows for key 0: found (0 and 99|99 and 0)"):
        twice.write(tmp_path / "made")
    typed = ValueStateDescriptor("total", Types.STRING())
    with pytest.raises(TypeMismatch, match="state 'total': found int [0-9]+, wanted String"):
        begun.with_state("op", typed, df, order_by="value").write(tmp_path / "made")
    assert files(tmp_path / "made") == []
    last = begun.with_state("op", TOTAL, df, order_by="value").write(tmp_path / "made")
    assert {row.key: row.value for row in last.state("op", "total").rows()}[0] == 99
    with pytest.raises(SavepointExistsError):
        begun.with_state("op", TOTAL, df, order_by="value").write(tmp_path / "made")
    with pytest.raises(NotInSavepointError, match="did you mean 'total'"):
        read_state(spark, last.path, "op", "totl")
    for name in last.manifest.files():
        (tmp_path / "made" / name).write_bytes(b"something else" * 100)
    with pytest.raises(SparkFailed, match="read from state 'total' of operator 'op': .*DamagedFileError.*"):
        read_state(spark, last.path, "op", "total")


@pytest.mark.soak
def test_columns_of_any_name_are_keys_and_values(spark, tmp_path):
    df = spark.createDataFrame([(1, 2), (3, 4)], "`the.key` long, `the.KEY` long")
    made = SparkSavepoint().with_state("op", TOTAL, df, "the.key", "the.KEY").write(tmp_path / "made")
    assert {row.key: row.value for row in made.state("op", "total").rows()} == {1: 2, 3: 4}


@pytest.mark.soak
def test_no_row_at_all_makes_a_state_that_is_empty(spark, tmp_path):
    none = spark.range(0).selectExpr("id AS key", "id AS value")
    made = SparkSavepoint().with_state("op", TOTAL, none).write(tmp_path / "made")
    assert [state.name for state in made.operator("op").states] == ["total"]
    assert read_state(spark, made.path, "op", "total").collect() == []
    assert read_state(spark, made.path, "op", "total").columns == made.state("op", "total").schema.names
