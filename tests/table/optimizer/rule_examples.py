"""The examples in the docstrings of the planner's rules: a query, its plan without the rule, and its plan with it.

An example in a docstring has this form; the words in brackets are optional, and so are the plans while you write it:

    Example[, in batch mode][, with `option` = `value`]:

        SELECT ...

    Without the rule:

        Calc(...)
        +- TableSourceScan(...)

    With the rule:

        TableSourceScan(...)

The plans name tables without catalog and database, and the line of a step may be broken at blanks.
`python -m tests.table.optimizer.rule_examples [RULE ...]` prints the examples of all rules, or of these, with the plans
that EXPLAIN shows today; paste them into the docstring.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from textwrap import dedent, indent

import pyarrow
from pyarrow import parquet

from rayflink.table import EnvironmentSettings, PlannerConfig, TableEnvironment
from rayflink.table.errors import SqlError
from rayflink.table.optimizer.phases import PHASES, name_of
from rayflink.table.planner import Relation

_EXAMPLE = re.compile(
    r"^Example(?P<batch>, in batch mode)?(?:, with `(?P<option>[^`]+)` = `(?P<value>[^`]+)`)?:\n\n"
    r"(?P<query>(?: {4}.*(?:\n|$))+)"
    r"(?:\nWithout the rule:\n\n(?P<before>(?: {4}.*\n)+)\nWith the rule:\n\n(?P<after>(?: {4}.*(?:\n|$))+))?",
    re.MULTILINE,
)
_PART = re.compile(r"^(Example|Without the rule|With the rule)\b", re.MULTILINE)
_CONTINUED = re.compile(r"\n(?![ :]*[:+]- )[ :]*")
"""The break before a line that goes on with the step of the line above it."""
ORDERS = """CREATE TABLE orders (id BIGINT, product STRING, price INT, tags ARRAY<STRING>, ts TIMESTAMP(3),
    WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'format' = 'parquet', 'path' = '{path}')"""
PAYMENTS = """CREATE TABLE payments (id BIGINT, amount INT, ts TIMESTAMP(3),
    WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'format' = 'parquet', 'path' = '{path}')"""

EVENTS = """CREATE TABLE events (kind INT, bid ROW<auction BIGINT, price BIGINT, channel ROW<name STRING, url STRING>>,
    ts TIMESTAMP(3)) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{path}')"""


@dataclass(frozen=True)
class RuleExample:
    """An example of a rule, as its docstring shows it.

    Args:
        rule: name of the rule.
        query: the SELECT.
        before: the optimized plan without the rule; empty: not yet written.
        after: the optimized plan with it; empty: not yet written.
        is_batch: whether the query runs in batch mode.
        option: key and value of an option; None: the defaults.
    """

    rule: str
    query: str
    before: str
    after: str
    is_batch: bool = False
    option: tuple[str, str] | None = None

    def describe(self, before: str, after: str) -> str:
        """Return the example with these plans, in the form of a docstring."""
        mode = ", in batch mode" if self.is_batch else ""
        option = "" if self.option is None else ", with `{}` = `{}`".format(*self.option)
        titles = f"Example{mode}{option}:", "Without the rule:", "With the rule:"
        parts = zip(titles, (self.query, before, after), strict=True)
        return "\n\n".join(f"{title}\n\n{indent(part, '    ')}" for title, part in parts)

    def explain(self, folder: Path, without_rule: bool) -> str:
        """Return the optimized plan as EXPLAIN prints it, with short names of tables; an error where there is none."""
        t_env = environment(folder, self.is_batch)
        t_env.get_config().set_string("table.exec.mini-batch.allow-latency", "1 s")
        t_env.get_config().set_string("table.exec.mini-batch.size", "1000")
        if self.option is not None:
            t_env.get_config().set_string(*self.option)
        if without_rule:
            t_env.get_config().set_planner_config(PlannerConfig().replace_rule(self.rule, unchanged))
        try:
            explained = t_env.explain_sql(self.query)
        except SqlError as error:  # without some rules a query cannot run
            return f"SqlError: {error.problem}"
        plan = explained.partition("== Optimized Physical Plan ==\n")[2].partition("\n\n")[0].strip()
        return plan.replace("default_catalog, default_database, ", "").replace("default_catalog.default_database.", "")


