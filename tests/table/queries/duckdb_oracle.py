"""What DuckDB gives for a query over the same rows.

Our queries and DuckDB's differ in FROM alone: a window table function becomes a query that gives each row the bounds of
its windows. So the strings of SELECT, WHERE, GROUP BY and HAVING are one for both.
"""

from __future__ import annotations

import datetime
import math
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow
from pyarrow import parquet

from rayflink.table import EnvironmentSettings, PlannerConfig, TableEnvironment
from rayflink.table.plan.changelog_fold import materialized

SCHEMA = pyarrow.schema(
    [
        pyarrow.field("id", pyarrow.int64()),
        pyarrow.field("k", pyarrow.string()),
        pyarrow.field("n", pyarrow.int32()),
        pyarrow.field("p", pyarrow.int64()),
        pyarrow.field("d", pyarrow.float64()),
        pyarrow.field("m", pyarrow.decimal128(10, 2)),
        pyarrow.field("f", pyarrow.bool_()),
        pyarrow.field("ts", pyarrow.timestamp("ms"), nullable=False),
        pyarrow.field("l", pyarrow.list_(pyarrow.int32())),
    ]
)
_EPOCH_MS = "epoch_ms(ts::TIMESTAMP)"
"""Of a column of milliseconds, which DuckDB 2.0 does not take as it is."""
DISORDER_S = {"t": 20, "u": 50}
"""Rows of a table are so far out of order at most: none is late."""
_TABLE = """CREATE TABLE {name} (id BIGINT, k STRING, n INT, p BIGINT, d DOUBLE, m DECIMAL(10, 2), f BOOLEAN,
  ts TIMESTAMP(3), l ARRAY<INT>, WATERMARK FOR ts AS ts - INTERVAL '{disorder}' SECOND)
  WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'parquet')"""


@dataclass(frozen=True)
class Window:
    """A window table function, lengths in seconds.

    Args:
        size: of a window, the longest one of CUMULATE, the gap of SESSION.
        step: the slide of HOP, the step of CUMULATE.
        keys: columns by which sessions are distinguished.
    """

    kind: str
    size: int
    step: int = 0
    keys: tuple[str, ...] = ()

    def ours(self, table: str) -> str:
        """As Flink's SQL has it."""
        lengths = [self.size] if self.kind in ("TUMBLE", "SESSION") else [self.step, self.size]
        intervals = ", ".join(f"INTERVAL '{one}' SECOND" for one in lengths)
        keys = f" PARTITION BY {', '.join(self.keys)}" if self.keys else ""
        return f"TABLE({self.kind}(TABLE {table}{keys}, DESCRIPTOR(ts), {intervals}))"

    def duckdbs(self, table: str) -> str:
        """The same rows with the same bounds."""
        if self.kind == "SESSION":
            return self._sessions(table)
        size, step = self.size * 1000, (self.step or self.size) * 1000
        row = f"{_EPOCH_MS} AS ms, *"
        newest = f"(ms - ((ms % {step}) + {step}) % {step})"
        if self.kind == "CUMULATE":
            first = f"(ms - ((ms % {size}) + {size}) % {size})"
            bounds = f"{first} AS s, {first} + (i + 1) * {step} AS e"
            where = f"{first} + (i + 1) * {step} > ms"
        else:
            bounds = f"{newest} - i * {step} AS s, {newest} - i * {step} + {size} AS e"
            where = "true"
        inner = f"SELECT *, {bounds} FROM (SELECT {row} FROM {table}), range({size // step}) r(i) WHERE {where}"
        return f"(SELECT *, make_timestamp_ms(s) AS window_start, make_timestamp_ms(e) AS window_end FROM ({inner}))"

    def _sessions(self, table: str) -> str:
        keys = ", ".join(self.keys)
        over = f"(PARTITION BY {keys} ORDER BY ts, id)" if keys else "(ORDER BY ts, id)"
        gap = self.size * 1000
        goes_on = f"{_EPOCH_MS} - lag({_EPOCH_MS}) OVER {over} <= {gap}"
        marked = f"SELECT *, CASE WHEN {goes_on} THEN 0 ELSE 1 END AS b FROM {table}"
        numbered = f"SELECT *, sum(b) OVER {over} AS session FROM ({marked})"
        whole = f"(PARTITION BY {', '.join((*self.keys, 'session'))})"
        return (
            f"(SELECT *, min(ts) OVER {whole} AS window_start, "
            f"max(ts) OVER {whole} + INTERVAL {self.size} SECOND AS window_end FROM ({numbered}))"
        )


