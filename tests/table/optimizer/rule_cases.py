"""Queries with their plans without and with a rule of the planner: a file for each rule in `rule_cases/`.

A case in a file has this form; the lines of the mode and the option may be missing:

    == What the case shows.
    mode: batch
    option: table.optimizer.join-reorder-enabled = true

    SELECT ...

    -- without the rule
    Calc(...)
    +- TableSourceScan(...)
    -- with the rule
    TableSourceScan(...)

`unchanged` in place of the second plan says that the rule does not apply. To add a case, write its title and its query;
`python -m tests.table.optimizer.rule_cases --write [RULE ...]` fills in the plans of today, of these rules or of all.
Read the diff before you commit it.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.table.optimizer.rule_examples import RuleExample, write_files

FOLDER = Path(__file__).parent / "rule_cases"
WITHOUT, WITH, UNCHANGED = "-- without the rule", "-- with the rule", "unchanged"


@dataclass(frozen=True)
class RuleCase:
    """A query with its optimized plans.

    Args:
        title: what the case shows.
        example: the query with its plans; its plan with the rule may be `unchanged`.
    """

    title: str
    example: RuleExample

    def planned(self, folder: Path) -> RuleCase:
        """Return the case with the plans of today.

        Args:
            folder: where the files of the tables are.
        """
        before, after = (self.example.explain(folder, without_rule) for without_rule in (True, False))
        example = self.example
        plans = before, UNCHANGED if after == before else after
        return RuleCase(self.title, RuleExample(example.rule, example.query, *plans, example.is_batch, example.option))

    def text(self) -> str:
        """Return the case as it stands in the file."""
        example = self.example
        header = ["mode: batch"] if example.is_batch else []
        header += [f"option: {' = '.join(example.option)}"] if example.option is not None else []
        lines = [f"== {self.title}", *header, "", example.query, ""]
        return "\n".join([*lines, WITHOUT, example.before, WITH, example.after, ""])


def read_cases(path: Path) -> list[RuleCase]:
    """Return the cases of a file."""
    return [_case(path.stem, part) for part in ("\n" + path.read_text(encoding="utf-8")).split("\n== ")[1:]]


def _case(rule: str, part: str) -> RuleCase:
    head, _, plans = part.partition(WITHOUT)
    header, _, query = head.partition("\n\n")
    title, *settings = header.splitlines()
    values = dict(setting.split(": ", 1) for setting in settings)
    assert values.keys() <= {"mode", "option"}, f"{rule}: {title}: unknown setting among {settings}"
    key, _, value = values.get("option", "").partition(" = ")
    before, _, after = plans.partition(WITH)
    option = (key, value) if key else None
    example = RuleExample(rule, query.strip(), before.strip(), after.strip(), values.get("mode") == "batch", option)
    return RuleCase(title, example)


def rule_files() -> list[Path]:
    """Return the files of cases, one for each rule."""
    return sorted(FOLDER.glob("*.txt"))


def main() -> None:
    """Print the cases of the named rules, or of all, with the plans of today; `--write` writes them to the files."""
    names = [argument for argument in sys.argv[1:] if argument != "--write"]
    files = [path for path in rule_files() if path.stem in names] if names else rule_files()
    if missing := set(names) - {path.stem for path in files}:
        sys.exit(f"no file of cases in {FOLDER.name}/ of {', '.join(sorted(missing))}; create it, or correct the name")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder)
        for path in files:
            text = "\n".join(case.planned(folder).text() for case in read_cases(path))
            if "--write" in sys.argv[1:]:
                path.write_text(text, encoding="utf-8")
            else:
                print(f"# {path.stem}\n\n{text}")


if __name__ == "__main__":
    main()
