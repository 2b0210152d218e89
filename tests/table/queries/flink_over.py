"""Functions OVER the golden orders as Flink SQL computes them.

    python -m tests.table.queries.flink_over    writes the file that the tests read

It needs a JDK; Flink's jars are downloaded from PyPI the first time.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from tests.cep.flink_oracle import java_program
from tests.source_files import ROOT
from tests.table.matching.flink_oracle import flink_answers, golden_tables

RECORD = ROOT / "tests" / "golden" / "over.jsonl"
_SOURCE = Path(__file__).parent.parent / "matching" / "SqlOracle.java"
_AGGREGATES = (
    "COUNT(*)", "SUM(amount)", "AVG(amount)", "AVG(price)", "MIN(price)", "MAX(customer)", "FIRST_VALUE(amount)",
    "LAST_VALUE(amount)", "COUNT(DISTINCT customer)", "SUM(DISTINCT amount)", "LISTAGG(customer)",
)  # fmt: skip
"""Without moments of whole numbers, in which Flink cuts each quotient."""
_FRAMES = (
    "", "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
    "ROWS 1 PRECEDING", "RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW",
)  # fmt: skip
_PLACES = ("LAG(id)", "LAG(customer, 2)", "RANK()", "DENSE_RANK()", "COUNT(*)")
_REFUSED = (
    "LEAD(id) OVER (PARTITION BY product ORDER BY ts)", "NTILE(2) OVER (ORDER BY ts)", "SUM(amount) OVER (ORDER BY id)",
    "SUM(amount) OVER ()", "SUM(amount) OVER (ORDER BY ts DESC)",
    "SUM(amount) OVER (ORDER BY ts ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING)",
)  # fmt: skip


def queries() -> list[str]:
    """Return the queries."""
    windows = [f"({partition}ORDER BY ts {frame})" for frame in _FRAMES for partition in ("PARTITION BY product ", "")]
    framed = [(_AGGREGATES, window) for window in windows]
    shown = [(", ".join(f"{function} OVER w" for function in functions), window)
             for functions, window in [*framed, (_PLACES, "(PARTITION BY product ORDER BY ts)")]]  # fmt: skip
    refused = [f"SELECT {function} FROM orders" for function in _REFUSED]
    return [*(f"SELECT id, {functions} FROM orders WINDOW w AS {window}" for functions, window in shown), *refused]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        answers = flink_answers(java_program(_SOURCE, "OFF"), queries(), golden_tables(Path(folder)))
    lines = [{"query": query, "flink": answer} for query, answer in zip(queries(), answers, strict=True)]
    RECORD.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))


if __name__ == "__main__":
    main()
