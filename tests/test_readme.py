"""What the README says is so: its program prints what stands below it, and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rayflink.cli.main import main
from rayflink.testing.hardships import HARDSHIPS
from tests.source_files import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_programs_print_what_the_readme_says(tmp_path, capsys):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.findall(r"```python\n(.*?)```.*?```text\n(.*?)```", text, re.S)
    assert len(found) == 2
    for program, printed in found:
        (tmp_path / "first.py").write_text(program, encoding="utf-8")
        assert main(["run", "--local", str(tmp_path / "first.py")]) == 0
        assert capsys.readouterr().out == printed


def anchors(page: Path) -> set[str]:
    """What a link to a page may name behind `#`: its headings, as the site and GitHub call them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    titles = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title) for title in re.findall(r"^#+ (.*)$", text, re.M)]
    plain = [re.sub(r"[^\w\s-]", "", title).strip().lower() for title in titles]
    return {re.sub(r"[-\s]+", "-", title) for title in plain} | {title.replace(" ", "-") for title in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_to_files_and_headings_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    links = [link.partition("#") for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    assert not [file for file, _, _ in links if file and not (page.parent / file).exists()]
    pages = [(page.parent / file if file else page, heading) for file, _, heading in links if heading]
    assert not [heading for other, heading in pages if other.suffix == ".md" and heading not in anchors(other)]


def test_the_index_of_pages_names_every_page():
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    targets = set(re.findall(r"\]\(([^)]+)\)", index))
    assert {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"} <= targets


def test_the_glossary_names_modules_that_exist():
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    entries = re.findall(r"^- \*\*(.+?)\*\*\s+\(`(.+?)`\)", text, re.M)
    assert len(entries) == text.count("\n- ") >= 90
    assert len(dict(entries)) == len(entries), "a word has one entry"
    named = re.findall(r"`((?:actors|state|rayflink|tests)/[\w/.]+)`", text)
    assert [name for name in named if not Path(ROOT, name).exists()] == []


def test_files_and_commands_named_in_contributing_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:actors|state|rayflink|tests|docs|examples)/[\w/.-]+)`", text)
    assert len(named) > 40
    assert [name for name in named if not Path(ROOT, name).exists()] == []
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    assert set(re.findall(r"\bmake ([a-z]+)(?=[\s`])", text)) <= targets
    hardships = re.findall(r"\*\*([a-z ]+)\*\*", text.partition("## A hardship has failed")[2].partition("\n## ")[0])
    assert len(hardships) > 8
    assert [name for name in hardships if not any(known.endswith(name) for known in HARDSHIPS)] == []
