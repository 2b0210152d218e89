"""Rows on their way into a savepoint and out of it, without Spark."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rayflink.common.time import Time
from rayflink.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from rayflink.spark import DuplicateRowError
from rayflink.spark.state_rows import GivenState, contents, placed
from rayflink.spark.state_writing import STORED_BYTES, SparkSavepoint, Written, _Writing, ensure_seen, remove_others
from rayflink.state.errors import InvalidKeyError, SerializationError, StateError
from rayflink.state.storage.storage_schemes import open_storage
from rayflink.state_processor import ColumnError, Savepoint, UnfitValueError
from rayflink.state_processor.columns import REPR, array
from rayflink.state_processor.edits import TimersDescriptor
from rayflink.state_processor.shares import shares_of
from rayflink.state_processor.states import joined_schema

VALUE, LIST, MAP = ValueStateDescriptor("v"), ListStateDescriptor("l"), MapStateDescriptor("m")
MANY = 1 << 30
DAY = datetime(2013, 1, 1, tzinfo=timezone.utc)
WINDOW = {"window_start": DAY, "window_end": DAY}


def given(descriptor: StateDescriptor, order_by: tuple[str, ...] = (), **changed: Any) -> GivenState:
    columns = {"key": "key", "value": "value", **changed}
    return GivenState(0, descriptor, columns["key"], columns["value"], order_by, 128, 7_000)


def sent(state: GivenState, table: list[dict[str, Any]], number: int = 0) -> list[pa.RecordBatch]:
    return list(placed(pa.Table.from_pylist(table).to_batches(max_chunksize=3), number, state))


def by_place(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What Spark's shuffle does."""
    yield from pa.Table.from_batches(batches).sort_by("place").to_batches(max_chunksize=2)


def held(state: GivenState, table: list[dict[str, Any]]) -> dict[Any, Any]:
    """Key and namespace -> what is stored."""
    found = {}
    for _, _, content, _ in contents(by_place(sent(state, table)), [state]):
        kind, rows = content["tables"][state.descriptor.name]
        assert kind == state.descriptor.stored_kind
        found.update({(key, namespace): value for _, namespace, key, value in rows})
    return found


def test_each_key_is_in_the_key_group_that_a_job_looks_for_it_in(tmp_path: Path) -> None:
    table = [{"key": (number, f"k{number}ß"), "value": number} for number in range(50)]
    state = given(VALUE)
    columns = [{"key": {"f0": key[0], "f1": key[1]}, "value": value} for (key, value) in map(dict.values, table)]
    groups = {group: content for _, group, content, _ in contents(by_place(sent(state, columns)), [state])}
    made = Savepoint.new().with_state("op", VALUE, table).write(tmp_path / "made")
    wanted = dict(made.operator("op").contents.groups())
    rows = {group: sorted(content["tables"]["v"][1], key=str) for group, content in groups.items()}
    assert {group: {row[2:] for row in held} for group, held in rows.items()} == {
        group: {row[2:] for row in content["tables"]["v"][1]} for group, content in wanted.items()
    }


def test_several_states_of_an_operator_are_one_content_and_tell_what_they_are() -> None:
    states = [given(VALUE), given(MAP), given(TimersDescriptor("user-timers/event"), value="time")]
    batches = [
        *sent(states[0], [{"key": None, "value": 1}], 0),
        *sent(states[1], [{"key": None, "map_key": part, "value": part * 2} for part in range(4)], 1),
        *sent(states[2], [{"key": None, "time": 5}, {"key": None, "time": 5}, {"key": None, "time": 4}], 2),
    ]
    ((operator, _, content, summaries),) = contents(by_place(batches), states)
    assert operator == 0 and content["tables"]["v"] == ("value", [(0, None, None, 1)])
    assert content["tables"]["m"] == ("map", [(0, None, None, {0: 0, 1: 2, 2: 4, 3: 6})])
    assert sorted(row[3] for row in content["timers"]["user-timers/event"]) == [4, 5]
    assert [(one.name, one.kind, one.value_type) for one in summaries] == [
        ("v", "value", "int"),
        ("m", "map", "int"),
        ("user-timers/event", "timers", ""),
    ]


