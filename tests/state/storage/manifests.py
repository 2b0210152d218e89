"""Manifests to test with: one with everything, and hypothesis strategies."""

from __future__ import annotations

from hypothesis import strategies as st

from rayflink.state.snapshots import DatabaseFiles, FileSlice, StoredSnapshot
from rayflink.state.state_sizes import GroupSize, StateSize
from rayflink.state.storage.manifest import CheckpointManifest, OperatorManifest, StateSummary


def whole_manifest() -> CheckpointManifest:
    """Return a manifest that has each kind of part."""
    database = DatabaseFiles(
        first_group=0,
        end_group=64,
        files={"000012.sst": FileSlice("shared/4f1c", 0, 70_000, 0xFFFFFFFF), "CURRENT": b"MANIFEST-000004\n"},
        shared=frozenset({"000012.sst"}),
        about=b"\x01",
    )
    snapshot = StoredSnapshot(
        keyed={3: b"three", 4: FileSlice("chk-7/ab12", 0, 9_000, 1)},
        lists={"splits": ("split", (b"a", b"")), "rules": ("broadcast", (FileSlice("chk-7/ab12", 9_000, 10, 2),))},
        raw_keyed={3: b"raw"},
        databases=(database,),
    )
    first = OperatorManifest(
        operator_id="0" * 31 + "1",
        uid="count",
        name="Count \N{SNOWMAN}",
        parallelism=3,
        max_parallelism=128,
        subtasks=(snapshot, None, StoredSnapshot()),
        finished=frozenset({1}),
        states=(StateSummary("total", "value", "Long", '{"type": "long"}', "1 h"),),
    )
    source = OperatorManifest("0" * 31 + "2", "", "Source", 1, 128, (StoredSnapshot(),), coordinator=b"splits left")
    operators = (first, source)
    return CheckpointManifest(
        "checkpoint", 7, 2, "f" * 32, "job", 1_000, 1_250, False, operators, {"written by": "0.1.0"}
    )


_texts = st.text(max_size=8)
_numbers = st.integers(0, 2**64)
_blobs = st.binary(max_size=20) | st.builds(FileSlice, _texts, _numbers, _numbers, st.integers(0, 2**32 - 1))
_groups = st.dictionaries(st.integers(0, 32_767), _blobs, max_size=4)
_databases = st.builds(
    DatabaseFiles,
    st.integers(0, 100),
    st.integers(0, 100),
    st.dictionaries(_texts, _blobs, max_size=3),
    st.frozensets(_texts, max_size=3),
    st.binary(max_size=5),
)
_lists = st.dictionaries(_texts, st.tuples(_texts, st.lists(_blobs, max_size=3).map(tuple)), max_size=3)
_group_sizes = st.lists(st.builds(GroupSize, _numbers, _numbers, _numbers, st.integers(-1, 9)), max_size=3).map(tuple)
_sizes = st.lists(st.builds(StateSize, _texts, _texts, _numbers, _group_sizes, st.booleans()), max_size=2).map(tuple)
_snapshots = st.builds(
    StoredSnapshot, _groups, _lists, _groups, st.integers(0, 9), st.lists(_databases, max_size=2).map(tuple),
    sizes=_sizes,
)  # fmt: skip
_operators = st.builds(
    OperatorManifest,
    operator_id=_texts,
    uid=_texts,
    name=st.text(st.characters(), max_size=5),
    parallelism=_numbers,
    max_parallelism=_numbers,
    subtasks=st.lists(st.none() | _snapshots, max_size=3).map(tuple),
    finished=st.frozensets(st.integers(0, 9)),
    coordinator=st.none() | _blobs,
    states=st.lists(st.builds(StateSummary, _texts, _texts, _texts, _texts, _texts), max_size=2).map(tuple),
)
manifests = st.builds(
    CheckpointManifest,
    kind=st.sampled_from(["checkpoint", "savepoint"]),
    checkpoint_id=_numbers,
    epoch=_numbers,
    job_id=_texts,
    job_name=_texts,
    timestamp_ms=_numbers,
    completed_ms=_numbers,
    own_base=st.booleans(),
    operators=st.lists(_operators, max_size=3).map(tuple),
    properties=st.dictionaries(_texts, _texts, max_size=2),
)
