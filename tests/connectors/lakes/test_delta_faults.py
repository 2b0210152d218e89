"""The Delta sink under faults: killed at every file and commit, on changing parallelism, beside zombies and others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.connectors.delta.delta_sink import DeltaSink
from rayflink.connectors.lakes.data_file_writing import DataFileWriter
from tests.connectors.lakes.lake_model import Faults, Killed, LakeModel, kill_at_every_point

deltalake = pytest.importorskip("deltalake")
pytestmark = pytest.mark.slow

SCHEMA = pyarrow.schema([("n", pyarrow.int64()), ("word", pyarrow.string())])


def numbers_in(path: Path) -> list[int]:
    if not deltalake.DeltaTable.is_deltatable(str(path)):
        return []
    return sorted(pyarrow.table(deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(path))).execute(
        "SELECT n FROM t").read_all())["n"].to_pylist())  # fmt: skip


def commits_in(path: Path) -> list[int]:
    """The ids of the checkpoints that were committed, oldest first."""
    history = deltalake.DeltaTable(str(path)).history()
    return [int(entry["rayflink.checkpoint-id"]) for entry in reversed(history) if "rayflink.checkpoint-id" in entry]


def new_models(folder: Path, parallelism: int, partitioned: bool) -> Callable[[], LakeModel]:
    made = iter(range(10_000))

    def new_model() -> LakeModel:
        path = folder / str(next(made))

        def sink() -> DeltaSink:
            builder = DeltaSink.for_row_data(path, SCHEMA)
            return (builder.with_partition_columns("word") if partitioned else builder).build()

        return LakeModel(sink, lambda: numbers_in(path), parallelism)

    return new_model


POINTS = [
    (DataFileWriter, "write", "write"),
    (DataFileWriter, "finish", "stage"),
    (deltalake.DeltaTable, "create_write_transaction", "commit"),
]


@pytest.mark.spec("H24")
@pytest.mark.parametrize("fault", ["before", "after", "lost"])
def test_a_kill_at_any_write_file_or_commit_leaves_each_row_once(tmp_path: Path, fault: str) -> None:
    faults = Faults()
    with faults.installed(*POINTS):
        assert kill_at_every_point(new_models(tmp_path, 2, fault == "after"), faults, fault) > 10


histories = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 6)),
        st.tuples(st.just("checkpoint"), st.sampled_from(["complete", "unheard", "aborted"])),
        st.tuples(st.just("start"), st.integers(1, 3)),
        st.tuples(st.just("fault"), st.tuples(st.sampled_from(["before", "after", "lost"]), st.integers(0, 6))),
    ),
    max_size=10,
)


@settings(max_examples=15)
@given(history=histories)
def test_whatever_happens_each_row_is_written_once(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[str, Any]]
) -> None:
    faults = Faults()
    with faults.installed(*POINTS):
        model = new_models(tmp_path_factory.mktemp("delta"), 2, False)()
        for step, argument in history:
            try:
                if step == "fault":
                    faults.arm(*argument)
                else:
                    getattr(model, step)(argument)
            except Killed:
                faults.point = -1
                model.start(2)
            model.check()
        faults.point = -1
        model.write(1)
        model.finish()
        model.haunt()
        model.check_all()


def test_one_version_a_checkpoint_and_none_for_an_empty_one(tmp_path: Path) -> None:
    model = new_models(tmp_path, 3, False)()
    for count in (5, 0, 4, 0, 0, 1):
        model.write(count)
        model.checkpoint("complete")
    model.check_all()
    assert commits_in(tmp_path / "0") == [1, 3, 6]


def test_a_zombie_and_its_successor_commit_a_checkpoint_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = new_models(tmp_path, 1, False)()
    model.write(3)
    model.checkpoint("complete")
    model.write(3)
    model.checkpoint("unheard")
    zombie, real, raced = model.committer, deltalake.DeltaTable.create_write_transaction, []
    assert zombie is not None

    def race(table: Any, *args: Any, **kwargs: Any) -> Any:
        if not raced:  # the zombie has looked at the table, and its successor commits before it does
            raced.append(True)
            model.start(2)
        return real(table, *args, **kwargs)

    monkeypatch.setattr(deltalake.DeltaTable, "create_write_transaction", race)
    zombie.notify_checkpoint_complete(2)
    assert raced and commits_in(tmp_path / "0") == [1, 2]
    model.check_all()


def test_two_jobs_append_to_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "0"
    model = new_models(tmp_path, 1, False)()
    model.write(2)
    model.checkpoint("complete")
    real = deltalake.DeltaTable.create_write_transaction

    def other_first(table: Any, *args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(deltalake.DeltaTable, "create_write_transaction", real)
        deltalake.write_deltalake(str(path), pyarrow.table({"n": [100], "word": ["other"]}), mode="append")
        return real(table, *args, **kwargs)

    monkeypatch.setattr(deltalake.DeltaTable, "create_write_transaction", other_first)
    model.write(2)
    model.checkpoint("complete")
    assert numbers_in(path) == [0, 1, 2, 3, 100]
