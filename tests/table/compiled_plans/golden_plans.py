"""Compiled plans that are kept in files: later versions have to run them.

`tests/golden/plans/NAME.json` is the plan of the golden query NAME as a version of rayflink compiled it, with
{folder} in the place of the folder of its tables. A change of the form leaves these files alone: it has to read them.
`python -m tests.table.compiled_plans.golden_plans NAME ...` adds some.
"""

from __future__ import annotations

import sys

from rayflink.table import TableEnvironment
from rayflink.table.compiled_plan import CompiledPlan
from tests.source_files import ROOT
from tests.table.queries.golden_queries import FOLDER, GoldenQuery

PLANS = ROOT / "tests" / "golden" / "plans"


def golden_plans() -> list[str]:
    """Names of the queries whose plans are kept."""
    return sorted(path.stem for path in PLANS.glob("*.json"))


def with_sink(query: GoldenQuery, **options: str) -> TableEnvironment:
    """The environment of a query, with a table `results` for its rows."""
    t_env = query.environment(**options)
    schema = t_env.sql_query(query.text).get_schema()
    types = zip(schema.get_field_names(), schema.get_field_data_types(), strict=True)
    columns = ", ".join(f"`{name}` {kind.nullable()}" for name, kind in types)
    t_env.execute_sql(f"CREATE TABLE results ({columns}) WITH ('connector' = 'print')")
    return t_env


def compiled_query(query: GoldenQuery, t_env: TableEnvironment) -> CompiledPlan:
    """The plan that writes the rows of a query to `results`."""
    return t_env.compile_plan_sql(f"INSERT INTO results {query.text}")


def stored_text(name: str) -> str:
    """The plan that is kept."""
    return (PLANS / f"{name}.json").read_text(encoding="utf-8").replace("{folder}", str(FOLDER))


def write(names: list[str]) -> None:
    """Compile the plans of queries, and keep them."""
    for name in names:
        query = GoldenQuery(FOLDER / name)
        text = compiled_query(query, with_sink(query)).as_json_string().replace(str(FOLDER), "{folder}")
        (PLANS / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1:])
