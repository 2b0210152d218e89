"""The oracle: PyFlink's own Table examples, with one word changed, print the rows that PyFlink printed."""

from __future__ import annotations

import re

import pytest

from tests.pyflink.pyflink_examples import (
    TABLE_FOLDER,
    TABLE_GOLDEN,
    TABLE_RECORDED,
    Rows,
    example_text,
    recorded,
    run_example,
)

RANDOM = {
    "mixing_use_of_datastream_and_table": r"\+I\[-?\d+\]",
    "pandas/conversion_from_dataframe": r" +a +b|\d+( +\d\.\d+){2}|\.\.( +\.{3}){2}||\[1000 rows x 2 columns\]",
}
"""Those whose values are drawn, with the form of each line."""


def comparable(rows: Rows) -> list[str]:
    """The rows without what Flink leaves open: their order, the last digits of a sum of FLOAT, the subtask's number."""
    return sorted(re.sub(r"\d+\.\d+", lambda found: f"{float(found[0]):.4f}", line) for line in rows.lines)


@pytest.mark.spec("R03")
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in TABLE_RECORDED if name not in RANDOM])
def test_a_table_example_of_pyflink_prints_the_rows_it_prints_there(name, tmp_path):
    found, expected = Rows.of(run_example(name, tmp_path, within=TABLE_FOLDER)), recorded(name, TABLE_GOLDEN)
    assert comparable(found) == comparable(expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", RANDOM)
def test_an_example_with_random_values_prints_as_many_rows_of_the_same_form(name, tmp_path):
    found, expected = Rows.of(run_example(name, tmp_path, within=TABLE_FOLDER)), recorded(name, TABLE_GOLDEN)
    assert len(found.lines) == len(expected.lines)
    assert [line for line in (*found.lines, *expected.lines) if not re.fullmatch(RANDOM[name], line)] == []


@pytest.mark.slow
def test_the_example_of_asynchronous_functions_prints_their_rows(tmp_path):
    lines = run_example("async/async_scalar_function", tmp_path, within=TABLE_FOLDER)
    rows = [line for line in lines if line.startswith("| +I |")]
    looked_up = [re.fullmatch(r"\| \+I \| +(\w) \| +db_value_for_(\w) \|", row) for row in rows[:10]]
    assert [match and match[1] == match[2] for match in looked_up] == [True] * 10
    assert len([row for row in rows[10:] if re.fullmatch(r"\| \+I \| +(\w) \| +Product \1: \$\d+ \|", row)]) == 10


@pytest.mark.slow
def test_these_table_examples_are_the_same_in_pyflink_1_20():
    examples = TABLE_RECORDED
    strings = [(example_text(name, version, TABLE_FOLDER) for version in ("1.20.5", "2.3.0")) for name in examples]
    assert [name for name, (old, new) in zip(examples, strings, strict=True) if old != new] == []


def test_every_record_belongs_to_a_table_example():
    known = [name.replace("/", "_") for name in TABLE_RECORDED]
    assert sorted(path.stem for path in TABLE_GOLDEN.iterdir()) == sorted(known)
