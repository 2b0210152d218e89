"""Retention: which files of a job are no longer needed. Pure: it names files and deletes none."""

from __future__ import annotations

from collections.abc import Iterable

from .manifest import METADATA, CheckpointManifest, checkpoint_folder, is_shared, metadata_path


def abandoned_files(paths: Iterable[str], retained: Iterable[CheckpointManifest]) -> tuple[str, ...]:
    """Return the files of a job's base that no retained checkpoint refers to: leftovers of failures and killed
    processes.

    Only while no process writes there: a coordinator before it triggers its first checkpoint. The folder
    of a complete checkpoint that is not among the kept ones, such as one that cannot be read, is left alone.

    Args:
        paths: all files below the base.
        retained: the checkpoints that are kept.

    >>> abandoned_files(["chk-3/_metadata", "chk-3/a", "chk-4/b", "shared/c", "notes.txt"], [])
    ('chk-4/b', 'shared/c')
    """
    manifests, listed = list(retained), list(paths)
    needed = {path for manifest in manifests for path in manifest.files()}
    needed |= {metadata_path(manifest.checkpoint_id) for manifest in manifests}
    folders = {checkpoint_folder(manifest.checkpoint_id) for manifest in manifests}
    complete = {path.removesuffix(f"/{METADATA}") for path in listed if path.endswith(f"/{METADATA}")}

    def is_abandoned(path: str) -> bool:
        folder = path.partition("/")[0]
        is_ours = is_shared(path) or (folder.startswith("chk-") and folder != path)
        return is_ours and path not in needed and (folder in folders or folder not in complete)

    return tuple(sorted(filter(is_abandoned, listed)))


__all__ = ["abandoned_files"]