Source = Window | tuple[Window, str] | tuple[str, str]


def table_of(rows: list[tuple[Any, ...]]) -> pyarrow.Table:
    """Rows of the columns of `SCHEMA`, without the id, which is their number."""
    numbered = [(at, *row) for at, row in enumerate(rows)]
    columns = [pyarrow.array([row[at] for row in numbered], field.type) for at, field in enumerate(SCHEMA)]
    return pyarrow.Table.from_arrays(columns, schema=SCHEMA)


class Both:
    """Tables that both engines have.

    Args:
        folder: where their files are written.
        tables: by name.
        is_batch: ours are whole tables.
        rules: by which ours are planned.
        options: of ours.
    """

    def __init__(
        self, folder: Path, tables: dict[str, pyarrow.Table], is_batch: bool = False,
        rules: PlannerConfig | None = None, **options: str,
    ) -> None:  # fmt: skip
        self._theirs = duckdb.connect()
        self._theirs.execute("SET threads = 1; SET TimeZone = 'UTC'")
        mode = EnvironmentSettings.in_batch_mode() if is_batch else EnvironmentSettings.in_streaming_mode()
        self._ours = TableEnvironment.create(mode)
        if rules is not None:
            self._ours.get_config().set_planner_config(rules)
        defaults = {"execution.target": "local", "parallelism.default": "2", "table.local-time-zone": "UTC"}
        for key, value in {**defaults, **options}.items():
            self._ours.get_config().set_string(key, value)
        for name, table in tables.items():
            path = folder / name
            path.mkdir()
            middle = len(table) // 2  # two files, two splits
            parquet.write_table(table.slice(0, middle), path / "a.parquet")
            parquet.write_table(table.slice(middle), path / "b.parquet")
            self._ours.execute_sql(_TABLE.format(name=name, path=path, disorder=DISORDER_S[name]))
            self._theirs.register(name, table)

    def set(self, **options: str) -> None:
        """Give ours other options, from the next query on."""
        for key, value in options.items():
            self._ours.get_config().set_string(key, value)

    def ours(self, query: str) -> list[tuple[Any, ...]]:
        """The rows that hold at the end."""
        return [tuple(map(_plain, row)) for row in materialized(self._ours.execute_sql(query).collect())]

    def theirs(self, query: str) -> list[tuple[Any, ...]]:
        """The rows that DuckDB gives."""
        return [tuple(map(_plain, row)) for row in self._theirs.execute(query).fetchall()]

    def agree(self, query: str, ordered: bool = False, **sources: Source) -> int:
        """Run a query in which `{name}` stands for a source; how many rows it gives.

        Args:
            ordered: the rows come in one order in both.
            sources: name in the query -> a window over table t, or (a window, the table), or (ours, DuckDB's).
        Raises:
            AssertionError: the rows differ.
        """
        own = query.format(**{name: _written(source)[0] for name, source in sources.items()})
        other = query.format(**{name: _written(source)[1] for name, source in sources.items()})
        ours, theirs = self.ours(own), self.theirs(other)
        found, expected = Counter(ours), Counter(theirs)
        assert found == expected, f"{own}\nnot wanted: {found - expected}\nmissing: {expected - found}"
        assert not ordered or ours == theirs, f"{own}\nfound: {ours}\nwanted: {theirs}"
        return len(ours)


def _written(source: Source) -> tuple[str, str]:
    """What stands for a source in our query and in DuckDB's."""
    one, table = source if isinstance(source, tuple) else (source, "t")
    return (one, table) if isinstance(one, str) else (one.ours(table), one.duckdbs(table))


def _plain(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, Decimal | int):
        return Decimal(value).normalize()
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else Decimal(repr(round(value, 9))).normalize()
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, list):
        return tuple(map(_plain, value))
    return value
