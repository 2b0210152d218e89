"""Python files on their way into a stored job, and out of it."""

from __future__ import annotations

import os
from pathlib import Path

from rayflink.common.user_code.program_modules import copy_modules
from rayflink.common.user_code.python_files import newest_change, packed, unpacked


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


def test_a_copy_of_modules_is_no_change_of_them_and_an_edit_within_a_package_is_one(tmp_path: Path) -> None:
    package, module, copies = tmp_path / "words", tmp_path / "one.py", tmp_path / "copies"
    (package / "__pycache__").mkdir(parents=True)
    for file, changed in ((package / "__init__.py", 50), (package / "__pycache__" / "a.pyc", 90), (module, 70)):
        file.write_text("")
        os.utime(file, (changed, changed))
    copies.mkdir()
    copy_modules([str(package), str(module)], str(copies))
    assert newest_change([str(copies)]) == newest_change([str(package), str(module)]) == 70
    os.utime(package / "__init__.py", (80, 80))
    assert newest_change([str(package), str(module)]) == 80
    assert newest_change([str(package), str(tmp_path / "missing.zip")]) == 80
