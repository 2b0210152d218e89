"""The oracle: PyFlink's own DataStream examples, with one word changed, print the rows that PyFlink printed."""

from __future__ import annotations

import doctest
import re

import pytest

from tests.pyflink import pyflink_examples
from tests.pyflink.pyflink_examples import (
    CONNECTORS_TO_COME,
    ENDLESS,
    FOLDER,
    GOLDEN,
    KAFKA,
    RECORDED,
    TABLE_COMMENTED,
    TABLE_ENDLESS,
    TABLE_FOLDER,
    TABLE_NEW,
    TABLE_RECORDED,
    Rows,
    example_text,
    final_tables,
    first_lines,
    names_in_wheel,
    recorded,
    run_example,
)

TAKING_FILES = [name for name in RECORDED if "window" in name or name == "word_count"]


@pytest.mark.slow
@pytest.mark.parametrize("name", RECORDED)
def test_an_example_of_pyflink_prints_the_rows_it_prints_there(name, tmp_path):
    assert Rows.of(run_example(name, tmp_path)) == recorded(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[pytest.mark.soak] * (name != "word_count")) for name in TAKING_FILES
])  # fmt: skip
def test_an_example_of_pyflink_writes_its_rows_to_the_file_it_is_told(name, tmp_path):
    assert run_example(name, tmp_path, "--output", str(tmp_path / "out")) == []
    [part] = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert part.name.startswith("prefix-") and part.suffix == ".ext"
    assert Rows.of(part.read_text(encoding="utf-8").splitlines()) == recorded(name)


@pytest.mark.slow
def test_pyflinks_word_count_reads_the_file_it_is_told(tmp_path):
    (tmp_path / "hamlet.txt").write_text("to be or not\nto be\n", encoding="utf-8")
    printed = run_example("word_count", tmp_path, "--input", str(tmp_path / "hamlet.txt"))
    assert sorted(printed) == ["(be,2)", "(not,1)", "(or,1)", "(to,2)"]


@pytest.mark.slow
def test_lines_about_tasks_are_printed_where_a_program_asks_for_them(tmp_path):
    wish = "import logging; logging.getLogger('rayflink').setLevel(logging.INFO)\n"
    printed = run_example("basic_operations", tmp_path, before=wish)
    rows = recorded("basic_operations").lines
    lines = [line for line in printed if line not in rows]
    assert {line.split(" task")[0] for line in lines} >= {"Received", "Registering", "Freeing"}
    assert tuple(line for line in printed if line in rows) == rows


@pytest.mark.slow
def test_these_examples_are_the_same_in_pyflink_1_20():
    assert [name for name in RECORDED if example_text(name, "1.20.5") != example_text(name)] == []


@pytest.mark.slow
def test_the_lists_have_every_example_of_pyflinks_wheel():
    assert sorted([*RECORDED, *ENDLESS, *KAFKA, *CONNECTORS_TO_COME]) == names_in_wheel(FOLDER)
    tables = [*TABLE_RECORDED, *TABLE_ENDLESS, *TABLE_COMMENTED, *TABLE_NEW]
    assert sorted(tables) == names_in_wheel(TABLE_FOLDER)


@pytest.mark.slow
def test_an_example_without_end_prints_rows(tmp_path):
    lines = first_lines("streaming_word_count", tmp_path, 6)
    assert [line for line in lines[3:] if not re.search(r"\(.*,\d+\)", line)] == []


@pytest.mark.slow
def test_an_example_prints_the_tables_in_its_comments(tmp_path):
    expected = final_tables(example_text("basic_operations", within=TABLE_FOLDER).splitlines())
    assert final_tables(run_example("basic_operations", tmp_path, within=TABLE_FOLDER)) == expected != []


def test_readme_and_page_count_the_examples_that_run_and_name_the_others(repository):
    run = len(RECORDED) + len(ENDLESS) + len(KAFKA)
    all_of_them = run + len(CONNECTORS_TO_COME)
    tables = len(TABLE_RECORDED) + len(TABLE_ENDLESS) + len(TABLE_COMMENTED) + len(TABLE_NEW)
    page = " ".join((repository / "docs" / "pyflink.md").read_text(encoding="utf-8").split())
    readme = " ".join((repository / "README.md").read_text(encoding="utf-8").split())
    for text in (page, readme):
        assert f"{run} of PyFlink's {all_of_them} DataStream examples run" in text
        assert f"{tables} of {tables} Table examples" in text
    assert [system for system in CONNECTORS_TO_COME.values() if system not in page] == []


def test_every_record_belongs_to_an_example():
    assert sorted(path.stem for path in GOLDEN.iterdir()) == sorted(name.replace("/", "_") for name in RECORDED)
    assert all(recorded(name).lines for name in RECORDED)


def test_numbers_of_subtasks_are_no_part_of_the_answer_but_that_there_are_some_is():
    assert Rows.of(["2> b", "1> a"]) == Rows.of(["1> a", "1> b"]) != Rows.of(["a", "b"])
    assert Rows.of(["b", "a"]) != Rows.of(["a", "b"])
    assert doctest.testmod(pyflink_examples).failed == 0
