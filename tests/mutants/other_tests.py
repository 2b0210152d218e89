"""Which other tests may notice a change: fast ones, of files about the changed module or in the folder of its tests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import PurePosixPath

from tests.mutants.tracing import ROOT
from tests.mutants.trial import module_name

MOST_FILES = 7


@cache
def sources() -> Mapping[str, str]:
    """Return the content of each file of tests, by its path."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return {file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8") for file in files}


def files_about(path: str, contents: Mapping[str, str]) -> tuple[str, ...]:
    """Return the files that import the module at a path, then others of its folder; the one of its name first.

    Args:
        path: of the module, relative to the repository.
        contents: path of a file of tests -> its content.
    """
    module = PurePosixPath(path)
    folder = f"tests/{module.parent.as_posix().removeprefix('rayflink/')}/"
    package, _, name = module_name(path).rpartition(".")
    imports = re.compile(rf"\b{re.escape(f'{package}.{name}')}\b|\bfrom {re.escape(package)} import .*\b{name}\b")
    own = f"/test_{module.stem}.py"
    ranks = [
        (not file.endswith(own), not imports.search(text), not file.startswith(folder), file)
        for file, text in contents.items()
    ]
    near = [rank for rank in ranks if not (rank[1] and rank[2])]
    return tuple(file for *_, file in sorted(near)[:MOST_FILES])


__all__ = ["MOST_FILES", "files_about", "sources"]
