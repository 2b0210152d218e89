"""Savepoints as tables: every kind of state, every backend, without the job's classes, and incremental files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars
import pyarrow as pa
import pytest

from rayflink.state_processor import NotInSavepointError, Savepoint, read_savepoint
from rayflink.state_processor.shares import shares_of
from tests.state_processor.programs import EVENTS, Cart, shop
from tests.state_processor.savepoints import BACKENDS, environment, savepoint_after, wait_until, worked

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=BACKENDS)
def savepoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Savepoint:
    env = environment(tmp_path_factory.mktemp("savepoints"), request.param)
    shop(env)
    return read_savepoint(savepoint_after(env, worked("Window", len(EVENTS))))


def sorted_rows(savepoint: Savepoint, operator: str, state: str) -> list[dict[str, Any]]:
    return sorted(savepoint.state(operator, state).to_arrow().to_pylist(), key=repr)


@pytest.mark.spec("H58", "X30", "G02", "G03", "belongs", "registered", "G33", "operator", "keyed")
def test_a_savepoint_maps_operators_and_names_to_states(savepoint: Savepoint) -> None:
    found = {op.uid: {state.name: state.kind for state in op.states} for op in savepoint.operators if op.uid}
    assert found == {
        "events": {"source-splits": "splits", "source-enumerator": "enumerator"},
        "carts": {
            "cart": "value", "log": "list", "visits": "map", "sum": "reducing", "fresh": "value",
            "user-timers/event": "timers", "user-timers/processing": "timers",
            "seen": "split list", "_watermark": "union list",
        },
        "sums": {
            "window-contents": "reducing", "window-timers/event": "timers", "window-timers/processing": "timers",
            "_watermark": "union list",
        },
    }  # fmt: skip


def test_keyed_state_is_a_table_of_keys_and_values(savepoint: Savepoint) -> None:
    carts = savepoint.state("carts", "cart")
    assert sorted_rows(savepoint, "carts", "cart")[2] == {
        "key": "user 2",
        "value": {"total": 15, "items": ["item 2", "item 5", "item 8"]},
    }
    assert {row.key: row.value for row in carts.rows()}["user 2"] == Cart(15, ["item 2", "item 5", "item 8"])
    assert carts.schema.field("value").type == pa.struct({"total": pa.int64(), "items": pa.list_(pa.string())})
    assert isinstance(carts.to_polars(), polars.DataFrame) and carts.to_polars().shape == (3, 2)
    assert [row for row in sorted_rows(savepoint, "carts", "log") if row["key"] == "user 1"] == [
        {"key": "user 1", "position": 0, "value": {"x": 1, "y": -1}},
        {"key": "user 1", "position": 1, "value": {"x": 4, "y": -4}},
        {"key": "user 1", "position": 2, "value": {"x": 7, "y": -7}},
    ]
    assert sorted_rows(savepoint, "carts", "sum")[1] == {"key": "user 1", "value": 12}
    visits = sorted_rows(savepoint, "carts", "visits")
    assert len(visits) == 10 and visits[-1] == {"key": "user 2", "map_key": 8, "value": "user 2"}


def test_state_with_a_time_to_live_says_when_it_was_last_accessed(savepoint: Savepoint) -> None:
    rows = sorted_rows(savepoint, "carts", "fresh")
    assert [(row["key"], row["value"]) for row in rows] == [("user 0", 9), ("user 1", 7), ("user 2", 8)]
    assert savepoint.state("carts", "fresh").expires
    assert all(row["last_access"] > 1_700_000_000_000 for row in rows)


def test_timers_have_a_time_and_a_clock(savepoint: Savepoint) -> None:
    timers = sorted_rows(savepoint, "carts", "user-timers/event")
    assert sorted(row["time"] for row in timers) == list(range(1000, 1010))
    assert {(row["key"], row["domain"]) for row in timers} == {(f"user {n}", "event") for n in range(3)}
    assert sorted_rows(savepoint, "carts", "user-timers/processing")[0] == {
        "key": "user 0", "time": 4_000_000_000_000, "domain": "processing"}  # fmt: skip


def test_window_state_has_the_bounds_of_its_window(savepoint: Savepoint) -> None:
    assert sorted_rows(savepoint, "sums", "window-contents")[0] == {
        "key": "user 0", "window_start": 0, "window_end": 100, "value": {"f0": "user 0", "f1": 18}}  # fmt: skip
    assert sorted_rows(savepoint, "sums", "window-timers/event")[0]["time"] == 99


def test_operator_state_and_splits_say_whose_they_are(savepoint: Savepoint) -> None:
    seen = savepoint.state("carts", "seen").to_arrow()
    assert seen.column_names == ["subtask", "position", "value"]
    assert sorted(seen["value"].to_pylist()) == list(range(10))
    splits = savepoint.state("events", "source-splits").to_arrow().to_pylist()
    assert [row["value"] for row in splits] == [{"number": 0, "position": len(EVENTS) + 1}]


def test_what_is_not_there_is_refused_with_what_may_be_meant(savepoint: Savepoint) -> None:
    with pytest.raises(NotInSavepointError, match="has no operator 'cart'; did you mean 'carts'"):
        savepoint.operator("cart")
    with pytest.raises(NotInSavepointError, match="operator 'carts' .* has no state 'carts'; did you mean 'cart'"):
        savepoint.state("carts", "carts")
    assert savepoint.operator("carts of users").uid == "carts"
    assert savepoint.operator(savepoint.operator("carts").id).uid == "carts"


def test_the_files_of_an_incremental_checkpoint_are_read(tmp_path: Path) -> None:
    options = {
        "state.backend.rocksdb.memory.fixed-per-slot": "1 kb",
        "execution.checkpointing.interval": "20 ms",
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    }
    env = environment(tmp_path, "rocksdb", **options)
    shop(env)
    client = env.execute_async("incremental")
    wait_until(client, worked("Window", len(EVENTS)))
    done = client.checkpoints()["counts"]["completed"]
    wait_until(client, lambda _: client.checkpoints()["counts"]["completed"] >= done + 2)
    client.cancel().result()
    client.get_job_execution_result().exception()
    complete = (tmp_path / "checkpoints" / client.get_job_id()).glob("chk-*/_metadata")
    checkpoint = read_savepoint(str(max(complete, key=lambda file: int(file.parent.name[4:])).parent))
    assert has_databases(checkpoint)
    assert len(sorted_rows(checkpoint, "carts", "visits")) == len(EVENTS)
    assert len(sorted_rows(checkpoint, "carts", "user-timers/event")) == len(EVENTS)
    for name in ("visits", "user-timers/event"):  # a database is one share, with the timers that were in memory
        shares = shares_of(checkpoint.operator("carts"), name, checkpoint.base, 1)
        assert len(shares) >= 2
        assert sorted(str(row) for share in shares for row in share.read().rows()) == sorted(
            map(str, checkpoint.state("carts", name).rows())
        )


def has_databases(savepoint: Savepoint) -> bool:
    parts = savepoint.operator("carts").manifest.subtasks
    return any(part is not None and part.databases for part in parts)
