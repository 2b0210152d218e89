"""Random queries with MATCH_RECOGNIZE, and random rows, which Flink SQL can be given too.

Queries stay within the grammar that Flink 2.3 has: a sequence of different variables with quantifiers, one row for each
match. Some of them it refuses all the same, such as those that end with a greedy quantifier.
"""

from __future__ import annotations

from random import Random

VARIABLES = "ABCD"
QUANTIFIERS = ("", "", "", "", "", "*", "*", "+", "+", "?", "{2}", "{1,2}", "{1,3}", "{2,}", "{0,2}", "{1,}")
_WORD = "'y'"
_ROWTIME = "MATCH_ROWTIME()"
"""A time attribute, of which Flink's programs take one in a table."""
NUMBERS = ("price", "tax", "worth", "share")
COLUMNS = (
    "symbol STRING, price INT, tax INT, worth DECIMAL(6, 2), share DOUBLE, word STRING, ts TIMESTAMP(3), "
    "WATERMARK FOR ts AS ts - INTERVAL '1' SECOND"
)
"""Columns of the tables over random rows."""


def random_rows(random: Random, count: int = 60) -> str:
    """Return rows as CSV, in the order of their times, some of which are equal; tax and word have nulls."""
    lines, ms = [], 0
    for _ in range(count):
        ms += random.choice((0, 250, 500, 1000, 1000, 2000))
        price, tax = random.randint(0, 9), random.choice(("", random.randint(0, 3), random.randint(0, 3)))
        worth, share = random.randint(0, 999) / 100, random.randint(-8, 8) / 4
        word = random.choice(("", "x", "y", "yy"))
        time = f"2020-01-01 10:{ms // 60_000:02}:{ms // 1000 % 60:02}.{ms % 1000:03}"
        lines.append(f"{random.choice('ppq')},{price},{tax},{worth:.2f},{share},{word},{time}")
    return "".join(f"{line}\n" for line in lines)


