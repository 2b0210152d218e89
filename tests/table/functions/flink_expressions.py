"""Expressions and what Flink 2.3 gives for them, with Asia/Shanghai as the session's time zone.

Each line of tests/golden/flink_expressions.tsv is an expression, the type of its result in Flink, and the result cast
to STRING; the type is ERROR where Flink refuses it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).parents[2] / "golden" / "flink_expressions.tsv"

DIFFERENT = {
    "CAST('NaN' AS DOUBLE) = CAST('NaN' AS DOUBLE)": "Flink's planner takes x = x for true",
    "CAST('NaN' AS DOUBLE) IN (CAST('NaN' AS DOUBLE), 1E0)": "Flink's planner takes x = x for true",
    "CAST(CAST(0.1 AS FLOAT) AS DOUBLE)": "Flink's planner drops the inner cast of a constant",
    "CAST('0x1p3' AS DOUBLE)": "hexadecimal floating points are refused",
    "COSH(1)": "the last digit is Java's",
    "MAP_UNION(MAP['a',1,'b',2], MAP['b',3])": "the order of entries is by hash in Flink",
    "STR_TO_MAP('k1:v1;k2:v2;k3', ';', ':')": "the order of entries is by hash in Flink",
    "EXTRACT(HOUR FROM TIMESTAMP '1950-03-04 05:06:07.891')": "before 1970 Flink is wrong",
    "EXTRACT(DAY FROM TIMESTAMP '1950-03-04 05:06:07.891')": "before 1970 Flink is wrong",
    "TO_DATE('x', 'dd/MM/yyyy')": "null where Flink gives the year 5471",
    "CAST(ROW(1,'a',NULL) AS STRING)": "a bare NULL may stand in a row",
    "CAST(5 AS INTERVAL DAY)": "intervals are not made of numbers by CAST",
    "DATE '2020-01-02' < TIMESTAMP '2020-01-02 00:00:01'": "a date is compared with a timestamp as one",
    "CAST(CAST('Infinity' AS DOUBLE) AS DECIMAL(5,2))": "null where Flink fails",
    "TO_TIMESTAMP_LTZ('x')": "null where Flink fails",
    "JSON_VALUE('{\"a\": 5.5}', '$.a' RETURNING INT)": "an error of JSON_VALUE where Flink fails",
    "JSON_VALUE('{\"a\": \"5\"}', '$.a' RETURNING INT)": "an error of JSON_VALUE where Flink fails",
    "JSON_VALUE('{\"a\": \"x\"}', '$.a' RETURNING INT)": "an error of JSON_VALUE where Flink fails",
    "JSON_VALUE('{\"a\": 5}', '$.a' RETURNING DOUBLE)": "a whole number is a number",
    'JSON_VALUE(\'{"a":[{"b":1},{"b":2}]}\', \'$.a[?(@.b==2)].b\')': "paths have no filters",
    "JSON_STRING(DATE '2020-01-01')": "dates are written too",
    "RAND(5)": "another generator",
    "RAND_INTEGER(5, 100)": "another generator",
}
"""Expressions whose result is another one here, and why."""


@dataclass(frozen=True)
class Recorded:
    """An expression and what Flink gives for it."""

    expression: str
    type: str
    text: str | None

    @property
    def is_refused(self) -> bool:
        return self.type == "ERROR"


def recorded() -> list[Recorded]:
    found = []
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            expression, kind, text = line.split("\t")
            plain = re.sub(r"\\(.)", lambda one: {"n": "\n", "t": "\t"}.get(one[1], one[1]), text)
            found.append(Recorded(expression, kind, None if text == "null" else plain))
    return found
