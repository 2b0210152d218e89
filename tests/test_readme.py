"""What the README says is so: its program prints what stands below it, and its links lead somewhere."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from rayflink.cli.main import main
from rayflink.datastream import StreamExecutionEnvironment
from tests.source_files import ROOT

PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_first_program_prints_what_the_readme_says(tmp_path, capsys):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    program, printed = re.search(r"```python\n(.*?)```.*?```text\n(.*?)```", text, re.S).groups()
    (tmp_path / "first.py").write_text(program, encoding="utf-8")
    assert main(["run", "--local", str(tmp_path / "first.py")]) == 0
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    targets = [target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text)]
    broken = [t for t in targets if t and "://" not in t and not (page.parent / t).exists()]
    assert not broken


def missing_names() -> list[tuple[str, str]]:
    """(line's beginning, name) for each name that the README says is not there yet."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    names = text[text.index("these are not there yet:") : text.index("Options that are accepted and not heeded")]
    lines = re.sub(r"\([^()]*(?:\(\)[^()]*)*\)[;.]", "", names.replace("()", "")).split("\n- ")[1:]
    return [(line.split(":")[0], name) for line in lines for name in re.findall(r"`([\w.]+)`", line.split(":", 1)[1])]


def test_the_names_that_the_readme_says_are_missing_are_missing():
    found = missing_names()
    assert {"common.serialization", "CountTrigger", "enable_checkpointing"} <= {name for _, name in found}
    there = []
    for where, name in found:
        if where == "modules":
            parent, _, last = f"rayflink.{name}".rpartition(".")
            path = ROOT / parent.replace(".", "/") / last
            is_there = path.exists() or path.with_suffix(".py").exists()
        elif where == "of `StreamExecutionEnvironment`":
            is_there = hasattr(StreamExecutionEnvironment, name)
        else:
            is_there = hasattr(import_module(re.search(r"`(.+)`", where).group(1)), name)
        if is_there:
            there.append(name)
    assert there == []


def test_the_index_of_pages_names_every_page():
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    targets = set(re.findall(r"\]\(([^)]+)\)", index))
    assert {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"} <= targets


def test_files_named_in_the_architecture_exist():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:actors|state|rayflink|tests)/[\w/]+\.py)`", text))
    assert len(named) > 10
    assert [name for name in sorted(named) if not Path(ROOT, name).exists()] == []
