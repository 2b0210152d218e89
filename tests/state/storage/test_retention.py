"""Retention: no file of a retained checkpoint is ever named for deletion, and in the end nothing is left."""

from __future__ import annotations

from dataclasses import replace

from rayflink.state.snapshots import FileSlice, StoredSnapshot
from rayflink.state.storage.manifest import OperatorManifest
from rayflink.state.storage.retention import abandoned_files
from tests.state.storage.manifests import whole_manifest


def test_what_nobody_refers_to_is_abandoned_and_nothing_else():
    def checkpoint(number: int, *paths: str):
        snapshot = StoredSnapshot({group: FileSlice(path, 0, 1, 0) for group, path in enumerate(paths)})
        operator = OperatorManifest("a" * 32, "", "", 1, 128, (snapshot,))
        return replace(whole_manifest(), checkpoint_id=number, operators=(operator,))

    kept = [checkpoint(7, "chk-7/a", "shared/1"), checkpoint(9, "chk-9/a", "shared/1", "shared/2")]
    needed = ["chk-7/_metadata", "chk-7/a", "chk-9/_metadata", "chk-9/a", "shared/1", "shared/2"]
    left_alone = ["chk-8/_metadata", "chk-8/x", "readme.txt", "other/x", "chk-1", "sharedx/y"]
    abandoned = ["chk-10/a", "chk-10/b", "chk-7/of a failed attempt", "shared/3"]
    assert abandoned_files([*needed, *left_alone, *abandoned], kept) == tuple(sorted(abandoned))