def test_several_rows_for_one_value_are_refused_by_its_key() -> None:
    twice = [{"key": "a", "value": 1, "at": 3}, {"key": "b", "value": 2, "at": 1}, {"key": "a", "value": 5, "at": 2}]
    with pytest.raises(DuplicateRowError, match=r"state 'v' is given several rows for key 'a': found 1 and 5, wanted"):
        held(given(VALUE), twice)
    with pytest.raises(DuplicateRowError, match="for key None"):
        held(given(VALUE), [{"key": None, "value": 1}] * 2)
    with pytest.raises(DuplicateRowError, match="for key 1, map key 'x': found 1 and 2"):
        held(given(MAP), [{"key": 1, "map_key": "x", "value": value} for value in (1, 2)])
    with pytest.raises(DuplicateRowError, match=r"namespace TimeWindow\(start=0, end=5\)"):
        held(given(VALUE), [{"key": 1, "window_start": 0, "window_end": 5, "value": value} for value in (1, 2)])


def test_with_an_order_the_last_row_counts_and_lists_are_in_it() -> None:
    rows = [{"key": "a", "value": 1, "at": 3}, {"key": "a", "value": 5, "at": 2}, {"key": "a", "value": 6, "at": None}]
    assert held(given(VALUE, ("at",)), rows) == {("a", None): 1}
    assert held(given(LIST, ("at",)), rows) == {("a", None): [6, 5, 1]}
    assert held(given(LIST, ("at", "value")), [*rows, {"key": "a", "value": 0, "at": 2}]) == {("a", None): [6, 0, 5, 1]}
    nan = [{"key": "a", "value": 2, "at": float("nan")}, {"key": "a", "value": 1, "at": 9.5}]
    assert held(given(VALUE, ("at",)), nan) == {("a", None): 2}
    with pytest.raises(DuplicateRowError, match="found 1 and 7"):
        held(given(VALUE, ("at",)), [*rows, {"key": "a", "value": 7, "at": 3}])
    with pytest.raises(DuplicateRowError, match="found 2 and 3"):
        held(given(VALUE, ("at",)), [nan[0], {**nan[0], "value": 3, "at": float("nan")}])


def test_rows_of_one_order_that_are_not_the_last_do_not_matter() -> None:
    earlier = [{"key": "a", "value": value, "at": 1} for value in (1, 2, 3)]
    assert held(given(VALUE, ("at",)), [{"key": "a", "value": 9, "at": 2}, *earlier]) == {("a", None): 9}
    assert held(given(MAP, ("at",)), [{**row, "map_key": row["value"] % 2} for row in earlier[1:]]) == {
        ("a", None): {0: 2, 1: 3}
    }


def test_state_that_expires_was_accessed_now_where_nothing_is_said() -> None:
    fresh = ValueStateDescriptor("fresh")
    fresh.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
    rows = [{"key": 1, "value": "x", "last_access": 5}, {"key": 2, "value": "y", "last_access": None}]
    assert held(given(fresh), rows) == {(1, None): (5, "x"), (2, None): (7_000, "y")}


