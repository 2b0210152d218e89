"""Savepoints made of tables, without any job: the content is the input, and invalid input is refused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rayflink.common.time import Time
from rayflink.datastream.state import MapStateDescriptor, StateTtlConfig, ValueStateDescriptor
from rayflink.state.errors import ParallelismError
from rayflink.state.snapshots import InlineSnapshots
from rayflink.state.storage.manifest import OperatorManifest
from rayflink.state_processor import ColumnError, OperatorState, Savepoint, StateRow
from rayflink.state_processor.edited import NoContents

VALUE = ValueStateDescriptor("v")


def fresh() -> ValueStateDescriptor:
    descriptor = ValueStateDescriptor("fresh")
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
    return descriptor


def rows_of(savepoint: Savepoint, state: str = "v") -> list[StateRow]:
    return list(savepoint.state("op", state).rows())


@pytest.mark.parametrize(
    "table",
    [[], pa.table({"key": pa.array([], pa.int64()), "value": pa.array([], pa.int64())}), iter(())],
    ids=["list", "arrow", "iterator"],
)
def test_state_without_rows_is_written_and_read(tmp_path: Path, table: Any) -> None:
    made = Savepoint.new().with_state("op", VALUE, table).write(str(tmp_path / "made"))
    assert rows_of(made) == [] and made.state("op", "v").to_arrow().num_rows == 0
    filled = made.with_state("op", VALUE, [{"key": 1, "value": 2}]).write(str(tmp_path / "filled"))
    assert rows_of(filled) == [StateRow(1, 2)]


def test_keys_of_many_types_are_each_in_their_key_group(tmp_path: Path) -> None:
    keys = [1, "a", None, 1.5, (1, "x"), b"z", float("nan"), 2**70] * 5
    table = [{"key": key, "value": at} for at, key in enumerate(keys)]
    for groups in (1, 7, 32768):
        made = Savepoint.new().with_state("op", VALUE, table, max_parallelism=groups).write(str(tmp_path / f"{groups}"))
        found = {repr(row.key): row.value for row in rows_of(made)}
        assert found == {repr(key): at + 32 for at, key in enumerate(keys[:8])}, "the last of equal keys"
    with pytest.raises(ParallelismError):
        Savepoint.new().with_state("op", VALUE, table, max_parallelism=0)


@pytest.mark.parametrize("row", [{"key": 1, "value": 2}, {"key": 1, "position": 0, "value": 2}])
def test_a_map_without_map_keys_is_refused(row: dict[str, int]) -> None:
    with pytest.raises(ColumnError, match="no column 'map_key'"):
        Savepoint.new().with_state("op", MapStateDescriptor("m"), [row])


def test_a_window_without_its_end_is_refused() -> None:
    with pytest.raises(ColumnError, match="no column 'window_end'"):
        Savepoint.new().with_state("op", VALUE, [{"key": 1, "value": 2, "window_start": 5}])


@pytest.mark.parametrize("time", [datetime(2024, 1, 1), 1.5, None, 2**63])
def test_a_time_that_is_none_is_refused(tmp_path: Path, time: Any) -> None:
    timers = Savepoint.new().with_timers("op", [{"key": 1, "time": time}])
    with pytest.raises((TypeError, ValueError), match="a timer's time must be"):
        timers.write(str(tmp_path / "timers"))
    if time is not None:
        accessed = Savepoint.new().with_state("op", fresh(), [{"key": 1, "value": 2, "last_access": time}])
        with pytest.raises((TypeError, ValueError), match="the last access of a row must be"):
            accessed.write(str(tmp_path / "accessed"))
    assert not (tmp_path / "timers").exists()


def test_a_row_that_a_function_makes_anew_keeps_its_last_access(tmp_path: Path) -> None:
    made = Savepoint.new().with_state("op", fresh(), [{"key": 1, "value": 2, "last_access": 77}])
    for change in (lambda row: StateRow(row.key, 5), lambda row: row._replace(value=5)):
        assert rows_of(made.with_state("op", "fresh", change), "fresh") == [StateRow(1, 5, last_access=77)]
    older = made.with_state("op", "fresh", lambda row: row._replace(last_access=3)).write(str(tmp_path / "older"))
    assert rows_of(older, "fresh") == [StateRow(1, 2, last_access=3)]


class Raw(NoContents):
    def raw_groups(self) -> Iterator[tuple[int, bytes]]:
        yield 3, b"three"


def test_what_a_user_or_an_enumerator_wrote_as_bytes_is_removed_by_name(tmp_path: Path) -> None:
    manifest = OperatorManifest("0" * 32, "op", "op", 1, 128, (None,), coordinator=b"splits")
    both = Savepoint(Savepoint.new().manifest, [OperatorState(manifest, Raw(), InlineSnapshots())])
    names = {"raw keyed state", "source-enumerator"}
    assert {state.name for state in both.operator("op").states} == names
    for gone in names:
        left = both.without_state("op", gone).write(str(tmp_path / gone))
        assert {state.name for state in left.operator("op").states} == names - {gone}
