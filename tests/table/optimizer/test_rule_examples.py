"""Every rule of the planner shows in its docstring what it changes, and EXPLAIN shows the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.table.optimizer.rule_examples import RuleExample, examples_of, read_examples, rule_names, write_files

EXAMPLES = [example for rule in rule_names() for example in examples_of(rule)]


def test_every_rule_has_an_example():
    assert {example.rule for example in EXAMPLES} == set(rule_names())


def test_an_example_may_lack_its_plans_but_not_have_another_form():
    (example,) = read_examples("a_rule", "A rule.\n\nExample, in batch mode:\n\n    SELECT 1\n")
    assert example == RuleExample("a_rule", "SELECT 1", "", "", is_batch=True)
    for docstring in ("Example in batch mode:\n\n    SELECT 1\n", "Example:\n\n    SELECT 1\n\nWithout the rule:\n"):
        with pytest.raises(ValueError, match="an example in the docstring of rule a_rule cannot be read"):
            list(read_examples("a_rule", docstring))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.rule)
def test_explain_shows_the_plans_of_the_docstring(example: RuleExample, tmp_path: Path) -> None:
    assert example.before, f"no plans yet; `python -m tests.table.optimizer.rule_examples {example.rule}` prints them"
    write_files(tmp_path)
    assert example.explain(tmp_path, without_rule=True) == example.before
    assert example.explain(tmp_path, without_rule=False) == example.after
    assert example.before != example.after
