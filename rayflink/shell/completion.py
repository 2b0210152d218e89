"""The words that may follow what is typed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from rayflink.common.errors import RayflinkError
from rayflink.common.options import registry
from rayflink.table import TableEnvironment

__all__ = ["Candidate", "EnvironmentVocabulary", "Vocabulary", "candidates"]

KEYWORDS = tuple(
    """ADD ALL ALTER AND AS ASC BEGIN BETWEEN BY CASE CAST CATALOG CATALOGS COLUMNS COMMENT COMPILE CREATE CROSS
    CURRENT DATABASE DATABASES DESC DESCRIBE DISTINCT DROP ELSE END EXCEPT EXECUTE EXISTS EXPLAIN EXTENDED FALSE
    FILTER FROM FULL FUNCTION FUNCTIONS GROUP GROUPING HAVING HELP HOP IF IN INNER INSERT INTERSECT INTERVAL
    INTO IS JOBS JOIN LATERAL LEFT LIKE LIMIT MATCH_RECOGNIZE NOT NULL ON OR ORDER OUTER OVER OVERWRITE
    PARTITION PARTITIONED PLAN PRIMARY KEY QUIT RANGE RESET RIGHT ROLLUP ROWS SELECT SESSION SET SETS SHOW
    SOURCE STATEMENT STOP JOB SYSTEM_TIME TABLE TABLES TEMPORARY THEN TRUE TUMBLE UNION UNNEST USE VALUES VIEW
    VIEWS WATERMARK FOR WHEN WHERE WINDOW WITH""".split()
)
_WORD = re.compile(r"[\w$`.]*\Z")
_OPTION = re.compile(r"\b(?:SET|RESET)\s+'([^'=]*)\Z", re.IGNORECASE)
_TABLES = re.compile(r"\b(?:FROM|JOIN|INTO|TABLE|VIEW|DESCRIBE|DESC|OVERWRITE|,)\s+[\w$`.]*\Z", re.IGNORECASE)
_NAMED = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE)\s+([\w$`.]+)", re.IGNORECASE)


@dataclass(frozen=True, order=True)
class Candidate:
    """A word that may stand next.

    Args:
        rank: the smaller, the earlier it is shown.
        text: the word.
        kind: keyword, table, column, function, option, catalog or database.
        length: characters before the cursor that it takes the place of.
    """

    rank: int
    text: str
    kind: str
    length: int


class Vocabulary(Protocol):
    """The names that are known at the moment; none where they cannot be had."""

    def tables(self) -> list[str]:
        """Return the tables and views of the current database."""
        ...

    def places(self) -> list[str]:
        """Return the databases of the current catalog, and the catalogs."""
        ...

    def columns(self, table: str) -> list[str]:
        """Return the columns of a table; [] where there is no such table."""
        ...

    def functions(self) -> list[str]:
        """Return the functions of SQL, of the program and of the catalogs."""
        ...


class EnvironmentVocabulary:
    """The names that an environment knows.

    Args:
        t_env: the environment.
    """

    def __init__(self, t_env: TableEnvironment) -> None:
        self._t_env = t_env

    def tables(self) -> list[str]:
        """Return the tables and views of the current database."""
        try:
            return self._t_env.list_tables()
        except RayflinkError:  # a catalog cannot be reached; the statement will say so
            return []

    def places(self) -> list[str]:
        """Return the databases of the current catalog, and the catalogs."""
        try:
            return [*self._t_env.list_databases(), *self._t_env.list_catalogs()]
        except RayflinkError:
            return []

    def columns(self, table: str) -> list[str]:
        """Return the columns of a table; [] where there is no such table."""
        try:
            return self._t_env.from_path(table).get_resolved_schema().get_column_names()
        except RayflinkError:
            return []

    def functions(self) -> list[str]:
        """Return the functions of SQL, of the program and of the catalogs."""
        return self._t_env.list_functions()


def candidates(text: str, rest: str, vocabulary: Vocabulary) -> list[Candidate]:
    """Return the words that may stand at the cursor.

    Args:
        text: the statement up to the cursor.
        rest: what follows the cursor.
        vocabulary: names of the environment.
    """
    if match := _OPTION.search(text):
        return _beginning(match[1], [(0, "option", sorted(registry.known_keys()))])
    if text.count("'") % 2:
        return []
    word = _WORD.search(text)
    typed = word[0] if word else ""
    if _TABLES.search(text):
        return _beginning(typed, [(0, "table", vocabulary.tables()), (1, "database", vocabulary.places())])
    if not typed:
        return []
    columns = {
        column for table in dict.fromkeys(_NAMED.findall(text + rest)) for column in vocabulary.columns(table)
    }
    return _beginning(
        typed,
        [
            (0, "column", sorted(columns)), (1, "keyword", KEYWORDS), (2, "function", vocabulary.functions()),
            (3, "table", vocabulary.tables()),
        ],
    )  # fmt: skip


def _beginning(typed: str, words: Iterable[tuple[int, str, Iterable[str]]]) -> list[Candidate]:
    """Return the words that begin with what is typed; keywords in the letters in which it is typed."""
    matches = set()
    for rank, kind, strings in words:
        for text in strings:
            if text.lower().startswith(typed.lower()) and text != typed:
                shown = text.lower() if kind == "keyword" and typed.islower() else text
                matches.add(Candidate(rank, shown, kind, len(typed)))
    return sorted(matches)
