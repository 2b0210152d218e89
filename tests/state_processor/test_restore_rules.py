"""Restore rules: what a program may change between a savepoint and the job that starts from it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rayflink.actors.messages.in_flight import CHANNELS, to_send
from rayflink.common.errors import RayflinkError
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import DataStream
from rayflink.state.snapshots import StoredSnapshot
from rayflink.state.storage.manifest import CheckpointManifest, OperatorManifest, metadata_path
from rayflink.state.storage.manifest_format import encode_manifest
from rayflink.state.storage.storage_schemes import open_storage
from rayflink.state_processor import check_savepoint, read_savepoint
from rayflink.testing import ScriptedSource
from tests.state_processor.savepoints import NEVER, environment, savepoint_after, worked

pytestmark = pytest.mark.slow
FIRST = [(f"k{number % 3}", 1) for number in range(30)]
SECOND = [(f"k{number}", 1) for number in range(4)]
ALL_GO_ON = {"k0": 11, "k1": 11, "k2": 11, "k3": 1}
Program = Callable[[DataStream], DataStream]


def counted(stream: DataStream) -> DataStream:
    return stream.key_by(lambda pair: pair[0]).sum(1).uid("counts")


def taken(folder: Path, program: Program = counted, **options: str) -> str:
    env = environment(folder, **options)
    program(env.from_source(ScriptedSource([*FIRST, NEVER]), None, "pairs").uid("pairs")).add_sink(lambda pair: None)
    return savepoint_after(env, worked("Sink", len(FIRST)))


def restored(folder: Path, path: str, program: Program = counted, **options: str) -> dict[str, int]:
    """Return the last count of each key, from a job that starts from the savepoint and gets the second records."""
    options = {"execution__state-recovery__path": path, **options}
    env = environment(folder, **options)
    given = [*FIRST, NEVER, *SECOND]
    stream = env.from_source(ScriptedSource(given), None, "pairs").uid("pairs")
    program(stream).sink_to(CollectSink())
    rows = env.execute("restored").get_accumulator_result("collect")
    last: dict[str, int] = {}
    for key, count in rows:
        last[key] = max(count, last.get(key, 0))
    return last


@pytest.fixture(scope="module")
def savepoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    return taken(tmp_path_factory.mktemp("savepoints"))


def without_uid(stream: DataStream) -> DataStream:
    return stream.map(lambda pair: pair).key_by(lambda pair: pair[0]).sum(1)


def moved_behind_a_filter(stream: DataStream) -> DataStream:
    return counted(stream.filter(lambda pair: True).map(lambda pair: pair)).filter(lambda pair: True)


def counted_again(stream: DataStream) -> DataStream:
    again = counted(stream).key_by(lambda pair: pair[0]).map(lambda pair: pair)
    return again.key_by(lambda pair: "all").max(1).uid("most").map(lambda pair: pair)


def uncounted(stream: DataStream) -> DataStream:
    return stream


@pytest.mark.spec("H57", "evolution", "pause", "H60", "H61", "H65", "H68", "X31", "H45", "restored")
def test_with_a_uid_state_is_found_wherever_its_operator_stands(savepoint: str, tmp_path: Path) -> None:
    assert restored(tmp_path, savepoint, moved_behind_a_filter) == ALL_GO_ON


@pytest.mark.spec("H62", "H65", "H68", "X31", "I16", "changed")
def test_without_a_uid_another_operator_before_it_loses_the_state_which_is_refused(tmp_path: Path) -> None:
    def placed(stream: DataStream) -> DataStream:
        return stream.key_by(lambda pair: pair[0]).sum(1)

    path = taken(tmp_path, placed)
    assert restored(tmp_path, path, placed) == ALL_GO_ON
    with pytest.raises(RayflinkError, match="in whose place the job has 'Map', which has none; give the operators uid"):
        restored(tmp_path, path, without_uid)


@pytest.mark.spec("H66", "X31")
def test_an_operator_that_was_added_begins_without_state(savepoint: str, tmp_path: Path) -> None:
    assert 11 in restored(tmp_path, savepoint, counted_again).values()


@pytest.mark.spec("H67", "X31")
def test_state_of_a_removed_operator_is_left_behind_only_when_that_is_allowed(savepoint: str, tmp_path: Path) -> None:
    with pytest.raises(RayflinkError, match="uid 'counts'.*--allow-non-restored-state"):
        restored(tmp_path, savepoint, uncounted)
    allowed = {"execution__state-recovery__ignore-unclaimed-state": "true"}
    assert restored(tmp_path, savepoint, uncounted, **allowed) == {f"k{number}": 1 for number in range(4)}


@pytest.mark.spec("H57", "migration", "what-if")
def test_a_copy_of_a_savepoint_elsewhere_starts_as_many_jobs_as_one_likes(savepoint: str, tmp_path: Path) -> None:
    copy = shutil.copytree(savepoint, tmp_path / "elsewhere" / "copied")
    for name, program in (("a", counted), ("b", moved_behind_a_filter)):
        assert restored(tmp_path / name, str(copy), program) == ALL_GO_ON


@pytest.mark.spec("H63", "H69", "X31", "H56", "format")
@pytest.mark.parametrize("parallelism", ["1", "3"])
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_the_parallelism_may_change(savepoint: str, tmp_path: Path, parallelism: str, backend: str) -> None:
    options = {"parallelism__default": parallelism, "state__backend__type": backend}
    assert restored(tmp_path, savepoint, **options) == ALL_GO_ON


@pytest.mark.spec("H56", "kept", "H59", "X29", "H57", "archive")
def test_a_savepoint_lies_in_a_folder_of_its_own_and_outlives_the_job(savepoint: str) -> None:
    folder = Path(savepoint)
    assert folder.name.startswith("savepoint-") and len(folder.name) == len("savepoint-11bbc5-bd967f90709b")
    assert (folder / "_metadata").is_file()
    assert folder.name.split("-")[1] == read_savepoint(savepoint).job_id[:6]


def test_a_job_takes_the_key_groups_of_its_savepoint_where_it_sets_none(tmp_path: Path) -> None:
    path = taken(tmp_path, pipeline__max_parallelism="7")
    assert read_savepoint(path).operator("counts").max_parallelism == 7
    assert restored(tmp_path, path, parallelism__default="3") == ALL_GO_ON
    assert restored(tmp_path, path, pipeline__max_parallelism="7") == ALL_GO_ON
    with pytest.raises(RayflinkError, match="in 7 key groups, and the job has 9; set its max parallelism to 7"):
        restored(tmp_path, path, pipeline__max_parallelism="9")
    with pytest.raises(RayflinkError, match="has parallelism 8, and .* 7 key groups.*lower its parallelism to 7"):
        restored(tmp_path, path, parallelism__default="8")


def test_the_key_groups_that_were_taken_are_those_of_the_next_savepoint(tmp_path: Path) -> None:
    path = taken(tmp_path, pipeline__max_parallelism="7")
    env = environment(tmp_path, execution__state_recovery__path=path)
    stream = env.from_source(ScriptedSource([*FIRST, NEVER, *SECOND, NEVER]), None, "pairs").uid("pairs")
    counted(stream).add_sink(lambda pair: None)
    second = read_savepoint(savepoint_after(env, worked("Sink", len(SECOND))))
    assert second.operator("counts").max_parallelism == 7
    rows = {row.key: row.value[1] for row in second.state("counts", second.operator("counts").states[0].name).rows()}
    assert rows == ALL_GO_ON


def test_records_on_their_way_need_the_stream_that_they_were_on(tmp_path: Path) -> None:
    env = environment(tmp_path)
    env.from_collection([("a", 1)]).key_by(lambda pair: pair[0]).sum(1).uid("counts").add_sink(lambda pair: None)
    graph = env.get_job_graph()
    (edge,) = graph.edges
    storage = open_storage(str(tmp_path / "job"))
    for number, dataset in ((1, edge.dataset_id), (2, "0" * 32)):
        lists = {to_send(dataset, 0): (CHANNELS, (b"batch",))}
        source = graph.vertices[0].head.operator_id
        held = OperatorManifest(source, "", "source", 1, 128, (StoredSnapshot(lists=lists),))
        gone = OperatorManifest("1" * 32, "gone", "gone", 1, 128, (StoredSnapshot(lists=lists),))
        manifest = CheckpointManifest("checkpoint", number, 1, "ab" * 16, "job", 0, 0, False, (held, gone)[:number])
        storage.put_if_absent(metadata_path(number), encode_manifest(manifest))
    same, other = (read_savepoint(str(tmp_path / "job" / f"chk-{number}")) for number in (1, 2))
    assert [one.verdict for one in check_savepoint(graph, same)] == ["keep"]
    for allowed in (True, False):
        refused = check_savepoint(graph, other, allowed)
        assert [(one.operator, one.verdict) for one in refused] == [("source", "refuse"), ("gone", "refuse")]
        assert "start it from a savepoint" in refused[0].reason
