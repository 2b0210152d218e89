"""The examples of docs/fault-tolerance.md run and give what they show; the options it names exist."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from rayflink.common.options import registry as options

PAGE = Path(__file__).parents[2] / "docs" / "fault-tolerance.md"


@pytest.mark.slow
def test_the_examples_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    found = doctest.testfile(str(PAGE), module_relative=False, optionflags=flags)
    assert found.attempted >= 25
    assert found.failed == 0


def test_the_options_of_the_page_exist() -> None:
    known = {option.key for option in vars(options).values() if hasattr(option, "key")}
    page = PAGE.read_text(encoding="utf-8")
    named = set(
        re.findall(r"`((?:execution|rayflink|restart-strategy|jobmanager|heartbeat|state|io)\.[a-z.-]+[a-z])`", page)
    )
    assert len(named) > 15
    assert named - known == set()
