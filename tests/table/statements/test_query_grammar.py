"""Every part of the parser's nodes is known and read, or refused: `rayflink/table/parsing/grammar.py` against both."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest
from sqlglot import exp

from rayflink.table import EnvironmentSettings, SqlError, TableEnvironment
from rayflink.table.parsing import dialect
from rayflink.table.parsing.foreign_clauses import CLAUSES, PARTS, foreign_part
from rayflink.table.parsing.grammar import GRAMMAR, NESTED, NOTHING, PLAIN
from rayflink.table.parsing.known_parts import KnownParts, inner_role
from rayflink.table.parsing.statement_parser import StatementParser, parse_statement

WORD = "this word"
FULL_NAMES = [
    "SELECT a.b.f(1) OVER (ORDER BY c), a.f(1) FILTER (WHERE TRUE)",
    "SELECT * FROM ML_PREDICT(TABLE t, MODEL m, DESCRIPTOR(a))",
    "SELECT a FROM b.f(TABLE t PARTITION BY a ORDER BY ts)",
]
"""Queries of functions and models by names that are looked up elsewhere."""
QUERIES = [
    "WITH c (p) AS (SELECT a FROM t), d AS (VALUES (1), (2)) SELECT DISTINCT p FROM c WHERE p IN (1, 2) ORDER BY "
    "p LIMIT 3 OFFSET 1",
    "WITH c AS (SELECT a FROM t) (SELECT a FROM c) ORDER BY a DESC NULLS LAST LIMIT 2 OFFSET 1",
    "WITH c AS (SELECT a FROM t) SELECT a FROM c UNION SELECT a FROM u ORDER BY a LIMIT 1 OFFSET 2",
    "SELECT a FROM t UNION ALL SELECT a FROM u ORDER BY a",
    "WITH c AS (SELECT a FROM t) SELECT a FROM c INTERSECT SELECT a FROM u ORDER BY a LIMIT 1 OFFSET 2",
    "WITH c AS (SELECT a FROM t) SELECT a FROM c EXCEPT SELECT a FROM u ORDER BY a LIMIT 1 OFFSET 2",
    "VALUES (1, 'x'), (2, 'y') ORDER BY EXPR$0 LIMIT 2 OFFSET 1",
    "SELECT *, t.a AS z FROM t FETCH NEXT 3 ROWS ONLY",
    "SELECT t.*, u.b FROM t JOIN u ON t.a = u.a AND t.b = u.b",
    "SELECT * FROM t LEFT JOIN u USING (a)",
    "SELECT * FROM t AS p FULL OUTER JOIN u AS q ON p.a = q.a",
    "SELECT a FROM t NATURAL JOIN (SELECT a FROM u) AS v",
    "SELECT * FROM t, u",
    "SELECT p FROM (t CROSS JOIN (VALUES (1, 2)) AS v (p, q)) AS w (a, b, ts, x, m, r, p, q)",
    "SELECT v.q FROM t LEFT JOIN ((u) JOIN (VALUES (1)) AS v (q) ON TRUE) ON TRUE",
    "SELECT v.q FROM t LEFT JOIN (SELECT a AS q FROM u) AS v JOIN (SELECT a FROM u) AS w ON w.a = v.q ON TRUE",
    "SELECT v.q FROM t LEFT JOIN u AS s JOIN (SELECT a AS q FROM u) AS v ON s.a = v.q ON TRUE",
    "SELECT z FROM t CROSS JOIN UNNEST(x) AS w (z)",
    "SELECT z, n FROM t CROSS JOIN UNNEST(x) WITH ORDINALITY AS w (z, n)",
    "SELECT a FROM default_catalog.default_database.t",
    "SELECT z FROM t, LATERAL TABLE(pieces(b)) AS w (z)",
    "SELECT z FROM TABLE(pieces('x y')) AS w (z)",
    "SELECT a FROM t WHERE (a, b) IN (SELECT a, b FROM u WHERE u.a = t.a) AND NOT EXISTS (SELECT 1 FROM u WHERE "
    "u.b = t.b)",
    "SELECT a FROM t WHERE a IN (SELECT DISTINCT a FROM u ORDER BY a LIMIT 3)",
    "SELECT a FROM t WHERE a BETWEEN 1 AND 3 AND a NOT BETWEEN SYMMETRIC 7 AND 5",
    "SELECT a FROM t WHERE b LIKE 'x%' OR b NOT LIKE '!%' ESCAPE '!' OR b SIMILAR TO 'x' OR b IS NULL OR a > 1 IS "
    "NOT TRUE OR a > 1 IS UNKNOWN",
    "SELECT b IS JSON OBJECT, b IS NOT JSON, (ts, ts) OVERLAPS (ts, ts) FROM t",
    "SELECT a + 1 - 2 * 3 / 4 % 5, b || 'x', -a, NOT a = 1, a <> 1 OR a < 1 OR a <= 1 OR a > 1 OR a >= 1 FROM t",
    "SELECT a IS DISTINCT FROM 1, a IS NOT DISTINCT FROM 1, NULL, TRUE, x'0a', ts + INTERVAL '1 2' DAY TO HOUR "
    "FROM t",
    "SELECT CASE a WHEN 1 THEN 'x' ELSE 'y' END, CASE WHEN a = 1 THEN 'x' END, x[1], m['k'], t.r.f.g.h.i.j, (a, "
    "b) FROM t",
    "SELECT UPPER(b), CAST(a AS STRING), TRIM(LEADING 'x' FROM b), EXTRACT(YEAR FROM ts), JSON_VALUE(b, '$.x' "
    "RETURNING INT) FROM t",
    "SELECT b, COUNT(*), COUNT(DISTINCT a), SUM(a) FILTER (WHERE a > 1), ARRAY_AGG(a IGNORE NULLS), ARRAY_AGG(a "
    "RESPECT NULLS) FROM t GROUP BY b HAVING COUNT(*) > 1 AND SUM(a) > 2",
    "SELECT a, b, COUNT(*) FROM t GROUP BY GROUPING SETS ((a, b), (a), ROLLUP (a, b), CUBE (b))",
    "SELECT a, b, COUNT(*) FROM t GROUP BY a, ROLLUP (b)",
    "SELECT a, b, ROW_NUMBER() OVER (PARTITION BY b ORDER BY a DESC NULLS LAST) AS n FROM t QUALIFY ROW_NUMBER() "
    "OVER (PARTITION BY b ORDER BY a DESC NULLS LAST) <= 2 ORDER BY a + 1",
    "SELECT LAG(a, 2, 0) OVER w, MAX(a) OVER v, SUM(a) FILTER (WHERE a > 1) OVER (w ROWS 2 PRECEDING) FROM t "
    "WINDOW w AS (PARTITION BY b ORDER BY a), v AS (w ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING)",
    "SELECT window_start, SUM(a) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY "
    "window_start, window_end",
    "SELECT SUM(a) FROM TABLE(TUMBLE(DATA => TABLE default_database.t, TIMECOL => DESCRIPTOR(ts), SIZE => "
    "INTERVAL '1' HOUR)) GROUP BY window_start, window_end",
    "SELECT a FROM TABLE(SESSION(TABLE default_catalog.default_database.t PARTITION BY b, DESCRIPTOR(ts), "
    "INTERVAL '1' HOUR)) AS s",
    "SELECT z FROM t MATCH_RECOGNIZE (PARTITION BY b ORDER BY ts, a DESC NULLS LAST MEASURES FINAL LAST(u.a, 1) AS z "
    "ALL ROWS PER MATCH AFTER MATCH SKIP TO LAST c PATTERN (d (e | c){2,3}? f) WITHIN INTERVAL '1 2' DAY TO HOUR "
    "SUBSET u = (d, e) DEFINE e AS e.a > 1) AS n (b, ts, a, z, x, m, r)",
    "SELECT z FROM (t JOIN u USING (a)) MATCH_RECOGNIZE (ORDER BY a MEASURES c.a AS z PATTERN (c)) AS n",
    "SELECT /*+ STATE_TTL('t' = '1 d') */ DISTINCT a FROM t",
]  # fmt: skip
"""Each part of the grammar stands in one of them at least, but those that the binder refuses by itself."""
REFUSED = {
    ("value", exp.Subquery, "this"), ("lateral", exp.Subquery, "this"), ("table name", exp.Dot, "this"),
    ("table name", exp.Dot, "expression"),
}  # fmt: skip
REFUSED_PARTS = {(exp.Select, "hint"), (exp.Table, "version"),
                 (exp.Version, "this"), (exp.Version, "kind"), (exp.Version, "expression")}  # fmt: skip
NOT_READ = {
    (exp.Identifier, "quoted"): "of other names than those of functions without parentheses",
    (exp.Window, "over"): "the word OVER alone",
    (exp.Fetch, "direction"): "FIRST and NEXT are one",
    (exp.LimitOptions, "rows"): "ROW and ROWS are one",
    (exp.Div, "typed"): "of the dialect",
    (exp.Div, "safe"): "of the dialect",
    (exp.DPipe, "safe"): "of the dialect",
    (exp.HexString, "is_integer"): "of the dialect",
    (exp.Literal, "is_string"): "of keys of hints",
}


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    from rayflink.table import DataTypes
    from rayflink.table.udf import udtf

    file = tmp_path_factory.mktemp("grammar") / "rows"
    file.write_text("")
    found = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    found.create_temporary_function("pieces", udtf(str.split, result_types=[DataTypes.STRING()]))
    for name in ("t", "u"):
        found.execute_sql(
            f"CREATE TABLE {name} (a INT, b STRING, ts TIMESTAMP(3), x ARRAY<INT>, m MAP<STRING, INT>, "
            f"r ROW<f ROW<g ROW<h ROW<i ROW<j INT>>>>>, "
            f"WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{file}')"
        )
    return found


def nodes(tree, role: str) -> Iterator[tuple[str, exp.Expression]]:
    """Each node of a tree with its role."""
    yield role, tree
    for name, value in tree.args.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, exp.Expr):
                yield from nodes(one, inner_role(GRAMMAR[role][type(tree)][name], one))


class Read(dict):
    """The parts of a node, which note what is asked for by its name."""

    def __init__(self, node, log) -> None:
        super().__init__(node.args)
        self.node, self.log = node, log

    def get(self, name, default=None):
        self.log.append((self.node, name))
        return super().get(name, default)

    def __getitem__(self, name):
        self.log.append((self.node, name))
        return super().__getitem__(name)


def watched(tree, log):
    for node in tree.walk():
        node.args = Read(node, log)
    return tree


@pytest.mark.parametrize("query", QUERIES)
def test_each_part_of_a_query_is_read_by_what_binds_it(environment, query, monkeypatch):
    log: list[tuple[exp.Expression, str]] = []
    copied, changed = exp.Expression.copy, exp.Expression.transform
    monkeypatch.setattr(exp.Expression, "copy", lambda node: watched(copied(node), log))
    monkeypatch.setattr(exp.Expression, "transform", lambda *args: watched(changed(*args), log))
    tree = watched(parse_statement(query).tree, log)
    environment._context.bind(tree, query)
    read = {(node, name) for node, name in list(log)}
    for _, node in nodes(tree, "query"):
        for name, value in dict.items(node.args):
            if value in (None, [], False) or (type(node), name) in NOT_READ:
                continue
            assert (node, name) in read, f"nobody reads {name} of {node!r}"


def test_each_part_of_the_grammar_stands_in_a_query():
    seen = {(role, type(node), name) for query in (*QUERIES, *FULL_NAMES)
            for role, node in nodes(parse_statement(query).tree, "query")
            for name, value in node.args.items() if value not in (None, [])}  # fmt: skip
    parts = {(kind, name) for _, kind, name in seen}
    expected = {(role, kind, name) for role, kinds in GRAMMAR.items() for kind, known in kinds.items()
              for name, inner in known.items() if inner != NOTHING}  # fmt: skip
    missing = {(kind, name) for _, kind, name in expected - REFUSED} - parts - REFUSED_PARTS
    assert {(kind, name) for kind, name in missing if (kind, name) not in NOT_READ} == set()


def test_the_grammar_names_parts_that_the_parser_has():
    for kinds in GRAMMAR.values():
        for kind, known in kinds.items():
            assert set(known) <= set(kind.arg_types), kind
            assert all(inner in GRAMMAR or inner in (PLAIN, NOTHING, NESTED) for inner in known.values())
    for kind, name in CLAUSES:
        assert name in kind.arg_types
    names = {name for kind in vars(exp).values() if inspect.isclass(kind) for name in getattr(kind, "arg_types", ())}
    assert set(PARTS) <= names


def checked(tree, role="query") -> SqlError:
    with pytest.raises(SqlError) as caught:
        KnownParts("", []).check(tree, role)
    return caught.value


def test_each_part_of_the_parsers_classes_that_is_not_in_the_grammar_is_refused():
    count = 0
    for role, kinds in GRAMMAR.items():
        for kind, known in kinds.items():
            for name in (*kind.arg_types, "a_part_of_a_later_version"):
                if name in known and known[name] != NOTHING:
                    continue
                values = [True, [exp.Identifier(this=WORD)]]
                for value in values if name in known else [*values, False]:
                    found = checked(kind(**{name: value}), role)
                    assert found.problem == f"{foreign_part(kind, name).words.split('|')[0]} is not supported"
                    assert found.remedy
                    count += 1
    assert count > 900


def test_each_class_of_the_parser_that_has_no_role_is_refused():
    classes = [one for module in (exp, dialect) for one in vars(module).values()
               if inspect.isclass(one) and issubclass(one, exp.Expression)]  # fmt: skip
    assert len(classes) > 900
    for role in ("query", "value"):
        for kind in classes:
            if kind not in GRAMMAR[role]:
                assert "is not supported here" in checked(kind(), role).problem


def test_a_node_where_a_word_is_wanted_and_a_word_where_a_node_is_wanted_are_refused():
    for role, kinds in GRAMMAR.items():
        for kind, known in kinds.items():
            for name, inner in known.items():
                if inner == PLAIN:
                    checked(kind(**{name: exp.Identifier(this=WORD)}), role)
                elif inner in ("query", "table", "value", "name", "order", "join"):
                    checked(kind(**{name: WORD}), role)


def test_every_tree_of_a_statement_is_checked(monkeypatch):
    checks = []
    monkeypatch.setattr(StatementParser, "ensure_known", lambda parser, tree, role: checks.append(role))
    for text in (
        "CREATE TABLE d (a INT, b AS a + 1, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)",
        "ALTER TABLE d ADD (c AS a + 2, WATERMARK FOR ts AS ts)",
        "INSERT INTO d PARTITION (a = 3) SELECT 4",
        "CREATE VIEW v AS SELECT 5",
        "ALTER VIEW v AS SELECT 6",
        "CREATE TABLE d AS SELECT 7",
        "EXPLAIN SELECT 8",
        "EXECUTE STATEMENT SET BEGIN INSERT INTO d SELECT 9; END",
    ):
        parse_statement(text)
    assert checks == ["value"] * 5 + ["query"] * 6
