"""Ships Python files of a program to the nodes, by Ray's runtime environments."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Sequence
from typing import Any

from ray._private.runtime_env.packaging import get_uri_for_directory, upload_package_if_needed

from rayflink.common.user_code.python_files import stage


def runtime_env_with(files: Sequence[str]) -> dict[str, Any]:
    """Return the runtime environment of processes that import from these files; {} for none. Ray must be joined.

    Actors that such a process makes have the same one.
    """
    if not files:
        return {}
    with tempfile.TemporaryDirectory(prefix="rayflink-python-") as scratch:
        folder = os.path.join(scratch, "files")
        os.mkdir(folder)
        stage(files, folder)
        uri = get_uri_for_directory(folder, include_gitignore=False)
        quiet = logging.getLogger(f"{__name__}.upload")
        quiet.setLevel(logging.WARNING)
        logging.getLogger("ray._private.runtime_env.packaging").setLevel(logging.WARNING)  # it logs by its own, too
        upload_package_if_needed(uri, scratch, folder, include_gitignore=False, logger=quiet)
    return {"py_modules": [uri]}


__all__ = ["runtime_env_with"]
