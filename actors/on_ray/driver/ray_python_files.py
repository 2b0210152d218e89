"""Ships Python files and archives of a program to the nodes, by Ray's runtime environments."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from ray._private.runtime_env.packaging import (
    GCS_STORAGE_MAX_SIZE,
    get_uri_for_directory,
    upload_package_if_needed,
)

from rayflink.common.errors import ConfigError
from rayflink.common.user_code.python_archives import PythonArchive
from rayflink.common.user_code.python_files import stage


def runtime_env_with(
    files: Sequence[str], archives: Sequence[PythonArchive] = (), executable: str = ""
) -> dict[str, Any]:
    """Return the runtime environment of processes that have a program's dependencies; {} for none. Ray must be joined.

    Actors that such a process makes have the same one.

    Args:
        files: modules and packages to import.
        archives: unpacked in the current folder of the processes.
        executable: their interpreter; "": that of the node.

    Raises:
        ConfigError: they are too large to ship.
    """
    runtime_env: dict[str, Any] = {}
    if files:
        runtime_env["py_modules"] = [_shipped("python.files", lambda folder: stage(files, folder))]
    if archives:
        runtime_env["working_dir"] = _shipped("python.archives", lambda folder: _unpack(archives, folder))
    if executable:
        runtime_env["py_executable"] = executable
    return runtime_env


def _unpack(archives: Sequence[PythonArchive], folder: str) -> None:
    for archive in archives:
        archive.unpack(folder)


def _shipped(option: str, fill: Callable[[str], None]) -> str:
    """Upload a folder to the cluster, from where each node fetches it, and return its address there."""
    with tempfile.TemporaryDirectory(prefix="rayflink-python-") as scratch:
        folder = os.path.join(scratch, "files")
        os.mkdir(folder)
        fill(folder)
        uri = get_uri_for_directory(folder, include_gitignore=False)
        quiet = logging.getLogger(f"{__name__}.upload")
        quiet.setLevel(logging.WARNING)
        logging.getLogger("ray._private.runtime_env.packaging").setLevel(logging.WARNING)  # it logs by its own, too
        try:
            upload_package_if_needed(uri, scratch, folder, include_gitignore=False, logger=quiet)
        except ValueError as error:  # Ray's word for a package that is too large
            limit = f"at most {GCS_STORAGE_MAX_SIZE >> 20} MiB in one zip file"
            raise ConfigError(option, "more", limit, f"put the rest on every node: {error}") from error
    return uri


__all__ = ["runtime_env_with"]
