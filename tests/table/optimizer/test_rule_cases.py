"""Each rule of the planner changes the plans that its cases say, and leaves others alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.table.optimizer.rule_cases import UNCHANGED, RuleCase, read_cases, rule_files
from tests.table.optimizer.rule_examples import rule_names, write_files

CASES = {path.stem: read_cases(path) for path in rule_files()}
LEAST_CASES = 3


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    write_files(folder)
    return folder


def test_every_rule_has_cases():
    assert sorted(CASES) == rule_names()


@pytest.mark.parametrize("rule", CASES)
def test_the_cases_of_a_rule_show_what_it_changes_and_what_it_leaves_alone(rule):
    changed = [case.example.after != UNCHANGED for case in CASES[rule]]
    assert len(changed) >= LEAST_CASES
    assert any(changed) and not all(changed)


@pytest.mark.parametrize(
    "case",
    [case for cases in CASES.values() for case in cases],
    ids=lambda case: f"{case.example.rule}: {case.title}",
)
def test_the_plans_are_those_of_the_case(case: RuleCase, tables: Path) -> None:
    assert case.planned(tables).text() == case.text()