@pytest.mark.parametrize(
    ("state", "row", "error", "told"),
    [
        (given(VALUE, key="user"), {"key": 1, "value": 2}, ColumnError, "no column 'user'"),
        (given(VALUE), {"key": {"a": 1}, "value": 2}, InvalidKeyError, "cannot be a key"),
        (given(VALUE, value=lambda row: print), {"key": 1, "value": 2}, None, ""),
        (given(VALUE, value=lambda row: lambda: 1), {"key": 7, "value": 2}, SerializationError, "state 'v' of key 7"),
        (given(MAP), {"key": 1, "map_key": [1], "value": 2}, StateError, r"map or a namespace \(None, \[1\]\)"),
        (given(VALUE), {"key": 1, "value": 2, **WINDOW}, StateError, r"window must be an int of .*unix_millis\("),
        (given(TimersDescriptor("user-timers/event"), value="at"), {"key": 1, "at": DAY}, StateError, "must be an int"),
        (
            given(VALUE, ("at",)),
            [{"key": 1, "value": 2, "at": at} for at in ([1], [None])],
            StateError,
            "'v' cannot be",
        ),
    ],
)
def test_what_is_wrong_with_rows_comes_as_an_error_and_not_as_a_failure_of_a_task(
    tmp_path: Path, state: GivenState, row: Any, error: type[Exception] | None, told: str
) -> None:
    (answer,) = writing(tmp_path, [state])(by_place(sent(state, row if isinstance(row, list) else [row])))
    found = pickle.loads(answer.column("answer")[0].as_py())
    if error is None:
        assert isinstance(found, Written)
        return
    with pytest.raises(error, match=told):
        raise found
    assert files(tmp_path) == []


def test_a_moment_that_python_lacks_is_told_with_its_column() -> None:
    far = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([1 << 58], pa.timestamp("us"))], names=["key", "value"])
    (answer,) = placed([far], 0, given(VALUE))
    with pytest.raises(StateError, match=r"column 'value' \(timestamp\[us\]\) has a value that Python lacks"):
        raise pickle.loads(answer.column("row")[0].as_py())


def test_a_state_is_given_by_its_descriptor() -> None:
    with pytest.raises(StateError, match="a state of operator 'op' was given as 'total'; give its descriptor"):
        SparkSavepoint().with_state("op", "total", None)  # type: ignore[arg-type]


def writing(folder: Path, states: list[GivenState], run: str = "run", stored_bytes: int = STORED_BYTES) -> _Writing:
    from rayflink.actors.on_ray.driver.user_program import pack

    return _Writing(str(folder), {}, run, pack(states), stored_bytes)


def files(folder: Path) -> list[str]:
    return open_storage(str(folder)).list()


def test_attempts_share_no_file_and_those_that_are_not_named_are_removed(tmp_path: Path) -> None:
    state = given(VALUE)
    batches = sent(state, [{"key": number, "value": "x" * 500} for number in range(40)])
    for run in ("run", "other"):
        first, second = (writing(tmp_path, [state], run, 2_000).written(by_place(batches)) for _ in range(2))
    assert len(first.groups) == len(second.groups) > 20
    named = {blob.path for _, _, blob in second.groups}
    assert len(named) > 5, "a file for every few key groups"
    assert not named & {blob.path for _, _, blob in first.groups}
    ensure_seen(open_storage(str(tmp_path)), named)
    with pytest.raises(
        StateError, match=r"could not find elsewhere: a task of Spark has written it, .* that all share"
    ):
        ensure_seen(open_storage(str(tmp_path)), {*named, "elsewhere"})
    before = files(tmp_path)
    remove_others(open_storage(str(tmp_path)), "other", named)
    assert set(files(tmp_path)) == {path for path in before if path.startswith("run-")} | named


def test_an_attempt_that_fails_midway_leaves_no_file(tmp_path: Path) -> None:
    state = given(VALUE)
    batches = sent(state, [{"key": number, "value": "x" * 500} for number in range(40)])

    def fails() -> Iterator[pa.RecordBatch]:
        yield from list(by_place(batches))[:-1]
        assert files(tmp_path), "some are stored by then"
        raise OSError("the executor is gone")

    with pytest.raises(OSError, match="executor is gone"):
        writing(tmp_path, [state], stored_bytes=2_000).written(fails())
    assert files(tmp_path) == []


