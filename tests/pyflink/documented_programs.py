"""What programs after the pages of Flink's documentation have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rayflink.table import EnvironmentSettings, Table, TableEnvironment

OF_BIDS = (
    "bidtime TIMESTAMP(3), price DECIMAL(10, 2), item STRING, supplier_id STRING, "
    "WATERMARK FOR bidtime AS bidtime - INTERVAL '1' SECOND"
)
BIDS = ("05,4,C,1", "07,2,A,1", "09,5,D,2", "11,3,B,2", "13,1,E,1", "17,6,F,2")


def environment(batch: bool = False) -> TableEnvironment:
    settings = EnvironmentSettings.in_batch_mode() if batch else EnvironmentSettings.in_streaming_mode()
    created = TableEnvironment.create(settings)
    created.get_config().set("execution.target", "local")
    return created


def shown(table: Table) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The rows of a table as pandas has them, in order."""
    frame = table.to_pandas()
    return list(frame.columns), sorted(map(tuple, frame.astype(object).values.tolist()))


def csv_table(t_env: TableEnvironment, folder: Path, name: str, columns: str, *lines: str) -> None:
    """Create a table of a file with these lines."""
    path = folder / f"{name}.csv"
    path.write_text("".join(f"{line}\n" for line in lines))
    t_env.execute_sql(
        f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')"
    )


def bids(folder: Path) -> TableEnvironment:
    """An environment with the table Bid of the pages on windows."""
    t_env = environment()
    lines = (line.split(",") for line in BIDS)
    csv_table(t_env, folder, "Bid", OF_BIDS, *(f"2020-04-15 08:{m}:00,{p},{i},supplier{s}" for m, p, i, s in lines))
    return t_env


def printed(t_env: TableEnvironment, statement: str) -> list[str]:
    """The rows of a statement as text, fields separated by blanks: times of a day as 08:05, NULL as -."""
    with t_env.execute_sql(statement).collect() as rows:
        return [" ".join(map(_printed, row)) for row in rows]


def _printed(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:%H:%M:%S}".removesuffix(":00") if hasattr(value, "hour") else str(value)


def changes(t_env: TableEnvironment, query: str) -> list[str]:
    """The changes of a query as text."""
    with t_env.execute_sql(query).collect() as rows:
        return [f"{row.get_row_kind()} {' '.join(map(_printed, row))}" for row in rows]


def final_rows(t_env: TableEnvironment, query: str) -> list[str]:
    """The rows of a query in order, after all changes."""
    remaining: list[str] = []
    for change in changes(t_env, query):
        kind, row = change.split(" ", 1)
        if kind in ("+I", "+U"):
            remaining.append(row)
        else:
            remaining.remove(row)
    return sorted(remaining)
