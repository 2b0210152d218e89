"""Figures of structure and language only fall; see `tests.house`."""

from __future__ import annotations

import ast
import doctest
import os
import re

import pytest

from tests import house
from tests.source_files import PRODUCT, Import, SourceFile, imports_of, source_files


@pytest.mark.slow  # reads the whole tree
def test_no_figure_rises():
    found, allowed = house.offenders(), house.limits()
    risen = [
        f"{len(places)} (limit {allowed[name]})  {name}, some of them at\n  " + "\n  ".join(house.shown(places))
        for name, places in found.items()
        if len(places) > allowed[name]
    ]
    assert not risen, "figures above their limits; python -m tests.house prints all figures\n" + "\n".join(risen)
    assert set(found) == set(allowed), "write the limits: python -m tests.house --write"


@pytest.mark.slow  # reads the whole tree
def test_no_former_name_comes_back():
    found = [f"{file.name}:{name}" for file in source_files(PRODUCT) for name in house.old_names(file)]
    assert not found, "names that were replaced:\n" + "\n".join(found)


@pytest.mark.slow  # reads the whole tree
def test_no_test_changes_the_time_of_all_threads():
    """A test that patches `time.sleep` itself turns each thread that waits in a loop into one that spins."""
    changed = re.compile(r"setattr\((\w+\.)?time, ")
    found = [file.name for file in source_files(("tests",)) if changed.search(file.path.read_text(encoding="utf-8"))]
    assert not found, f"patch the name `time` of the module under test instead: {found}"


@pytest.mark.parametrize(
    "code",
    [
        "class Premises: pass",
        "def f(told): pass",
        "def told(self): pass",
        "dealt = 1",
        "job.told()",
        "import actors.held_writes",
        "from x import JobPast as Past",
    ],
)
def test_a_former_name_is_reported_with_the_new_one(code):
    [found] = house.old_names(Code.of(code))
    assert found.startswith("1: ") and " -> " in found


def test_the_examples_run():
    found = doctest.testmod(house)
    assert found.attempted and not found.failed


class Code(SourceFile):
    """A file that is only a string."""

    code: str

    @classmethod
    def of(cls, code: str, module: str = "rayflink.x") -> Code:
        file = cls(house.LIMITS, module, "rayflink")
        object.__setattr__(file, "code", code)
        return file

    def text(self) -> str:
        return self.code

    @property
    def imports(self) -> tuple[Import, ...]:
        return tuple(imports_of(ast.parse(self.code), self.package))

    @property
    def nodes(self) -> tuple[ast.AST, ...]:
        return tuple(ast.walk(ast.parse(self.code)))


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("class A:\n  def f(self):\n    return self._x", 0),
        ("def f(a):\n  return a._x", 1),
        ("def f(a):\n  return a._replace(x=1)", 0),
        ("class A:\n  def __init__(self, b):\n    self._x = b._x", 0),
        ("def f(a):\n  return a.__class__", 0),
    ],
)
def test_a_reach_into_another_module_is_counted(code, count):
    assert len(house.private_reaches(Code.of(code))) == count


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("def f(a: Any, b: Anyone) -> Any: ...", 1),
        ("Column = Any\ndef f(a: Column): ...", 1),
        ("from rayflink.user_types import UserKey\ndef f(a: UserKey): ...", 0),
    ],
)
def test_an_alias_of_any_counts_unless_it_names_an_object_of_the_user(code, count):
    assert len(house.any_annotations([Code.of(code), Code.of("UserKey = Any", "rayflink.user_types")])) == count


def test_docstrings_are_found_by_their_first_word():
    found = list(house.docstrings(Code.of('"""What."""\nclass A:\n  "Of it."\n  def f(self): pass')))
    assert [(line, house.opening(text)) for line, text in found] == [(1, "What"), (3, "Of")]


def test_vague_names_of_variables_and_arguments_are_found():
    found = house.vague_names(Code.of("for one in x:\n  at = one.found\ndef f(of, column): pass"))
    assert sorted((name, place.rpartition(":")[2]) for name, place in found) == [("at", "2"), ("of", "3"), ("one", "1")]


def test_private_words_of_a_page_are_found_outside_code():
    page = "It is told.\n```\ntold\n```\n| `told` | nobody |\nSo many are kept."
    assert list(house.private_words(page)) == [1, 5, 6]


def test_circles_of_imports_are_found():
    arrows = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()}
    assert sorted(map(sorted, house._strong_components(arrows))) == [["a", "b", "c"], ["d"]]


def test_prose_is_what_is_neither_code_nor_table():
    page = "A line.\n```\ncode line\n```\n| a table |\n    indented code\nword\n- an item"
    assert list(house.prose_lines(page)) == [(1, "A line."), (8, "- an item")]


def test_the_places_of_a_figure_begin_with_the_file_changed_last(tmp_path, monkeypatch):
    monkeypatch.setattr(house, "ROOT", tmp_path)
    for time, name in enumerate(("old.py", "new.py"), 1):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time, time))
    places = ["a.module", "old.py:1", "new.py:9", "new.py:2"]
    assert house.shown(places) == ["new.py:9", "new.py:2", "old.py:1", "a.module"]
    assert len(house.shown(["old.py:1"] * 99)) == house.MOST_SHOWN
