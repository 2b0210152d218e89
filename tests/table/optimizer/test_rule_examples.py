"""Every rule of the planner shows in its docstring what it changes, and EXPLAIN shows the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.table.optimizer.rule_examples import RuleExample, examples_of, rule_names, write_files

EXAMPLES = [example for rule in rule_names() for example in examples_of(rule)]


def test_every_rule_has_an_example():
    assert {example.rule for example in EXAMPLES} == set(rule_names())


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.rule)
def test_explain_shows_the_plans_of_the_docstring(example: RuleExample, tmp_path: Path) -> None:
    write_files(tmp_path)
    assert example.explain(tmp_path, leave_out=True) == example.before
    assert example.explain(tmp_path, leave_out=False) == example.after
    assert example.before != example.after