def test_shares_are_of_about_one_size_and_give_together_what_the_state_gives(tmp_path: Path) -> None:
    table = [{"key": number, "value": "x" * 100} for number in range(500)]
    made = Savepoint.new().with_state("op", VALUE, table).with_state("op", LIST, table[:9]).write(tmp_path / "made")
    for most, fewest in ((1, 120), (5_000, 5), (MANY, 1)):
        shares = [pickle.loads(pickle.dumps(one)) for one in shares_of(made.operator("op"), "v", made.base, most)]
        assert len(shares) >= fewest and (most != MANY or len(shares) == 1)
        assert [row for one in shares for row in one.read().rows()] == list(made.state("op", "v").rows())
    listed = shares_of(made.operator("op"), "l", made.base, 1)
    assert [row for one in listed for row in one.read().rows()] == list(made.state("op", "l").rows())


def test_a_state_without_rows_has_one_share_of_none(tmp_path: Path) -> None:
    made = Savepoint.new().with_state("op", VALUE, []).write(tmp_path / "made")
    (share,) = shares_of(made.operator("op"), "v", made.base, MANY)
    assert list(share.read().rows()) == [] and share.read().schema == made.state("op", "v").schema


def test_columns_that_are_asked_for_are_given_and_values_that_do_not_fit_are_named(tmp_path: Path) -> None:
    table = [{"key": "a", "value": 1}, {"key": "b", "value": "x"}]
    state = Savepoint.new().with_state("op", VALUE, table).write(tmp_path / "made").state("op", "v")
    assert state.to_arrow().column("value").to_pylist() in (["1", "'x'"], ["'x'", "1"])
    keys = pa.Table.from_batches(state.batches(pa.schema([("key", pa.string())])))
    assert keys.column_names == ["key"] and sorted(keys.column("key").to_pylist()) == ["a", "b"]
    with pytest.raises(UnfitValueError, match=r"column 'value' of type int64: found 'x' \(str\) of key 'b'"):
        list(state.batches(pa.schema([("value", pa.int64())])))
    with pytest.raises(UnfitValueError, match="column 'total': found value state with the columns subtask, key"):
        list(state.batches(pa.schema([("total", pa.int64())])))


@pytest.mark.parametrize(
    ("values", "kind", "told"),
    [
        ([1, 1.5], pa.int64(), r"found 1.5 \(float\) of key 1"),
        ([DAY.date(), DAY.replace(hour=5)], pa.date32(), r"found datetime.datetime\(2013, .* \(datetime\) of key 1"),
        ([DAY.replace(tzinfo=None), DAY], None, ""),
        ([(b"a", 1), ("a", 1)], None, ""),
        ([[DAY.date()], [DAY]], None, ""),
    ],
)
def test_values_are_never_bent_to_fit_a_column(tmp_path: Path, values: list[Any], kind: Any, told: str) -> None:
    table = [{"key": key, "value": value} for key, value in enumerate(values)]
    state = Savepoint.new().with_state("op", VALUE, table).write(tmp_path / "made").state("op", "v")
    if kind is not None:
        with pytest.raises(UnfitValueError, match=told):
            list(state.batches(pa.schema([("value", kind)])))
        return
    for parts in ([table], [table[:1], table[1:]]):
        fields = [array([row["value"] for row in part])[1].with_name("value") for part in parts]
        (field,) = joined_schema(pa.schema([field]) for field in fields)
        assert (field.type, field.metadata) == (pa.string(), REPR)
    assert sorted(state.to_arrow().column("value").to_pylist()) == sorted(map(repr, values))


def test_whole_numbers_and_decimals_are_one_column(tmp_path: Path) -> None:
    table = [{"key": key, "value": value} for key, value in enumerate([0, Decimal("1.50")])]
    state = Savepoint.new().with_state("op", VALUE, table).write(tmp_path / "made").state("op", "v")
    assert sorted(state.to_arrow().column("value").to_pylist()) == [0, Decimal("1.50")]
