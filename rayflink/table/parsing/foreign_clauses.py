"""Clauses that the parser knows of other systems: how they are written, and what to write in their place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sqlglot import exp


class Foreign(NamedTuple):
    """A clause that has no meaning here.

    Args:
        words: how it begins; several ways are divided by |.
        remedy: what to write instead.
    """

    words: str
    remedy: str


_STAR = "list the columns that are wanted"
_ORDER = "write ORDER BY, in batch mode"
_DISTRIBUTION = "leave it out: the parallelism of the job divides rows, GROUP BY and joins by their keys"
_LOCKS = "leave it out: there are no locks"
_PAST = (
    "choose what is read by an option of the table: of Delta t /*+ OPTIONS('version-as-of' = '3') */, of Iceberg "
    "OPTIONS('snapshot-id' = '...'); other tables have no past"
)
_NEWEST = (
    "in batch mode JOIN all rows up to each, ON b.k = a.k AND b.ts <= a.ts, and keep the newest of each by "
    "ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY b.ts DESC) = 1; in a stream keep them as state of a "
    "KeyedCoProcessFunction, see docs/joins.md"
)
_SAMPLE = "write WHERE RAND() < 0.1"
_PIVOT = "write SUM(x) FILTER (WHERE k = 'a') AS a for each column, and UNION ALL for the reverse"
_UNNEST = "write t CROSS JOIN UNNEST(a) AS u(x), or t, LATERAL TABLE(f(a)) AS u(x)"
_LOOP = "write as many joins as there are levels, or a process function"
_OVER = "write the whole window in parentheses behind OVER"
_SETS = "write GROUP BY ROLLUP (a, b), CUBE (a, b) or GROUPING SETS ((a, b), ())"
_ONCE = "leave it out: equal parts of a job are computed once"
_COUNT = "keep a number of rows: FETCH NEXT 10 ROWS ONLY; or RANK() in a query around it"
_INSERT = "write INSERT INTO z SELECT ..."
_COLUMNS = "select the columns of both sides in one order"
_OPTIONS = "write SET 'key' = 'value' in front of the query, or OPTIONS in a hint behind a table"
_ARGUMENT = "leave it out: values come in the order of the rows"

CLAUSES: Mapping[tuple[type, str], Foreign] = {
    (exp.Star, "except_"): Foreign("EXCEPT|EXCLUDE", _STAR),
    (exp.Star, "replace"): Foreign("REPLACE", _STAR),
    (exp.Star, "rename"): Foreign("RENAME", _STAR),
    (exp.Star, "ilike"): Foreign("ILIKE", _STAR),
    (exp.Select, "exclude"): Foreign("EXCLUDE", _STAR),
    (exp.Select, "into"): Foreign("INTO", _INSERT),
    (exp.Select, "kind"): Foreign("AS", "write ROW(a, b)"),
    (exp.Distinct, "on"): Foreign("ON", "number the rows: ROW_NUMBER() OVER (PARTITION BY b ORDER BY ts) = 1"),
    (exp.With, "recursive"): Foreign("RECURSIVE", _LOOP),
    (exp.With, "search"): Foreign("SEARCH", _LOOP),
    (exp.With, "cycle"): Foreign("CYCLE", _LOOP),
    (exp.CTE, "materialized"): Foreign("NOT MATERIALIZED|MATERIALIZED", _ONCE),
    (exp.Table, "when"): Foreign("AT|BEFORE", _PAST),
    (exp.Table, "changes"): Foreign("CHANGES", "call to_changelog_stream of the TableEnvironment"),
    (exp.Table, "indexed"): Foreign("NOT INDEXED|INDEXED BY", "leave it out"),
    (exp.Table, "hints"): Foreign("WITH|USE|FORCE|IGNORE", "leave it out; the hints that are known are in docs/sql.md"),
    (exp.Table, "ordinality"): Foreign("WITH ORDINALITY", "only UNNEST takes it"),
    (exp.Table, "rows_from"): Foreign("ROWS FROM", "join the table functions"),
    (exp.Lateral, "cross_apply"): Foreign("CROSS APPLY|OUTER APPLY", _UNNEST),
    (exp.Lateral, "ordinality"): Foreign("WITH ORDINALITY", "only UNNEST takes it"),
    (exp.Join, "match_condition"): Foreign("MATCH_CONDITION", _NEWEST),
    (exp.Join, "pivots"): Foreign("PIVOT", _PIVOT),
    (exp.Union, "by_name"): Foreign("BY NAME|CORRESPONDING", _COLUMNS),
    (exp.Except, "by_name"): Foreign("BY NAME|CORRESPONDING", _COLUMNS),
    (exp.Intersect, "by_name"): Foreign("BY NAME|CORRESPONDING", _COLUMNS),
    (exp.Group, "all"): Foreign("GROUP BY ALL|GROUP BY DISTINCT", "name the columns that are grouped by"),
    (exp.Group, "rollup"): Foreign("WITH ROLLUP", _SETS),
    (exp.Group, "cube"): Foreign("WITH CUBE", _SETS),
    (exp.Group, "grouping_sets"): Foreign("GROUPING SETS", _SETS),
    (exp.Group, "totals"): Foreign("WITH TOTALS", _SETS),
    (exp.Order, "siblings"): Foreign("SIBLINGS", "write ORDER BY"),
    (exp.Ordered, "with_fill"): Foreign("WITH FILL", "join a table that has all values"),
    (exp.Limit, "limit_options"): Foreign("WITH TIES|PERCENT|ROWS", _COUNT),
    (exp.Limit, "expressions"): Foreign("BY", "number the rows: ROW_NUMBER() OVER (PARTITION BY b ORDER BY a) <= 3"),
    (exp.Offset, "expressions"): Foreign("BY", "number the rows: ROW_NUMBER() OVER (PARTITION BY b ORDER BY a) <= 3"),
    (exp.LimitOptions, "with_ties"): Foreign("WITH TIES", _COUNT),
    (exp.LimitOptions, "percent"): Foreign("PERCENT", _COUNT),
    (exp.In, "unnest"): Foreign("UNNEST", "write an IN of values, or join UNNEST(a)"),
    (exp.JSON, "unique"): Foreign("UNIQUE", "write IS JSON, or IS JSON OBJECT, ARRAY or SCALAR"),
    (exp.JSON, "with_"): Foreign("WITH", "write IS JSON, or IS JSON OBJECT, ARRAY or SCALAR"),
    (exp.Window, "first"): Foreign("FIRST", _OVER),
}
"""Class and part -> the clause."""
PARTS: Mapping[str, Foreign] = {
    "sort": Foreign("SORT BY", _ORDER),
    "cluster": Foreign("CLUSTER BY", _DISTRIBUTION),
    "distribute": Foreign("DISTRIBUTE BY", _DISTRIBUTION),
    "locks": Foreign("FOR UPDATE|FOR SHARE|FOR NO KEY|FOR KEY|LOCK IN|FOR", _LOCKS),
    "laterals": Foreign("LATERAL VIEW", _UNNEST),
    "pivots": Foreign("PIVOT|UNPIVOT", _PIVOT),
    "sample": Foreign("TABLESAMPLE|USING SAMPLE", _SAMPLE),
    "connect": Foreign("START WITH|CONNECT BY", _LOOP),
    "prewhere": Foreign("PREWHERE", "write WHERE"),
    "settings": Foreign("SETTINGS", _OPTIONS),
    "options": Foreign("OPTION", _OPTIONS),
    "format": Foreign("FORMAT", "leave it out: the sink says how rows are written"),
    "for_": Foreign("FOR", "select JSON_OBJECT(...)"),
    "alias": Foreign("AS", "leave the name out: a query has one in FROM alone"),
}
"""Part of any class -> the clause."""
CLASSES: Mapping[type, Foreign] = {
    exp.Any: Foreign("ANY", "write IN (SELECT ...)"),
    exp.All: Foreign("ALL", "write NOT IN (SELECT ...), or compare with MAX or MIN of it in a join"),
    exp.ILike: Foreign("ILIKE", "write UPPER(a) LIKE UPPER(b)"),
    exp.Order: Foreign("ORDER BY", _ARGUMENT),
    exp.WithinGroup: Foreign("WITHIN GROUP", _ARGUMENT),
    exp.Slice: Foreign(":", "write SUBSTRING of a text, ARRAY_SLICE of an array"),
    exp.Lambda: Foreign("->", "write a function of your own"),
    exp.PropertyEQ: Foreign(":=", "name arguments by =>"),
    exp.Parameter: Foreign("@", "write the value itself"),
    exp.Placeholder: Foreign("?", "write the value itself"),
    exp.AtTimeZone: Foreign("AT TIME ZONE", "write CONVERT_TZ, or SET 'table.local-time-zone'"),
    exp.Collate: Foreign("COLLATE", "leave it out: strings are ordered by their characters"),
    exp.JSONExtract: Foreign("->", "write JSON_QUERY(a, '$.b')"),
    exp.JSONExtractScalar: Foreign("->>", "write JSON_VALUE(a, '$.b')"),
    exp.RegexpLike: Foreign("RLIKE", "write REGEXP(a, 'x')"),
    exp.RegexpILike: Foreign("~*", "write REGEXP(a, '(?i)x')"),
    exp.Values: Foreign("VALUES", "name the rows: (VALUES (1, 2)) AS v(a, b)"),
}
"""Class -> what it is, where it may not stand."""


def foreign_part(kind: type, name: str) -> Foreign:
    """Return how a part of a class is written, and what to write instead."""
    words = name.rstrip("_").replace("_", " ").upper()
    default = Foreign(words, "leave it out; docs/sql.md says what there is")
    return CLAUSES.get((kind, name)) or PARTS.get(name) or default


__all__ = ["CLASSES", "CLAUSES", "PARTS", "Foreign", "foreign_part"]
