"""Savepoints written by a program: edited ones, and those made of tables; jobs start from them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars
import pyarrow as pa
import pytest

from rayflink.common.time import Time
from rayflink.common.typeinfo import Types
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.connectors.collection import CollectSink
from rayflink.datastream.functions import KeyedProcessFunction
from rayflink.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from rayflink.datastream.window import TumblingEventTimeWindows
from rayflink.operators.windows.window import TimeWindow
from rayflink.state_processor import (
    ColumnError,
    NotInSavepointError,
    Savepoint,
    SavepointExistsError,
    StateRow,
    differences,
    read_savepoint,
)
from rayflink.testing import ScriptedSource
from tests.state_processor.programs import EVENTS, Cart, shop
from tests.state_processor.savepoints import BACKENDS, environment, savepoint_after, worked

pytestmark = pytest.mark.slow


def fresh() -> ValueStateDescriptor:
    descriptor = ValueStateDescriptor("fresh", Types.LONG())
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
    return descriptor


class Looks(KeyedProcessFunction):
    """A function that emits the state of a key, and fires its timers."""

    def open(self, context: Any) -> None:
        self.cart = context.get_state(ValueStateDescriptor("cart"))
        self.log = context.get_list_state(ListStateDescriptor("log"))
        self.visits = context.get_map_state(MapStateDescriptor("visits"))
        self.fresh = context.get_state(fresh())

    def process_element(self, user: str, context: Any) -> Iterable[Any]:
        yield user, self.cart.value(), list(self.log.get()), dict(self.visits.items()), self.fresh.value()

    def on_timer(self, timestamp: int, context: Any) -> Iterable[Any]:
        yield context.get_current_key(), "timer", timestamp


def looked_at(folder: Path, path: str, backend: str, users: list[str]) -> list[Any]:
    env = environment(folder, backend, execution__state_recovery__path=path)
    stream = env.from_source(ScriptedSource(users), None, "users")
    stream.key_by(lambda user: user).process(Looks()).uid("carts").sink_to(CollectSink())
    return list(env.execute("looks").get_accumulator_result("collect"))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_job_starts_from_state_made_of_tables(tmp_path: Path, backend: str) -> None:
    carts = pa.table({"user": ["ann", "bob"], "total": [3, 4]})
    log = polars.DataFrame({"key": ["ann", "bob", "ann"], "value": ["x", "y", "z"]})
    visits = [{"key": "ann", "map_key": 1, "value": "one"}, {"key": "ann", "map_key": 2, "value": "two"}]
    timers = pa.table({"key": ["bob"], "time": [50]})
    made = (
        Savepoint.new()
        .with_state(
            "carts", ValueStateDescriptor("cart"), carts, key="user", value=lambda row: Cart(row["total"], []),
            max_parallelism=16,
        )
        .with_state("carts", ListStateDescriptor("log"), log)
        .with_state("carts", MapStateDescriptor("visits"), visits)
        .with_state("carts", fresh(), pa.table({"key": ["bob"], "value": [7]}))
        .with_timers("carts", timers)
    )  # fmt: skip
    path = made.write(str(tmp_path / "made")).path
    rows = looked_at(tmp_path, path, backend, ["ann", "bob", "cid"])
    assert sorted(rows, key=repr) == [
        ("ann", Cart(3, []), ["x", "z"], {1: "one", 2: "two"}, None),
        ("bob", "timer", 50),
        ("bob", Cart(4, []), ["y"], {}, 7),
        ("cid", None, [], {}, None),
    ]


@pytest.mark.parametrize("backend", BACKENDS)
def test_windows_are_made_of_tables(tmp_path: Path, backend: str) -> None:
    contents = [{"user": "ann", "window_start": 0, "window_end": 100, "sum": 5}]
    times = [{"key": "ann", "window_start": 0, "window_end": 100, "time": 99}]
    sums = ReducingStateDescriptor("window-contents", max)
    made = (
        Savepoint.new()
        .with_state("sums", sums, contents, key="user", value=["user", "sum"])
        .with_timers("sums", times, "window-timers/event")
    )
    path = made.write(str(tmp_path / "made")).path
    env = environment(tmp_path, backend, execution__state_recovery__path=path)
    by_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda pair, _: pair[1])
    stream = env.from_source(ScriptedSource([("ann", 10), ("bob", 20)]), by_time, "pairs")
    windows = stream.key_by(lambda pair: pair[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(100)))
    windows.reduce(lambda a, b: (a[0], a[1] + b[1])).uid("sums").sink_to(CollectSink())
    rows = env.execute("sums").get_accumulator_result("collect")
    assert sorted(rows) == [("ann", 15), ("bob", 20)]


@pytest.fixture(scope="module", params=BACKENDS)
def taken(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Savepoint:
    env = environment(tmp_path_factory.mktemp("savepoints"), request.param)
    shop(env)
    return Savepoint.load(savepoint_after(env, worked("Window", len(EVENTS))))


def changed_counts(before: Savepoint, after: Savepoint) -> dict[tuple[str, str], tuple[int, ...]]:
    found = {(one.operator, one.state): tuple(one.counts().values()) for one in differences(before, after)}
    return {place: counts for place, counts in found.items() if any(counts)}


def test_what_is_written_anew_is_what_was_read(taken: Savepoint, tmp_path: Path) -> None:
    copy = taken.write(str(tmp_path / "copy"))
    assert changed_counts(taken, copy) == {}
    assert [one.states for one in copy.manifest.operators] == [one.states for one in taken.manifest.operators]
    with pytest.raises(SavepointExistsError, match="give a folder that does not exist yet"):
        taken.write(str(tmp_path / "copy"))


def test_a_function_changes_or_removes_rows_and_nothing_else_differs(taken: Savepoint, tmp_path: Path) -> None:
    def doubled(row: StateRow) -> StateRow | None:
        return None if row.key == "user 1" else row._replace(value=row.value * 2)

    edited = taken.with_state("carts", "sum", doubled).write(str(tmp_path / "edited"))
    assert {row.key: row.value for row in edited.state("carts", "sum").rows()} == {"user 0": 36, "user 2": 30}
    assert changed_counts(taken, edited) == {("carts", "sum"): (0, 1, 2)}
    (changes,) = [one for one in differences(taken, edited) if one.state == "sum"]
    assert sorted(changes.to_arrow().to_pylist(), key=lambda row: str(row["key"])) == [
        {"change": "changed", "key": "user 0", "before": 18, "after": 36},
        {"change": "removed", "key": "user 1", "before": 12, "after": None},
        {"change": "changed", "key": "user 2", "before": 15, "after": 30},
    ]


def test_a_table_read_and_changed_is_written_with_the_classes_of_the_program(
    taken: Savepoint, tmp_path: Path
) -> None:
    rows = taken.state("carts", "cart").to_arrow().to_pylist()
    for row in rows:
        row["value"]["total"] += 100
    new = [*rows, {"key": "user 9", "value": {"total": 1, "items": []}}]
    edited = taken.with_state("carts", "cart", pa.Table.from_pylist(new)).write(str(tmp_path / "edited"))
    carts = {row.key: row.value for row in edited.state("carts", "cart").rows()}
    assert carts["user 9"] == Cart(1, []) and carts["user 2"] == Cart(115, ["item 2", "item 5", "item 8"])
    told = looked_at(tmp_path, edited.without_operator("events").without_operator("sums")
                     .write(str(tmp_path / "alone")).path, "hashmap", ["user 9"])  # fmt: skip
    assert ("user 9", Cart(1, []), [], {}, None) in told


def test_operator_state_windows_and_timers_are_edited(taken: Savepoint, tmp_path: Path) -> None:
    window = TimeWindow(0, 100)
    edited = (
        taken.with_state("carts", "seen", lambda row: row if row.value < 3 else None)
        .with_state("sums", "window-contents", lambda row: row._replace(value=(row.key, 1)))
        .with_state("carts", "user-timers/event", [StateRow("user 0", 7)])
        .without_state("carts", "visits")
        .write(str(tmp_path / "edited"))
    )
    assert sorted(row.value for row in edited.state("carts", "seen").rows()) == [0, 1, 2]
    assert {(row.namespace, row.value[1]) for row in edited.state("sums", "window-contents").rows()} == {(window, 1)}
    assert edited.state("carts", "user-timers/event").to_arrow().to_pylist() == [
        {"key": "user 0", "time": 7, "domain": "event"}]  # fmt: skip
    assert "visits" not in [state.name for state in edited.operator("carts").states]


def test_state_by_key_and_a_list_of_one_name_are_compared_each_with_its_own(taken: Savepoint) -> None:
    edited = taken.with_state("carts", ValueStateDescriptor("seen"), [{"key": "user 0", "value": 1}])
    edited = edited.without_state("events", "source-enumerator")
    changes = [(one.operator, one.state, one.kind, one.counts()) for one in differences(taken, edited)]
    assert ("carts", "seen", "value", {"added": 1, "removed": 0, "changed": 0}) in changes
    assert ("carts", "seen", "split list", {"added": 0, "removed": 0, "changed": 0}) in changes
    assert ("events", "source-enumerator", "enumerator", {"added": 0, "removed": 1, "changed": 0}) in changes


def test_a_savepoint_is_named_by_a_path_too(tmp_path: Path) -> None:
    made = Savepoint.new().with_state("carts", ValueStateDescriptor("new"), [{"key": "ann", "value": 1}])
    made.write(tmp_path / "made")
    (row,) = read_savepoint(tmp_path / "made").state("carts", "new").rows()
    assert (row.key, row.value) == ("ann", 1)
    with pytest.raises(TypeError, match="not int"):
        read_savepoint(5)  # type: ignore[arg-type]


def test_what_cannot_be_edited_is_refused(taken: Savepoint, tmp_path: Path) -> None:
    with pytest.raises(NotInSavepointError, match="has no state 'carts'; did you mean 'cart'"):
        taken.with_state("carts", "carts", [])
    with pytest.raises(NotInSavepointError, match="has no operator 'basket'"):
        taken.with_state("basket", "cart", [])
    with pytest.raises(ColumnError, match="no column 'value', but 'key', 'total'; name the columns"):
        taken.with_state("carts", "cart", pa.table({"key": ["a"], "total": [1]}))
    with pytest.raises(Exception, match="is the operator's own|operator's own"):
        taken.with_state("events", "source-splits", [])
    edited = taken.with_state("carts", "sum", lambda row: row._replace(key="another"))
    with pytest.raises(Exception, match="rows of other keys are given as a table"):
        edited.write(str(tmp_path / "edited"))
    assert not list((tmp_path / "edited").glob("*")) if (tmp_path / "edited").exists() else True