def unchanged(relation: Relation) -> Relation:
    """Return the relation as it is: a rule that does nothing, in the place of another."""
    return relation


def environment(folder: Path, is_batch: bool) -> TableEnvironment:
    """Return an environment with the tables of the examples, whose files are in `folder`.

    orders and payments are Parquet files with a watermark, events JSON lines with rows in each other; customers is a
    small table in memory, visits a large one.
    """
    settings = EnvironmentSettings.in_batch_mode() if is_batch else EnvironmentSettings.in_streaming_mode()
    t_env = TableEnvironment.create(settings)
    t_env.get_config().set_string("execution.target", "local").set_string("table.local-time-zone", "UTC")
    for name, statement in (("orders", ORDERS), ("payments", PAYMENTS), ("events", EVENTS)):
        t_env.execute_sql(statement.format(path=folder / name))
    customers = pyarrow.table({"id": range(10), "name": [f"c{number}" for number in range(10)]})
    visits = pyarrow.table({"id": range(3000), "page": [f"/{number % 7}" for number in range(3000)]})
    for name, table in (("customers", customers), ("visits", visits)):
        t_env.create_temporary_view(name, t_env.from_arrow(table))
    return t_env


def write_files(folder: Path) -> None:
    """Write the files of the tables, with one row each."""
    times = pyarrow.array([0], pyarrow.timestamp("us"))
    orders = {
        "id": [1],
        "product": ["tea"],
        "price": pyarrow.array([5], pyarrow.int32()),
        "tags": [["new"]],
        "ts": times,
    }
    payments = {"id": [1], "amount": pyarrow.array([5], pyarrow.int32()), "ts": times}
    for name, columns in (("orders", orders), ("payments", payments)):
        (folder / name).mkdir()
        parquet.write_table(pyarrow.table(columns), folder / name / "rows.parquet")
    (folder / "events").mkdir()
    (folder / "events" / "rows.json").write_text('{"kind": 2, "bid": {"auction": 1, "price": 5}}\n')


def module_of(rule: str) -> str:
    """Return the name of the module that holds a rule."""
    rules = {name_of(function): function.__module__ for functions in PHASES.values() for function in functions}
    return rules[rule]


def rule_names() -> list[str]:
    """Return the names of the planner's rules."""
    return sorted({name_of(rule) for rules in PHASES.values() for rule in rules})


def examples_of(rule: str) -> Iterator[RuleExample]:
    """Yield the examples in the docstring of a rule's module.

    Raises:
        ValueError: a part of an example does not have the form described above.
    """
    yield from read_examples(rule, import_module(module_of(rule)).__doc__ or "")


def read_examples(rule: str, docstring: str) -> Iterator[RuleExample]:
    """Yield the examples in a docstring; see `examples_of`."""
    matches = list(_EXAMPLE.finditer(docstring))
    if len(_PART.findall(docstring)) != sum(3 if match["before"] else 1 for match in matches):
        raise ValueError(
            f"an example in the docstring of rule {rule} cannot be read; "
            f"write it in the form that the docstring of {__name__} shows"
        )
    for match in matches:
        query = dedent(match["query"]).strip()
        before, after = (_CONTINUED.sub(" ", dedent(match[name] or "").strip()) for name in ("before", "after"))
        option = (match["option"], match["value"]) if match["option"] else None
        yield RuleExample(rule, query, before, after, match["batch"] is not None, option)


def main() -> None:
    """Print each example of the rules that the command names, or of all rules, with its plans of today."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder)
        for example in (example for rule in sys.argv[1:] or rule_names() for example in examples_of(rule)):
            plans = (example.explain(folder, without_rule) for without_rule in (True, False))
            print(f"# {example.rule}\n\n{example.describe(*plans)}\n")


if __name__ == "__main__":
    main()
