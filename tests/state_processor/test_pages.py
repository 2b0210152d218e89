"""The examples of docs/savepoints.md and docs/state-processor.md run and print what they show."""

from __future__ import annotations

import doctest
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rayflink.cli.main import main
from tests.cli.test_docs import commands

pytestmark = pytest.mark.slow
BLOCK = re.compile(r'^```(\S+)(?: title="([^"]*)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the folder of the page's programs; their modules are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    forget()


def forget() -> None:
    for name in ("carts", "shop"):
        sys.modules.pop(name, None)


def blocks(page: Path) -> list[tuple[str, str, str]]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def examples_run(page: Path, least: int) -> None:
    found = doctest.testfile(str(page), module_relative=False, optionflags=OPTIONS)
    assert found.attempted >= least and found.failed == 0


def sessions_print_what_they_show(page: Path, capsys: Any, **places: str) -> None:
    checked = 0
    for kind, _, content in blocks(page):
        for arguments, wanted in commands(content) if kind == "console" else ():
            capsys.readouterr()
            main([places.get(argument, argument) for argument in arguments])
            said = capsys.readouterr()
            assert re.fullmatch(wanted, said.out + said.err), f"rayflink {arguments} printed:\n{said.out}{said.err}"
            checked += 1
    assert checked


@pytest.mark.spec("H61", "H63", "H64", "path", "program")
def test_the_page_on_savepoints(folder: Path, repository: Path, capsys: Any) -> None:
    page = repository / "docs" / "savepoints.md"
    programs = {title: content for kind, title, content in blocks(page) if kind == "python"}
    for name in ("carts.py", "shop.py"):
        (folder / name).write_text(programs[name], encoding="utf-8")
    examples_run(page, 15)
    forget()
    (folder / "carts.py").write_text(programs["carts.py of version 2"], encoding="utf-8")
    (path,) = folder.glob("savepoints/savepoint-*")
    sessions_print_what_they_show(page, capsys, SAVEPOINT=str(path))


def test_the_page_on_the_state_processor(folder: Path, repository: Path, capsys: Any) -> None:
    page = repository / "docs" / "state-processor.md"
    examples_run(page, 20)
    sessions_print_what_they_show(page, capsys)