class RandomMatches:
    """Draws queries over a table with the columns of `COLUMNS`."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._variables = ""
        self._optional: set[str] = set()

    def query(self, table: str) -> str:
        self._variables = VARIABLES[: self._random.choice((1, 2, 2, 3, 3, 3, 4))]
        pattern = self._pattern()
        clauses = [self._order(), self._measures(), *self._ways(), pattern, *self._define()]
        if self._chance(0.85):
            clauses.insert(0, "PARTITION BY " + self._random.choice(("symbol", "symbol", "symbol", "symbol, word")))
        return f"SELECT * FROM {table} MATCH_RECOGNIZE (\n  " + "\n  ".join(clauses) + "\n)"

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _order(self) -> str:
        further = ("", "", "", "", ", price", ", price DESC", ", tax, price", ", word DESC, share")
        return f"ORDER BY ts{self._random.choice(further)}"

    def _measures(self) -> str:
        measures = [self._measure() for _ in range(self._random.randint(1, 4))]
        measures = [one for number, one in enumerate(measures) if one != _ROWTIME or one not in measures[:number]]
        return "MEASURES " + ", ".join(f"{measure} AS m{number}" for number, measure in enumerate(measures))

    def _measure(self) -> str:
        column = self._random.choice((*NUMBERS, "word", "ts"))
        kind = self._random.choice(("row", "row", "row", "aggregate", "aggregate", "count", "time", "difference"))
        if kind == "row":
            return self._row(self._any(), column)
        if kind == "aggregate":
            return self._aggregate(self._random.choice((self._any(), self._any(), "")))
        if kind == "count":
            return self._random.choice(("COUNT(*)", f"COUNT({self._any()}.tax)", f"COUNT({self._any()}.price)"))
        if kind == "time":
            return self._random.choice((_ROWTIME, f"FIRST({self._any()}.ts)", f"LAST({self._any()}.ts)"))
        number = self._number()
        return f"{self._row(self._any(), number)} - {self._row(self._any(), number)}"

    def _any(self) -> str:
        return self._random.choice(self._variables)

    def _number(self) -> str:
        return self._random.choice(NUMBERS)

    def _row(self, variable: str, column: str) -> str:
        offset = self._random.choice(("", "", "", ", 1", ", 2"))
        pick = self._random.choice(("", "", "FIRST", "LAST", "LAST"))
        return f"{pick}({variable}.{column}{offset})" if pick else f"{variable}.{column}"

    def _aggregate(self, variable: str) -> str:
        function = self._random.choice(("SUM", "AVG", "MIN", "MAX"))
        name = f"{variable}." if variable else ""
        column = self._number()
        product = f" * {name}price" if self._chance(0.2) else ""
        return f"{function}({name}{column}{product})"

    def _ways(self) -> list[str]:
        variable = self._target()
        ways = ["", "PAST LAST ROW", "PAST LAST ROW", "TO NEXT ROW"]
        ways += [f"TO FIRST {variable}", f"TO LAST {variable}"] * 2 if variable else []
        skip = self._random.choice(ways)
        rows = ["ONE ROW PER MATCH"] if self._chance(0.7) else []
        return [*rows, f"AFTER MATCH SKIP {skip}"] if skip else rows

    def _target(self) -> str:
        """Return a variable to skip to: one of which each match has a row behind its first, or rarely another one."""
        if self._chance(0.03):
            return self._any()
        certain = [variable for variable in self._variables if variable not in self._optional]
        return self._random.choice(certain[1:] or [""]) if self._variables[0] in certain else ""

    def _pattern(self) -> str:
        parts = [variable + self._quantifier() for variable in self._variables]
        if self._chance(0.9):
            parts[-1] = self._variables[-1] + self._random.choice(("", "", "{2}", "+?", "{1,2}?"))
        self._optional = {part[0] for part in parts if part[1:2] in ("*", "?") or part[1:3] == "{0"}
        within = f" WITHIN INTERVAL '{self._random.randint(1, 9)}' SECOND" if self._chance(0.35) else ""
        return f"PATTERN ({' '.join(parts)}){within}"

    def _quantifier(self) -> str:
        quantifier = self._random.choice(QUANTIFIERS)
        is_reluctant = quantifier not in ("", "?", "{2}") and self._chance(0.4)
        return quantifier + "?" * is_reluctant

    def _define(self) -> list[str]:
        defined = [f"{variable} AS {self._condition(variable)}" for variable in self._variables if self._chance(0.7)]
        return ["DEFINE " + ",\n    ".join(defined)] if defined else [f"DEFINE {self._variables[0]} AS TRUE"]

    def _condition(self, variable: str) -> str:
        first = self._comparison(variable)
        if self._chance(0.3):
            return f"{first} {self._random.choice(('AND', 'OR', 'OR'))} {self._comparison(variable)}"
        return f"NOT ({first})" if self._chance(0.1) else first

    def _comparison(self, variable: str) -> str:
        column = self._number()
        sign = self._random.choice(("<", ">", "<=", ">=", "<>", "<>", "="))
        sign = self._random.choice(("<", ">")) if sign == "=" and column in ("worth", "share") else sign
        limit = {"price": "{}", "tax": "{}", "worth": "{}.5", "share": "{}"}[column]
        least, most = (0, 2) if column in ("tax", "share") else (2, 7)
        constant = limit.format(self._random.randint(least, most))
        before = self._variables[: self._variables.index(variable) + 1]
        other = self._random.choice(before) if self._chance(0.9) else self._any()
        return self._random.choice(
            (
                f"{variable}.{column} {sign} {constant}",
                f"{variable}.{column} {sign} {constant}",
                f"{column} {sign} {constant}",
                f"{variable}.{column} {sign} {other}.{column}",
                f"{variable}.{column} {sign} {self._row(other, column)}",
                f"(LAST({variable}.{column}, 1) IS NULL OR {variable}.{column} {sign} LAST({variable}.{column}, 1))",
                f"{self._aggregate(variable)} {self._random.choice('<<<>')} {self._random.randint(3, 20)}",
                f"{self._aggregate(other)} {self._random.choice('<<<>')} {self._random.randint(3, 20)}",
                f"COUNT({variable}.{column}) < {self._random.randint(2, 4)}",
                f"{variable}.price + {variable}.tax {sign} {other}.price",
                f"{variable}.tax IS {self._random.choice(('', 'NOT '))}NULL",
                f"{variable}.word {self._random.choice(('=', '<>'))} {self._random.choice((_WORD, f'{other}.word'))}",
            )
        )


__all__ = ["COLUMNS", "RandomMatches", "random_rows"]
