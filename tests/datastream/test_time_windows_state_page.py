"""The examples of docs/time-windows-state.md run and give what they show, of the same records as its pictures."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

PAGE = "time-windows-state.md"


@pytest.mark.slow
def test_the_examples_of_the_page_run(repository: Path) -> None:
    found = doctest.testfile(str(repository / "docs" / PAGE), module_relative=False)
    assert found.attempted >= 45 and found.failed == 0


def test_the_pictures_show_the_windows_that_the_page_lists(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(repository / "docs" / "site"))
    drawn = importlib.import_module("windows")
    page = (repository / "docs" / PAGE).read_text(encoding="utf-8")
    listed = [list(map(str.strip, section.split("\n```")[0].splitlines())) for section in page.split("print(*row)\n")]
    records = ", ".join(f'("{user}", {second}, {amount})' for user, second, amount in drawn.PAYMENTS)
    assert records in " ".join(page.replace("\n...    ", "").split())
    for (_, _, assigner), rows in zip(drawn.KINDS, listed[1:], strict=False):
        windows = [
            f"{user} {start:.0f} {end:.0f} {amount}" for user, start, end, amount, _ in drawn.run(assigner).windows
        ]
        assert len(rows) >= 5 and rows == windows[: len(rows)]
    for name, picture in drawn.window_pictures().items():
        committed = repository / "docs" / "pictures" / f"{name}.svg"
        assert committed.read_text(encoding="utf-8") == picture, "python docs/site/pictures.py makes it anew"
        assert f"(pictures/{name}.svg)" in page
