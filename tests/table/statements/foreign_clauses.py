"""Statements with clauses of other systems' SQL, made of valid ones.

A base is a valid statement with slots in braces; what may stand in a slot are clauses of BigQuery, Snowflake,
ClickHouse, Spark, Hive, Postgres, MySQL, Oracle, T-SQL, DuckDB and SQLite. All slots but one, or two, are empty.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

MEANINGLESS = frozenset(
    {
        "ALL",  # SELECT ALL is SELECT
        "ASC",  # is the order where none is said
        "ASYMMETRIC",  # of BETWEEN, where nothing is said
        "NULLS FIRST",  # in ascending order, where nothing is said
        "DISTINCT",  # of UNION
        "INNER",  # of JOIN
        "AS",  # in front of the name of a table
        "TABLE",  # TABLE(...) around a function of tables
        "(3)",  # digits of an interval that has fewer
        "RESPECT NULLS",  # of ARRAY_AGG, where nothing is said
        "EXTENDED",  # of DESCRIBE, as in Flink
        "RESTRICT",  # of DROP, where nothing is said
        "NULL",  # of a column, where nothing is said
        "/*+ BROADCAST(t) */", "/*+ SHUFFLE_HASH(t, u) */", "/*+ SHUFFLE_MERGE(t) */",
        "/*+ NEST_LOOP(t) */",  # hints of Flink that change no row
        "/*+ STATE_TTL('t' = '1 d') */",  # of a stream
        "-- a comment\n", "/* a comment */", "; --",
    }
)  # fmt: skip
"""Clauses that may change nothing: by the standard, or by Flink's documentation."""
CLAUSES: dict[str, tuple[str, ...]] = {
    "head": (
        "ALL", "TOP 3", "TOP 3 PERCENT", "TOP (3) WITH TIES", "DISTINCT ON (b)", "DISTINCT ON (a, b)", "AS STRUCT",
        "AS VALUE", "DISTINCTROW", "UNIQUE", "SQL_CALC_FOUND_ROWS", "HIGH_PRIORITY", "STRAIGHT_JOIN", "SQL_NO_CACHE",
        "SQL_BIG_RESULT", "WITH DIFFERENTIAL_PRIVACY", "STREAM", "FIRST 3", "SKIP 2", "LIMIT 3", "/*+ INDEX(t i) */",
        "/*+ LEADING(t u) */", "/*+ REPARTITION(3) */", "/*+ COALESCE(2) */", "/*+ MAPJOIN(u) */",
        "/*+ PARALLEL(4) */", "/*+ SET_VAR(x = 1) */", "/*+ BROADCAST(t) */", "/*+ SHUFFLE_HASH(t, u) */",
        "/*+ SHUFFLE_MERGE(t) */", "/*+ NEST_LOOP(t) */", "/*+ LOOKUP('table'='t', 'async'='true') */",
        "/*+ STATE_TTL('t' = '1 d') */", "/*+ OPTIONS('a' = 'b') */", "/*+ SKEW('t') */", "/*+ a b c */",
        "-- a comment\n", "/* a comment */", "; --",
    ),
    "star": (
        "EXCEPT (b)", "EXCLUDE (b)", "EXCLUDE b", "REPLACE (1 AS b)", "REPLACE (UPPER(b) AS b)", "RENAME (b AS z)",
        "RENAME b AS z", "ILIKE '%a%'", "EXCEPT (b) REPLACE (1 AS a)", "EXCLUDE (b) RENAME (a AS z)", "APPLY (SUM)",
        "(EXCEPT b)", "BUT b", "AS z",
    ),
    "item": (
        "::STRING", "::INT::STRING", "COLLATE utf8_bin", "COLLATE 'de'", 'COLLATE "C"', "AT TIME ZONE 'UTC'",
        "AT LOCAL", "-> 'x'", "->> 'x'", "#> 'x'", "@> 1", "? 'x'", "[1:2]", ".x", ":x", ":x.y", "(+)", "!", "ISNULL",
        "NOTNULL", "IS DISTINCT FROM", "OVER ()", "WITHIN GROUP (ORDER BY a)", "FORMAT '99'", "(FORMAT '99')",
        "NAMED z", "AS (p, q)", "RESPECT NULLS", "IGNORE NULLS", "PER HOUR", "!! 'x'", "~ 'x'", "**2", "^2", "// 2",
        "DIV 2", "XOR TRUE", "RLIKE 'x'", "GLOB 'x'",
    ),
    "from": ("ONLY", "LATERAL", "FINAL", "STREAM", "TABLE", "ROWS FROM", "NEW", "OLD", "FINAL TABLE"),
    "table": (
        "FINAL", "SAMPLE 0.1", "SAMPLE (10)", "SAMPLE 10 SEED (3)", "TABLESAMPLE (10 PERCENT)",
        "TABLESAMPLE (3 ROWS)", "TABLESAMPLE BERNOULLI (10)", "TABLESAMPLE SYSTEM (10) REPEATABLE (42)",
        "TABLESAMPLE RESERVOIR (3 ROWS)", "TABLESAMPLE (BUCKET 1 OUT OF 4 ON a)", "USING SAMPLE 10",
        "FOR SYSTEM_TIME AS OF TIMESTAMP '2026-01-01 00:00:00'", "FOR SYSTEM_TIME BETWEEN ts AND ts",
        "FOR SYSTEM_TIME ALL", "FOR VERSION AS OF 3", "VERSION AS OF 3", "TIMESTAMP AS OF '2026-01-01'",
        "AS OF TIMESTAMP ts", "AT (TIMESTAMP => ts)", "AT (OFFSET => -60)", "AT (STATEMENT => 'x')",
        "BEFORE (STATEMENT => 'x')", "CHANGES (INFORMATION => DEFAULT) AT (OFFSET => -60)", "WITH (NOLOCK)",
        "WITH (INDEX(i))", "(NOLOCK)", "USE INDEX (i)", "FORCE INDEX (i)", "IGNORE INDEX FOR JOIN (i)",
        "INDEXED BY i", "NOT INDEXED", "PARTITION (p0)", "SUBPARTITION (p0)", "*", "@i", "@dblink",
        "PIVOT (SUM(a) FOR b IN ('x', 'y'))", "PIVOT (SUM(a) AS s FOR b IN ('x' AS x)) AS p",
        "UNPIVOT (v FOR n IN (a))", "UNPIVOT INCLUDE NULLS (v FOR n IN (a))",
        "LATERAL VIEW EXPLODE(x) v AS p",
        "LATERAL VIEW OUTER EXPLODE(x) v AS p", "LATERAL VIEW POSEXPLODE(x) v AS p, q", "CROSS APPLY f(a)",
        "OUTER APPLY f(a)", "CROSS APPLY (SELECT 1 AS z) AS y", "ARRAY JOIN x", "LEFT ARRAY JOIN x AS y",
        "/*+ FORCE */", "/*+ BROADCAST(t) */", "/*+ OPTION('a' = 'b') */", "WITH OFFSET AS o", "WITH ORDINALITY",
        "WITH TIES", "PREWHERE a > 1", "SETTINGS x = 1", "EMIT CHANGES", "EMIT AFTER WATERMARK", "|> WHERE a > 1",
        "|> SELECT a |> LIMIT 1", "POSITIONAL JOIN u", "PASTE JOIN u", "ASOF JOIN u ON t.a >= u.a",
        "SEMI JOIN u ON t.a = u.a", "LEFT SEMI JOIN u ON t.a = u.a", "ANTI JOIN u ON t.a = u.a",
        "LEFT ANTI JOIN u USING (a)", "GLOBAL JOIN u ON t.a = u.a", "ANY JOIN u ON t.a = u.a",
        "ANY LEFT JOIN u ON t.a = u.a", "ALL INNER JOIN u ON t.a = u.a", "LEFT ANY JOIN u ON t.a = u.a",
        "OUTER JOIN u ON t.a = u.a", "LEFT INNER JOIN u ON t.a = u.a", "LEFT CROSS JOIN u",
        "CROSS JOIN u ON t.a = u.a", "CROSS JOIN u USING (a)", "NATURAL CROSS JOIN u", "NATURAL JOIN u ON t.a = u.a",
        "NATURAL JOIN u USING (a)", "NATURAL JOIN UNNEST(x) AS w(z)", "ASOF JOIN UNNEST(x) AS w(z)",
        "INNER HASH JOIN u ON t.a = u.a", "LEFT LOOP JOIN u ON t.a = u.a", "STRAIGHT_JOIN u ON t.a = u.a",
        "INNER JOIN u MATCH_CONDITION (a > 1) ON t.a = u.a", "UNION JOIN u",
        "JOIN u PIVOT (SUM(a) FOR b IN ('x')) ON TRUE", "JOIN EACH u ON t.a = u.a", "LEFT JOIN LATERAL u ON TRUE",
    ),
    "where": (
        "PREWHERE a > 1", "CONNECT BY PRIOR a = a", "START WITH a = 1 CONNECT BY NOCYCLE PRIOR a = a", "QUALIFY TRUE",
        "WHEN a > 1",
    ),
    "join": (
        "ASOF", "SEMI", "ANTI", "LEFT SEMI", "LEFT ANTI", "GLOBAL", "GLOBAL ANY", "ANY", "POSITIONAL", "PASTE",
        "OUTER", "LEFT INNER", "LEFT CROSS", "INNER HASH", "LEFT LOOP", "INNER MERGE", "DIRECTED", "NATURAL", "CROSS",
        "INNER", "STRAIGHT", "ARRAY", "RIGHT SEMI", "FULL INNER", "INNER REMOTE",
    ),
    "using": ("AS z",),
    "in": ("GLOBAL",),
    "between": ("SYMMETRIC", "ASYMMETRIC"),
    "group": (
        "WITH ROLLUP", "WITH CUBE", "WITH TOTALS", "WITH ROLLUP WITH TOTALS", "GROUPING SETS ((b), ())",
        "HAVING MAX a", "ORDER SIBLINGS BY b", "LIMIT 1 BY b", "DESC", "COLLATE x", "WITH TIES",
    ),
    "grouped": ("ALL", "DISTINCT"),
    "argument": (
        "IGNORE NULLS", "RESPECT NULLS", "ORDER BY a", "ORDER BY a DESC LIMIT 1", "LIMIT 1", "HAVING MAX a",
        "HAVING MIN b", "SEPARATOR ','", "ON OVERFLOW TRUNCATE", "USING utf8", "RETURNING STRING", "WITHOUT ARRAY",
        "AS z", "FORMAT JSON", "AT TIME ZONE 'UTC'", "COLLATE x", "BETWEEN 1", "EXCEPT b", "FROM FIRST",
        "WITH UNIQUE KEYS",
    ),
    "called": (
        "WITHIN GROUP (ORDER BY a)", "KEEP (DENSE_RANK FIRST ORDER BY a)", "IGNORE NULLS", "RESPECT NULLS",
        "FROM LAST", "OVER w", "OVER ()", "OVER (ORDER BY a)", "OVER (PARTITION BY b)",
        "OVER (ROWS UNBOUNDED PRECEDING)", "FILTER (a > 1)", "FILTER (WHERE a > 1) OVER ()", "AT TIME ZONE 'UTC'",
        "WITH (x = 1)", "[OFFSET(1)]", ".value",
    ),
    "frame": (
        "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", "ROWS UNBOUNDED PRECEDING",
        "RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING", "GROUPS 2 PRECEDING", "ROWS 1 PRECEDING EXCLUDE TIES",
        "ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING EXCLUDE NO OTHERS", "WITH TIES", "MEASURES a AS z",
    ),
    "over": ("w", "FIRST", "LAST", "CLUSTER BY a", "DISTRIBUTE BY b"),
    "key": (
        "ASC", "DESC", "NULLS FIRST", "NULLS LAST", "WITH FILL", "WITH FILL FROM 1 TO 9 STEP 2", "USING >",
        "COLLATE x", "COLLATE NOCASE", "INTERPOLATE (a)", "STAGGERED",
    ),
    "limit": ("WITH TIES", "PERCENT", "BY b", "BY a, b", "PERCENT WITH TIES", "ROWS", "ROWS ONLY", "ROWS EXAMINED 3"),
    "fetched": ("WITH TIES", "PERCENT", "SAMPLE"),
    "end": (
        "SORT BY a", "SORT BY a DESC", "CLUSTER BY a", "DISTRIBUTE BY a", "DISTRIBUTE BY a SORT BY b",
        "ZORDER BY (a)", "FOR UPDATE", "FOR UPDATE OF t NOWAIT", "FOR UPDATE SKIP LOCKED", "FOR SHARE",
        "FOR NO KEY UPDATE", "FOR KEY SHARE", "LOCK IN SHARE MODE", "FOR JSON AUTO", "FOR XML PATH('x')",
        "FOR BROWSE", "FOR READ ONLY", "WITH UR", "OPTION (RECOMPILE)", "OPTION (MAXDOP 1, HASH JOIN)",
        "SETTINGS max_threads = 1", "FORMAT JSON", "FORMAT Null", "INTO OUTFILE '/x'", "INTO DUMPFILE '/x'",
        "INTO @v", "INTO z", "WITH NO DATA", "WITH CHECK OPTION", "EMIT CHANGES", "EMIT STREAM", "QUALIFY TRUE",
        "USING SAMPLE 10%", "USING SAMPLE reservoir(3 ROWS)", "OFFSET 1 ROWS FETCH NEXT 1 ROW WITH TIES",
        "PROCEDURE ANALYSE()", "COMPUTE SUM(a)", "|> LIMIT 1", "OPTIMIZE FOR 1 ROWS",
        "ALLOW FILTERING", "PER PARTITION LIMIT 1", "SAMPLE BY 1h", "LATEST ON ts PARTITION BY b", "\\G", "; --",
    ),
    "set": (
        "BY NAME", "CORRESPONDING", "CORRESPONDING BY (a)", "STRICT CORRESPONDING", "DISTINCT", "ALL BY NAME",
        "ALL CORRESPONDING", "BY NAME ON (a)", "DISTINCT BY NAME", "ALL CORRESPONDING BY (a)",
    ),
    "outer": ("LEFT", "FULL", "INNER", "FULL OUTER"),
    "with": ("RECURSIVE",),
    "named": ("USING KEY (a)",),
    "as": ("MATERIALIZED", "NOT MATERIALIZED"),
    "cycle": ("SEARCH DEPTH FIRST BY a SET s", "CYCLE a SET c USING p", "CYCLE a SET c TO 1 DEFAULT 0 USING p"),
    "cast": (
        "FORMAT 'YYYY'", "COLLATE x", "DEFAULT 'x' ON CONVERSION ERROR", "CHARACTER SET utf8", "ON ERROR NULL",
        "USING utf8", "ARRAY", "WITH TIME ZONE", "STYLE 3", "RENAME FIELDS", "ADD FIELDS",
    ),
    "json": (
        "FOO BAR", "NULL ON NULL", "ERROR ON EMPTY ERROR ON EMPTY", "WITH WRAPPER", "KEEP QUOTES", "OMIT QUOTES",
        "PASSING 1 AS x", "TRUE ON ERROR", "COLUMNS (z INT)", "ASCII", "PRETTY", "DEFAULT 1",
        "RETURNING STRING FORMAT JSON",
    ),
    "interval": ("(3)", "TO", "AGO"),
    "trim": ("BOTH", "LEADING", "TRAILING"),
    "window": (
        ", PARTITION BY b", "ORDER BY b", "WITH SET SEMANTICS", "PRUNE WHEN EMPTY", "KEEP WHEN EMPTY",
        "COPARTITION (t, u)",
    ),
}  # fmt: skip
"""Slot -> what may stand in it."""
QUERIES = (
    "SELECT {head} a{item}, b FROM {from} t {table} WHERE a > 0 {where} {end}",
    "SELECT {head} * {star} FROM t {table} ORDER BY a {key} LIMIT 3 {limit} {end}",
    "SELECT t.* {star} FROM t WHERE a BETWEEN {between} 1 AND 3 {where} FETCH FIRST 2 {fetched} ROWS ONLY {end}",
    "SELECT {head} b, SUM(a {argument}) {called} AS s FROM t {table} GROUP BY {grouped} b {group} ORDER BY b {key}",
    "SELECT b, ARRAY_AGG(a {argument}) {called} AS s FROM t GROUP BY b {group} {end}",
    "SELECT t.a, u.b FROM t {join} JOIN u ON t.a = u.a WHERE t.a {in} IN (1, 2) {where} {end}",
    "SELECT * FROM t JOIN u USING (a) {using} {where} {end}",
    "SELECT a FROM t {where} UNION {set} SELECT a FROM u {end}",
    "SELECT a FROM t {outer} UNION ALL {set} SELECT a FROM u {table}",
    "SELECT a FROM t INTERSECT {set} SELECT a FROM u {end}",
    "SELECT a FROM t {outer} EXCEPT {set} SELECT a FROM u {limit}",
    "WITH {with} c {named} AS {as} (SELECT a, b FROM t {table} {end}) {cycle} SELECT {head} a{item} FROM c "
    "{table} {end}",
    "SELECT a FROM t WHERE EXISTS (SELECT {head} 1 FROM u {table} WHERE u.b = 'x' {end}) {end}",
    "SELECT a FROM t WHERE a {in} IN (SELECT {head} a FROM u {table} {end}) {end}",
    "SELECT a, b FROM (SELECT *, ROW_NUMBER() {called} OVER ({over} PARTITION BY b ORDER BY a {key} {frame}) AS n "
    "FROM t {table}) WHERE n <= 2 {end}",
    "SELECT window_start, SUM(a) AS s FROM TABLE(TUMBLE(TABLE t {window}, DESCRIPTOR(ts), INTERVAL '1' HOUR "
    "{interval})) {table} GROUP BY window_start, window_end {group} {end}",
    "SELECT CAST(a AS STRING {cast}), JSON_VALUE(b, '$.x' {json}), TRIM({trim} LEADING 'x' FROM b){item} FROM t "
    "{end}",
    "SELECT a, z FROM t CROSS JOIN UNNEST(x {argument}) AS w(z) {table} {where}",
)  # fmt: skip
INSERTS = (
    "INSERT {verb} INTO {into} snk {target} SELECT {head} a, b FROM t {table} {end} {conflict}",
    "INSERT {verb} OVERWRITE {into} snk {target} VALUES (1, 'x') {conflict}",
)  # fmt: skip
CLAUSES |= {
    "verb": ("IGNORE", "OR REPLACE", "OR IGNORE", "LOW_PRIORITY", "DELAYED", "ALL", "FIRST", "HIGH_PRIORITY"),
    "into": ("TABLE", "FUNCTION", "LOCAL DIRECTORY", "ONLY"),
    "target": (
        "BY NAME", "BY POSITION", "AS z", "OVERRIDING SYSTEM VALUE", "OVERRIDING USER VALUE", "PARTITION (b)",
        "IF NOT EXISTS", "REPLACE WHERE a = 1", "SETTINGS x = 1", "FORMAT JSON", "WITH (TABLOCK)",
        "OUTPUT inserted.a", "DEFAULT VALUES", "(a, b) OVERRIDING SYSTEM VALUE", "/*+ OPTIONS('a' = 'b') */",
        "/*+ APPEND */",
    ),
    "conflict": (
        "ON CONFLICT DO NOTHING", "ON CONFLICT (a) DO UPDATE SET b = 'x'", "ON DUPLICATE KEY UPDATE a = 1",
        "RETURNING a", "RETURNING *", "LOG ERRORS", "AS new ON DUPLICATE KEY UPDATE a = 1", "WITH NO DATA",
    ),
}  # fmt: skip
TABLES = (
    "CREATE {kind} TABLE {name} d (a INT {column}, b STRING {column} {part}) {option} WITH ('connector' = 'print')",
    "CREATE {kind} TABLE d {option} WITH ('connector' = 'print') LIKE e ({like})",
    "CREATE {kind} TABLE d (a INT NOT NULL, PRIMARY KEY (a) NOT ENFORCED {key_option}) WITH ('connector' = "
    "'print') {option}",
)  # fmt: skip
CLAUSES |= {
    "kind": (
        "OR REPLACE", "GLOBAL TEMPORARY", "LOCAL TEMPORARY", "UNLOGGED", "EXTERNAL", "TRANSIENT", "MULTISET",
        "VOLATILE", "FOREIGN", "TEMP", "HYBRID", "DYNAMIC", "ICEBERG", "OR ALTER", "SNAPSHOT", "IMMUTABLE",
    ),
    "name": ("IF NOT EXIST", "ON CLUSTER c", "UUID '1'"),
    "column": (
        "UNIQUE", "DEFAULT 1", "CHECK (a > 0)", "REFERENCES u (a)", "GENERATED ALWAYS AS IDENTITY", "AUTO_INCREMENT",
        "AUTOINCREMENT", "IDENTITY(1, 1)", "COLLATE x", "CHARACTER SET utf8", "ENCODE zstd", "CODEC(ZSTD)", "TTL ts",
        "INVISIBLE", "SPARSE", "OPTIONS(description = 'x')", "MASKED WITH (FUNCTION = 'x')", "STORED", "VIRTUAL",
        "NULL", "ON UPDATE CURRENT_TIMESTAMP", "NOT NULL ENABLE", "CONSTRAINT c CHECK (a > 0)", "PRIMARY KEY",
        "DISTKEY", "UNSIGNED", "WITH TAG (x = 'y')", "METADATA VIRTUAL FROM 'x'",
    ),
    "part": (
        ", UNIQUE (a)", ", CHECK (a > 0)", ", FOREIGN KEY (a) REFERENCES u (a)", ", INDEX i (a)", ", KEY i (a)",
        ", PRIMARY KEY (a)", ", CONSTRAINT c UNIQUE (a)", ", PERIOD FOR SYSTEM_TIME (a, b)",
        ", EXCLUDE USING gist (a WITH =)", ", LIKE u INCLUDING ALL", ", PROJECTION p (SELECT a)",
        ", FULLTEXT KEY (b)", ", CONSTRAINT c",
    ),
    "option": (
        "ENGINE = InnoDB", "ENGINE = MergeTree ORDER BY a", "PARTITION BY RANGE (a)", "PARTITION BY a",
        "CLUSTERED BY (a) INTO 4 BUCKETS", "CLUSTER BY (a)", "STORED AS PARQUET",
        "ROW FORMAT DELIMITED FIELDS TERMINATED BY ','", "LOCATION '/x'", "TBLPROPERTIES ('a' = 'b')",
        "USING parquet", "ON COMMIT DROP", "ON COMMIT PRESERVE ROWS", "TABLESPACE x", "INHERITS (u)",
        "DISTRIBUTED BY (a) INTO 4 BUCKETS", "DISTRIBUTED INTO 4 BUCKETS", "COMMENT = 'x'", "ORDER BY (a)",
        "WITH NO DATA", "COPY GRANTS", "DISTKEY(a)", "SORTKEY(a)", "OPTIONS(x = 1)", "DEFAULT CHARSET = utf8",
        "AUTO_INCREMENT = 3", "SKEWED BY (a) ON (1)", "STRICT", "WITHOUT ROWID", "WITH SYSTEM VERSIONING",
        "SETTINGS x = 1", "TTL ts", "SAMPLE BY a", "DATA_RETENTION_TIME_IN_DAYS = 1", "CHANGE_TRACKING = TRUE",
        "AS OF TIMESTAMP ts", "CLONE u",
    ),
    "like": ("INCLUDING DEFAULTS", "INCLUDING ALL EXCLUDING INDEXES", "EXCLUDING COMMENTS", "INCLUDING"),
    "key_option": (
        "USING BTREE", "ON CONFLICT REPLACE", "DEFERRABLE INITIALLY DEFERRED", "RELY", "DISABLE NOVALIDATE",
    ),
}  # fmt: skip
OTHERS = (
    "SHOW {shown} TABLES {of}", "SHOW DATABASES {of}", "SHOW CATALOGS {of}", "SHOW VIEWS {of}", "SHOW FUNCTIONS {of}",
    "SHOW CREATE TABLE t {of}", "SHOW COLUMNS FROM t {of}", "SHOW CURRENT DATABASE {of}", "SHOW CURRENT CATALOG {of}",
    "DESCRIBE {described} t {of}", "DESC {described} t {of}", "USE {used} default_database {of}",
    "EXPLAIN {explained} SELECT a FROM t", "DROP {dropped} TABLE IF EXISTS nothing {after}",
    "DROP {dropped} VIEW IF EXISTS nothing {after}", "DROP {dropped} DATABASE IF EXISTS nothing {after_database}",
    "RESET {reset} 'a.b' {of}", "SET {reset} 'a.b' = 'c' {of}",
)  # fmt: skip
CLAUSES |= {
    "shown": ("FULL", "EXTENDED", "TERSE", "ALL", "OPEN"),
    "of": (
        "HISTORY", "WHERE a = 1", "LIMIT 3", "STARTS WITH 'x'", "IN ACCOUNT", "FORMAT JSON", "AS JSON", "AS SERDE",
        "FROM default_database FROM x", "PARTITION (a = 1)", "FROM nothing", "IN nothing", "LIKE 'x%' ESCAPE '!'",
    ),
    "described": ("EXTENDED", "FORMATTED", "TABLE", "DATABASE", "FUNCTION", "HISTORY", "STREAM"),
    "used": ("SCHEMA", "DATABASE", "ROLE", "WAREHOUSE"),
    "explained": (
        "ANALYZE", "EXTENDED", "FORMATTED", "CODEGEN", "VERBOSE", "(ANALYZE, BUFFERS)", "QUERY PLAN FOR",
        "FORMAT = JSON", "USING JSON", "PIPELINE", "SYNTAX",
    ),
    "dropped": ("TRANSIENT", "EXTERNAL", "TEMPORARY EXTERNAL"),
    "after": (
        "PURGE", "CASCADE CONSTRAINTS", "SYNC", "NO DELAY", "ON CLUSTER c", "CASCADE", "RESTRICT", "CASCADE RESTRICT",
    ),
    "after_database": ("PURGE", "SYNC", "RESTRICT", "CASCADE RESTRICT", "RESTRICT CASCADE", "WITH (FORCE)"),
    "reset": ("GLOBAL", "SESSION", "LOCAL", "PERSIST"),
}  # fmt: skip
_SLOT = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Statement:
    """A statement with clauses of other systems, and what it is without them."""

    text: str
    plain: str
    clauses: tuple[str, ...]

    @property
    def is_meaningless(self) -> bool:
        """Whether all of its clauses may change nothing."""
        return all(one in MEANINGLESS for one in self.clauses)


