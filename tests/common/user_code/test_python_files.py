"""Python files on their way into a stored job, and out of it."""

from __future__ import annotations

import os
from pathlib import Path

from rayflink.common.user_code.python_files import packed, unpacked


def test_the_same_files_give_the_same_bytes_and_come_out_as_they_were(tmp_path: Path) -> None:
    package = tmp_path / "words"
    package.mkdir()
    (package / "__init__.py").write_text("COUNT = 1\n")
    (tmp_path / "one.py").write_text("ONE = 1\n")
    files = [str(package), str(tmp_path / "one.py")]
    first = packed(files)
    os.utime(tmp_path / "one.py", (1, 1))
    assert packed(files) == first
    folder = Path(unpacked(first))
    assert (folder / "words" / "__init__.py").read_text() == "COUNT = 1\n"
    assert (folder / "one.py").read_text() == "ONE = 1\n"


def test_no_files_are_no_bytes() -> None:
    assert packed([]) == b""
