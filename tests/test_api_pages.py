"""The API reference describes every public name, and every name that a page of the documentation imports."""

from __future__ import annotations

import ast
import doctest
import importlib
import re
import sys
import types
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.source_files import ROOT
from tests.test_public_api import MODULES, PACKAGES

sys.path.insert(0, str(ROOT / "docs" / "site"))
api_pages = importlib.import_module("api_pages")
sys.path.remove(str(ROOT / "docs" / "site"))

PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "benchmarks" / "README.md"]
_BLOCK = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```", re.M | re.S)


@cache
def described() -> tuple[str, ...]:
    """The paths of all names that the reference describes."""
    return tuple(path for page in api_pages.api_pages() for group in page.groups for path in group.paths)


def value_of(path: str) -> Any:
    """What a path names."""
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


@cache
def described_values() -> dict[str, list[Any]]:
    """What the reference describes, by name."""
    found: dict[str, list[Any]] = {}
    for path in described():
        found.setdefault(path.rpartition(".")[2], []).append(value_of(path))
    return found


def is_described(module: str, name: str) -> bool:
    """Whether the reference describes a name of a module, there or where another module exports it."""
    value = value_of(f"{module}.{name}")
    return any(value is one for one in described_values().get(name, ()))


def programs_of(page: Path) -> Iterator[str]:
    """The program of each block of Python on a page."""
    for _, kind, content in _BLOCK.findall(page.read_text(encoding="utf-8")):
        if ">>> " in content:
            yield "".join(example.source for example in doctest.DocTestParser().get_examples(content))
        elif kind in ("python", "pycon", "py"):
            yield content
        else:  # a script that makes a file, or lines of a program shown as text
            yield "\n".join(re.findall(r"^(?:from|import) rayflink[^\n]*$", content, re.M))


def imports_of(program: str) -> Iterator[tuple[str, str]]:
    """The module and the name of each import of rayflink; the name is "" where a module itself is imported."""
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "rayflink":
            yield from ((str(node.module), alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.partition(".")[0] == "rayflink")


def unseen_imports(program: str) -> list[str]:
    """What a program imports and the reference lacks: names, and modules that it does not name."""
    shown = {path.rpartition(".")[0] for path in described()} | {*PACKAGES, *MODULES}
    unseen = []
    for module, name in imports_of(program):
        is_module = name == "" or isinstance(getattr(import_module(module), name), types.ModuleType)
        if module not in shown or not (is_module or is_described(module, name)):
            unseen.append(f"{module}.{name}")
    return unseen


@pytest.mark.parametrize("module", [*PACKAGES, *MODULES])
def test_every_public_name_is_on_a_page_of_the_reference(module):
    missing = [name for name in import_module(module).__all__ if not is_described(module, name)]
    assert not missing, f"add them to a group of docs/site/api.yaml, from {module}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_imports_is_in_the_reference(page):
    unseen = {one for program in programs_of(page) for one in unseen_imports(program)}
    assert not unseen, "import them from a module of docs/site/api.yaml, or add them to a group there"


def test_what_the_reference_lacks_is_found():
    assert unseen_imports("from rayflink.table.expressions import col\nimport rayflink.testing\n") == []
    assert unseen_imports("from rayflink.common.output_tag import OutputTag") == [
        "rayflink.common.output_tag.OutputTag"
    ]
    assert unseen_imports("from rayflink.common.typeinfo import to_type_info") == [
        "rayflink.common.typeinfo.to_type_info"
    ]
    blocks = {page.name: list(programs_of(page)) for page in PAGES}
    assert ("rayflink.testing", "verify") in {pair for one in blocks["testing.md"] for pair in imports_of(one)}
    assert ("rayflink.cli.render", "Progress") in {pair for one in blocks["metrics.md"] for pair in imports_of(one)}


def test_every_name_is_described_once():
    assert [path for path, times in Counter(described()).items() if times > 1] == []
    values = [(path, value_of(path)) for path in described()]
    named = Counter((path.rpartition(".")[2], id(value)) for path, value in values)
    assert [name for (name, _), times in named.items() if times > 1] == []


def test_every_page_and_group_of_the_reference_has_a_title_of_its_own():
    pages = api_pages.api_pages()
    assert len({page.name for page in pages}) == len({page.title for page in pages}) == len(pages)
    for page in pages:
        titles = [group.title for group in page.groups]
        assert len(set(titles)) == len(titles) and page.text and all(group.paths for group in page.groups)


def test_the_overview_leads_to_every_public_name():
    text = api_pages.overview(api_pages.api_pages())
    assert "[`Tumble`][rayflink.table.window.Tumble]" in text
    lines = dict(re.findall(r"^\*\*`([\w.]+)`\*\*: (.*)$", text, re.M))
    public = [(module, name) for module in (*PACKAGES, *MODULES) for name in import_module(module).__all__]
    assert [pair for pair in public if f"[`{pair[1]}`][" not in lines[pair[0]]] == []


def test_every_error_of_rayflink_is_in_the_reference():
    errors = import_module("rayflink.common.errors")
    kinds = [name for name in errors.__all__ if isinstance(getattr(errors, name), type)]
    assert len(kinds) > 10 and [name for name in kinds if not is_described("rayflink.common.errors", name)] == []