def statements(bases: tuple[str, ...]) -> Iterator[Statement]:
    """Each base with each clause in each of its slots, one at a time."""
    for base in bases:
        plain = filled(base, {})
        for at, slot in enumerate(_SLOT.finditer(base)):
            for clause in CLAUSES[slot[1]]:
                yield Statement(filled(base, {at: clause}), plain, (clause,))


def some(bases: tuple[str, ...], count: int, seed: int) -> list[Statement]:
    """Statements with one clause, and one in four with two, in an order that the seed gives."""
    chosen = random.Random(seed)
    singles = list(statements(bases))
    chosen.shuffle(singles)
    found = singles[: count - count // 4]
    while len(found) < count:
        base = chosen.choice(bases)
        slots = [one[1] for one in _SLOT.finditer(base)]
        first, second = sorted(chosen.sample(range(len(slots)), 2)) if len(slots) > 1 else (0, 0)
        pair = {at: chosen.choice(CLAUSES[slots[at]]) for at in (first, second)}
        found.append(Statement(filled(base, pair), filled(base, {}), tuple(pair.values())))
    return found


def filled(base: str, clauses: dict[int, str]) -> str:
    """A base with the clauses in the slots of these numbers, and nothing in all others."""
    numbers = iter(range(base.count("{")))

    def put(slot: re.Match[str]) -> str:
        clause = clauses.get(next(numbers), "")
        before = base[slot.start() - 1]
        return clause if before == " " or not clause or not clause[0].isalpha() else f" {clause}"

    return _SLOT.sub(put, base)
