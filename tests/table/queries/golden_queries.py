"""Queries with their plans and rows: one folder each in tests/golden/sql.

`query.sql` holds a query over the tables of tables.sql; lines `-- key: value` in front of it set options,
`-- mode: batch` runs it in batch mode, and `-- fold: true` shows the rows that are left after all changes.
`expected.txt` holds the plan and the rows, sorted where the query does not say in which order.
RAYFLINK_WRITE_GOLDEN=1 writes it anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rayflink.common.types import Row
from rayflink.table import EnvironmentSettings, TableEnvironment
from rayflink.table.conversion.row_format import RowFormat
from rayflink.table.parsing.statement_parser import script_parts
from rayflink.table.plan.changelog_fold import materialized
from tests.source_files import ROOT

FOLDER = ROOT / "tests" / "golden" / "sql"


@dataclass(frozen=True)
class GoldenQuery:
    """A folder's query."""

    folder: Path

    @property
    def text(self) -> str:
        """The query, without its options."""
        lines = (self.folder / "query.sql").read_text(encoding="utf-8").splitlines()
        return "\n".join(line for line in lines if not line.startswith("-- ")).strip().rstrip(";")

    @property
    def options(self) -> dict[str, str]:
        """What stands in front of it."""
        text = (self.folder / "query.sql").read_text(encoding="utf-8")
        return dict(re.findall(r"^-- ([\w.-]+): (.*)$", text, re.M))

    @property
    def expected(self) -> str:
        """Plan and rows."""
        path = self.folder / "expected.txt"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def environment(self, **options: str) -> TableEnvironment:
        """With the tables, and the query's options."""
        given = dict(self.options)
        batch = given.pop("mode", "streaming") == "batch"
        given.pop("fold", "")
        settings = EnvironmentSettings.in_batch_mode() if batch else EnvironmentSettings.in_streaming_mode()
        t_env = TableEnvironment.create(settings)
        config = t_env.get_config()
        defaults = {"execution.target": "local", "parallelism.default": "2", "table.local-time-zone": "UTC"}
        for key, value in {**defaults, **given, **options}.items():
            config.set_string(key, value)
        tables = (FOLDER / "tables.sql").read_text(encoding="utf-8").replace("{folder}", str(FOLDER))
        for statement in (part.text for part in script_parts(tables)):
            t_env.execute_sql(statement)
        return t_env

    def rows(self, t_env: TableEnvironment) -> list[str]:
        """What the query gives."""
        result = t_env.execute_sql(self.text)
        text = RowFormat(result.get_table_schema().get_field_data_types())
        changes = list(result.collect())
        if self.options.get("fold") == "true":
            changes = [Row(*values) for values in materialized(changes)]
        rows = [text(row) for row in changes]
        return rows if self.is_ordered else sorted(rows)

    @property
    def is_ordered(self) -> bool:
        """Whether the query says in which order its rows come: in a stream, by time and at its end."""
        if self.options.get("mode") == "batch":
            return "ORDER BY" in self.text.upper()
        return re.search(r"ORDER BY (ts|window_time)[^()]*\Z", self.text) is not None and "LIMIT" not in self.text

    def expected_text(self, t_env: TableEnvironment) -> str:
        """Plan and rows, as they are expected."""
        plan = t_env.explain_sql(self.text).replace(str(FOLDER), "{folder}")
        return f"{plan}\n== Rows ==\n" + "".join(f"{row}\n" for row in self.rows(t_env))


def golden_queries() -> list[GoldenQuery]:
    """All of them, by name."""
    return [GoldenQuery(path.parent) for path in sorted(FOLDER.glob("*/query.sql"))]


def unlike(queries: Iterable[GoldenQuery]) -> list[GoldenQuery]:
    """Return queries whose plans have, together, each operator with each function, kind and option of all of them."""
    known: set[tuple[str, str]] = set()
    chosen = []
    for query in queries:
        traits = _traits(query)
        if not traits <= known:
            chosen.append(query)
            known |= traits
    return chosen


def _traits(query: GoldenQuery) -> set[tuple[str, str]]:
    """Return (operator, function or kind) of each operator of the plan that runs, and the names of the options."""
    traits = {("option", name) for name in query.options}
    for line in query.expected.partition("== Rows ==")[0].rpartition(" Plan ==\n")[2].splitlines():
        operator, _, attributes = line.strip(" :+-").partition("(")
        words = re.findall(r"\b[A-Z_]{3,}\b|\w+Join\b", re.sub(r"'[^']*'", "", attributes))
        traits |= {(operator, word) for word in ("", *words)}
    return traits
