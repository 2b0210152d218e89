"""What the pages of Flink 2.3 on queries in SQL say that they give: windows, groups, joins, ranks, sets, patterns."""

from __future__ import annotations

import pytest

from rayflink.common.errors import JobFailed
from rayflink.table import SqlError
from tests.pyflink.documented_programs import bids, changes, csv_table, environment, final_rows, printed

TEN = "INTERVAL '10' MINUTES"
TUMBLES = f"TUMBLE(TABLE Bid, DESCRIPTOR(bidtime), {TEN})"
CUMULATES = (
    "08:00 08:06 4.00", "08:00 08:08 6.00", "08:00 08:10 11.00", "08:10 08:12 3.00",
    "08:10 08:14 4.00", "08:10 08:16 4.00", "08:10 08:18 10.00", "08:10 08:20 10.00",
)  # fmt: skip

# Windowing table-valued functions and window aggregation


@pytest.mark.parametrize(
    "window, expected",
    [
        ("TUMBLE({0}, {1}, {2})", ("08:00 08:10 11.00", "08:10 08:20 10.00")),
        ("TUMBLE({0}, {1}, {2}, INTERVAL '1' MINUTES)", ("08:01 08:11 11.00", "08:11 08:21 10.00")),
        ("HOP({0}, {1}, INTERVAL '5' MINUTES, {2})",
         ("08:00 08:10 11.00", "08:05 08:15 15.00", "08:10 08:20 10.00", "08:15 08:25 6.00")),
        ("CUMULATE({0}, {1}, INTERVAL '2' MINUTES, {2})", CUMULATES),
        ("SESSION({0}, {1}, INTERVAL '2' MINUTES)", ("08:05 08:15 15.00", "08:17 08:19 6.00")),
        ("TUMBLE(DATA => {0}, TIMECOL => {1}, SIZE => {2}, `OFFSET` => INTERVAL '1' MINUTES)",
         ("08:01 08:11 11.00", "08:11 08:21 10.00")),
        ("CUMULATE(DATA => {0}, TIMECOL => {1}, STEP => INTERVAL '2' MINUTES, SIZE => {2})", CUMULATES),
        ("SESSION(DATA => {0}, TIMECOL => {1}, GAP => INTERVAL '2' MINUTES)",
         ("08:05 08:15 15.00", "08:17 08:19 6.00")),
    ],
)  # fmt: skip
def test_windows_have_the_sums_of_the_page(tmp_path, window, expected):
    function = window.format("TABLE Bid", "DESCRIPTOR(bidtime)", TEN)
    query = f"SELECT window_start, window_end, SUM(price) FROM {function} GROUP BY window_start, window_end"
    assert printed(bids(tmp_path), query) == list(expected)


def test_a_window_function_alone_adds_three_columns(tmp_path):
    rows = printed(bids(tmp_path), f"SELECT item, window_start, window_end, window_time FROM {TUMBLES}")
    assert rows[:3] == [f"{item} 08:00 08:10 08:09:59" for item in "CAD"]


@pytest.mark.parametrize("offset, start", [(-16, 54), (-6, 54), (-4, 56), (0, 0), (4, 54), (6, 56), (16, 56)])
def test_an_offset_moves_a_window(tmp_path, offset, start):
    t_env = environment()
    csv_table(t_env, tmp_path, "t", "ts TIMESTAMP(3), WATERMARK FOR ts AS ts", "2021-06-30 00:00:04")
    window = f"TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTE, INTERVAL '{offset}' MINUTE)"
    assert printed(t_env, f"SELECT MINUTE(window_start) FROM {window}") == [str(start)]


def test_sessions_of_each_supplier_and_grouping_sets_of_a_window(tmp_path):
    t_env = bids(tmp_path)
    session = "SESSION(TABLE Bid PARTITION BY supplier_id, DESCRIPTOR(bidtime), INTERVAL '2' MINUTES)"
    assert printed(t_env, f"SELECT window_start, window_end, supplier_id, SUM(price) FROM {session} "
                   "GROUP BY window_start, window_end, supplier_id") == [
        "08:05 08:09 supplier1 6.00", "08:09 08:13 supplier2 8.00",
        "08:13 08:15 supplier1 1.00", "08:17 08:19 supplier2 6.00"]  # fmt: skip
    grouped = f"SELECT window_start, supplier_id, SUM(price) FROM {TUMBLES} GROUP BY window_start, window_end, "
    sets = final_rows(t_env, grouped + "GROUPING SETS ((supplier_id), ())")
    assert sets == ["08:00 - 11.00", "08:00 supplier1 6.00", "08:00 supplier2 5.00",
                    "08:10 - 10.00", "08:10 supplier1 1.00", "08:10 supplier2 9.00"]  # fmt: skip
    assert final_rows(t_env, grouped + "ROLLUP (supplier_id)") == sets


def test_windows_follow_windows_by_their_time(tmp_path):
    t_env = bids(tmp_path)
    t_env.execute_sql(
        "CREATE VIEW five AS SELECT window_time AS rowtime, SUM(price) AS part FROM TUMBLE(TABLE Bid, "
        "DESCRIPTOR(bidtime), INTERVAL '5' MINUTES) GROUP BY supplier_id, window_start, window_end, window_time"
    )
    query = f"SELECT window_start, SUM(part) FROM TUMBLE(TABLE five, DESCRIPTOR(rowtime), {TEN}) "
    assert printed(t_env, query + "GROUP BY window_start, window_end") == ["08:00 11.00", "08:10 10.00"]


@pytest.mark.parametrize(
    "call, expected",
    [
        ("TUMBLE{}(bidtime, INTERVAL '10' MINUTE)", "08:00 08:10 08:09:59 2"),
        ("HOP{}(bidtime, INTERVAL '5' MINUTE, INTERVAL '10' MINUTE)", "08:00 08:10 08:09:59 2"),
        ("SESSION{}(bidtime, INTERVAL '2' MINUTE)", "08:05 08:09 08:08:59 2"),
    ],
)
def test_groups_of_old_windows_have_start_end_and_rowtime(tmp_path, call, expected):
    bounds = ", ".join(call.format(part) for part in ("_START", "_END", "_ROWTIME"))
    query = f"SELECT {bounds}, COUNT(*) FROM Bid WHERE supplier_id = 'supplier1' GROUP BY {call.format('')}"
    assert printed(bids(tmp_path), query)[0] == expected


def test_the_first_ranks_and_the_last_row_of_a_window(tmp_path):
    t_env = bids(tmp_path)
    ranked = "SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY {} DESC) AS n FROM {}"
    sums = f"(SELECT window_start, window_end, supplier_id, SUM(price) AS price FROM {TUMBLES} "
    sums += "GROUP BY window_start, window_end, supplier_id)"
    assert printed(t_env, f"SELECT supplier_id, price, n FROM ({ranked.format('price', sums)}) WHERE n <= 3") == [
        "supplier1 6.00 1", "supplier2 5.00 2", "supplier2 9.00 1", "supplier1 1.00 2"]  # fmt: skip
    best = f"SELECT item, n FROM ({ranked.format('price', TUMBLES)}) WHERE n <= 2"
    assert printed(t_env, best) == ["D 1", "C 2", "F 1", "B 2"]
    assert printed(t_env, f"SELECT item FROM ({ranked.format('bidtime', TUMBLES)}) WHERE n <= 1") == ["D", "F"]


# Window joins


@pytest.fixture
def sides(tmp_path):
    t_env = environment()
    columns = "ts TIMESTAMP(3), num INT, id STRING, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND"
    for name, rows in (("L", ("02,1,L1", "06,2,L2", "03,3,L3")), ("R", ("01,2,R2", "04,3,R3", "05,4,R4"))):
        lines = (f"2020-04-15 12:{row[:2]}:00{row[2:]}" for row in rows)
        csv_table(t_env, tmp_path, f"{name}_rows", columns, *lines)
        window = f"TUMBLE(TABLE {name}_rows, DESCRIPTOR(ts), INTERVAL '5' MINUTES)"
        t_env.execute_sql(f"CREATE VIEW {name} AS SELECT * FROM TABLE({window})")
    return t_env


SAME_WINDOW = "L.window_start = R.window_start AND L.window_end = R.window_end"


def test_a_full_join_of_windows(sides):
    query = "SELECT L.num, L.id, R.num, R.id, COALESCE(L.window_start, R.window_start) FROM L FULL JOIN R "
    assert sorted(printed(sides, query + f"ON L.num = R.num AND {SAME_WINDOW}")) == [
        "- - 2 R2 12:00", "- - 4 R4 12:05", "1 L1 - - 12:00", "2 L2 - - 12:05", "3 L3 3 R3 12:00"]  # fmt: skip


@pytest.mark.parametrize("negation, expected", [("", ["L3"]), ("NOT ", ["L1", "L2"])])
def test_semi_and_anti_joins_of_windows(sides, negation, expected):
    within = f"SELECT id FROM L WHERE num {negation}IN (SELECT num FROM R WHERE {SAME_WINDOW})"
    assert printed(sides, within) == expected
    exists = f"SELECT id FROM L WHERE {negation}EXISTS (SELECT * FROM R WHERE L.num = R.num AND {SAME_WINDOW})"
    assert printed(sides, exists) == expected


# Groups, sets, WITH

PRODUCTS = (
    "(VALUES ('supplier1', 'product1', 4), ('supplier1', 'product2', 3), ('supplier2', 'product3', 3), "
    "('supplier2', 'product4', 4)) AS Products(supplier_id, product_id, rating)"
)


def test_grouping_sets_rollup_cube_and_having():
    t_env = environment(batch=True)
    grouped = f"SELECT supplier_id, rating, COUNT(*) FROM {PRODUCTS} GROUP BY "
    expected = ["- - 4", "supplier1 - 2", "supplier1 3 1", "supplier1 4 1",
                "supplier2 - 2", "supplier2 3 1", "supplier2 4 1"]  # fmt: skip
    assert sorted(printed(t_env, grouped + "GROUPING SETS ((supplier_id, rating), (supplier_id), ())")) == expected
    assert sorted(printed(t_env, grouped + "ROLLUP (supplier_id, rating)")) == expected
    cube = sorted(printed(t_env, grouped + "CUBE (supplier_id, rating)"))
    assert cube == sorted([*expected, "- 3 2", "- 4 2"])
    assert printed(t_env, f"SELECT SUM(rating) FROM {PRODUCTS} HAVING SUM(rating) > 50") == []
    assert printed(t_env, f"SELECT COUNT(DISTINCT supplier_id), COUNT(*) FROM {PRODUCTS}") == ["2 4"]


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize(
    "operation, expected",
    [("UNION", "abcde"), ("UNION ALL", "aabbbbccde"), ("INTERSECT", "ab"), ("INTERSECT ALL", "abb"),
     ("EXCEPT", "c"), ("EXCEPT ALL", "cc")],
)  # fmt: skip
def test_set_operations(batch, operation, expected):
    t_env = environment(batch)
    t_env.execute_sql("create view t1(s) as values ('c'), ('a'), ('b'), ('b'), ('c')")
    t_env.execute_sql("create view t2(s) as values ('d'), ('e'), ('a'), ('b'), ('b')")
    assert final_rows(t_env, f"(SELECT s FROM t1) {operation} (SELECT s FROM t2)") == list(expected)
    assert final_rows(t_env, "WITH w AS (SELECT s FROM t1) SELECT s FROM w WHERE s IN (SELECT s FROM t2)") == [*"abb"]


# OVER, deduplication, Top-N, joins, time attributes


@pytest.fixture
def orders(tmp_path):
    t_env = environment()
    columns = "id STRING, product STRING, amount BIGINT, ts TIMESTAMP(3), proc AS PROCTIME(), WATERMARK FOR ts AS ts"
    lines = ("1,p,10,10:00", "2,p,20,10:30", "3,q,5,10:40", "4,p,40,11:15")
    csv_table(t_env, tmp_path, "Orders", columns, *(f"{line[:-5]}2020-01-01 {line[-5:]}:00" for line in lines))
    csv_table(t_env, tmp_path, "Product", "pid STRING, name STRING", "p,pen", "r,rag")
    csv_table(t_env, tmp_path, "Shipments", "oid STRING, shipped TIMESTAMP(3), WATERMARK FOR shipped AS shipped",
              "1,2020-01-01 12:00:00", "4,2020-01-01 19:00:00")  # fmt: skip
    return t_env


def test_over_windows_by_time_and_by_rows(orders):
    hour = "(PARTITION BY product ORDER BY ts RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW)"
    expected = ["1 10 10", "2 30 15", "3 5 5", "4 60 30"]
    assert printed(orders, f"SELECT id, SUM(amount) OVER {hour}, AVG(amount) OVER {hour} FROM Orders") == expected
    named = f"SELECT id, SUM(amount) OVER w, AVG(amount) OVER w FROM Orders WINDOW w AS {hour}"
    assert printed(orders, named) == expected
    rows = "(PARTITION BY product ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"
    assert printed(orders, f"SELECT id, SUM(amount) OVER {rows} FROM Orders") == ["1 10", "2 30", "3 5", "4 60"]


def test_deduplication_and_top_n(orders):
    number = "ROW_NUMBER() OVER (PARTITION BY product ORDER BY {}) AS n FROM Orders"
    first = f"SELECT id FROM (SELECT *, {number.format('proc ASC')}) WHERE n = 1"
    assert changes(orders, first) == ["+I 1", "+I 3"]
    last = f"SELECT id, product, {number.format('ts DESC')} QUALIFY n = 1"
    assert final_rows(orders, last) == ["3 q 1", "4 p 1"]
    best = f"SELECT id, n FROM (SELECT *, {number.format('amount DESC')}) WHERE n <= 2"
    assert final_rows(orders, best) == ["2 2", "3 1", "4 1"]
    assert final_rows(orders, "SELECT id FROM Orders ORDER BY amount LIMIT 3") == ["1", "2", "3"]


@pytest.mark.parametrize(
    "join, expected",
    [("INNER", ["1 pen", "2 pen", "4 pen"]), ("LEFT", ["1 pen", "2 pen", "3 -", "4 pen"]),
     ("RIGHT", ["- rag", "1 pen", "2 pen", "4 pen"]), ("FULL OUTER", ["- rag", "1 pen", "2 pen", "3 -", "4 pen"])],
)  # fmt: skip
def test_regular_joins(orders, join, expected):
    assert final_rows(orders, f"SELECT id, name FROM Orders {join} JOIN Product ON product = pid") == expected


def test_interval_joins_and_expansions_of_arrays(orders):
    within = "o.ts BETWEEN s.shipped - INTERVAL '4' HOUR AND s.shipped"
    assert printed(orders, f"SELECT o.id FROM Orders o, Shipments s WHERE o.id = s.oid AND {within}") == ["1"]
    arrays = "SELECT id, tag, i FROM Orders CROSS JOIN UNNEST(ARRAY['x', 'y']) WITH ORDINALITY AS t (tag, i)"
    assert printed(orders, arrays)[:2] == ["1 x 1", "1 y 2"]
    assert printed(orders, "SELECT id, k, v FROM Orders CROSS JOIN UNNEST(MAP['a', 1]) AS t (k, v)")[0] == "1 a 1"


def test_orders_have_the_rate_of_their_time(tmp_path):
    t_env = environment()
    csv_table(t_env, tmp_path, "history", "currency STRING, rate DECIMAL(32, 2), changed TIMESTAMP(3), "
              "WATERMARK FOR changed AS changed - INTERVAL '15' SECOND",
              "EUR,1.14,2020-01-01 12:00:00", "EUR,1.10,2020-01-01 12:05:00")  # fmt: skip
    csv_table(t_env, tmp_path, "orders", "id STRING, price DECIMAL(32, 2), currency STRING, ts TIMESTAMP(3), "
              "WATERMARK FOR ts AS ts - INTERVAL '15' SECOND",
              "o_001,11.11,EUR,2020-01-01 12:00:00", "o_002,12.51,EUR,2020-01-01 12:06:00")  # fmt: skip
    newest = "ROW_NUMBER() OVER (PARTITION BY currency ORDER BY changed DESC) AS n FROM history"
    t_env.execute_sql(f"CREATE VIEW rates AS SELECT currency, rate, changed FROM (SELECT *, {newest}) WHERE n = 1")
    query = "SELECT id, price, orders.currency, rate, ts FROM orders LEFT JOIN rates FOR SYSTEM_TIME AS OF orders.ts "
    assert printed(t_env, query + "ON orders.currency = rates.currency") == [
        "o_001 11.11 EUR 1.14 12:00", "o_002 12.51 EUR 1.10 12:06"]  # fmt: skip


def test_a_time_attribute_is_computed_of_milliseconds(tmp_path):
    t_env = environment()
    csv_table(t_env, tmp_path, "user_actions", "user_name STRING, ts BIGINT, time_ltz AS TO_TIMESTAMP_LTZ(ts, 3), "
              "WATERMARK FOR time_ltz AS time_ltz - INTERVAL '5' SECOND", "a,1000", "b,2000", "a,700000")  # fmt: skip
    window = "(time_ltz, INTERVAL '10' MINUTE)"
    query = f"SELECT MINUTE(TUMBLE_START{window}), COUNT(DISTINCT user_name) FROM user_actions GROUP BY TUMBLE{window}"
    assert printed(t_env, query) == ["0 2", "10 1"]


# Pattern recognition


def matches(folder, prices, clauses):
    t_env = environment()
    csv_table(t_env, folder, "Ticker", "symbol STRING, rowtime TIMESTAMP(3), price BIGINT, WATERMARK FOR rowtime AS "
              "rowtime", *(f"X,2011-04-01 10:00:{i:02},{price}" for i, price in enumerate(prices)))  # fmt: skip
    return printed(t_env, f"SELECT * FROM Ticker MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY rowtime {clauses}) MR")


def test_a_fall_of_prices_is_one_match(tmp_path):
    falls = (
        "MEASURES START_ROW.rowtime AS a, LAST(PRICE_DOWN.rowtime) AS b, LAST(PRICE_UP.rowtime) AS c "
        "ONE ROW PER MATCH AFTER MATCH SKIP TO LAST PRICE_UP PATTERN (START_ROW PRICE_DOWN+ PRICE_UP) "
        "DEFINE PRICE_DOWN AS (LAST(PRICE_DOWN.price, 1) IS NULL AND PRICE_DOWN.price < START_ROW.price) "
        "OR PRICE_DOWN.price < LAST(PRICE_DOWN.price, 1), PRICE_UP AS PRICE_UP.price > LAST(PRICE_DOWN.price, 1)"
    )
    expected = ["X 10:00:04 10:00:07 10:00:08"]
    assert matches(tmp_path, [12, 17, 19, 21, 25, 18, 15, 14, 24, 25, 19], falls) == expected


def test_averages_bound_a_match(tmp_path):
    below = "MEASURES FIRST(A.rowtime) AS a, LAST(A.rowtime) AS b, AVG(A.price * 1.0) AS c ONE ROW PER MATCH "
    below += "AFTER MATCH SKIP PAST LAST ROW PATTERN (A+ B) DEFINE A AS AVG(A.price) < 15"
    rows = matches(tmp_path, [12, 17, 13, 16, 25, 2, 4, 10, 15, 25, 25, 30], below)
    assert [row.rstrip("0") for row in rows] == ["X 10:00 10:00:03 14.5", "X 10:00:05 10:00:10 13.5"]


@pytest.mark.parametrize("quantifier, expected", [("B*", ["X 16"]), ("B*?", ["X 13", "X 16"])])
def test_greedy_and_reluctant_quantifiers(tmp_path, quantifier, expected):
    clauses = f"MEASURES C.price AS p ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A {quantifier} C) "
    clauses += "DEFINE A AS A.price > 10, B AS B.price < 15, C AS C.price > 12"
    assert matches(tmp_path, [10, 11, 12, 13, 14, 16], clauses) == expected


SUMS = "MEASURES SUM(A.price) AS s, FIRST(rowtime) AS a, LAST(rowtime) AS b ONE ROW PER MATCH "


@pytest.mark.parametrize(
    "skip, expected",
    [
        ("PAST LAST ROW", ["26 0 3", "17 4 6"]),
        ("TO NEXT ROW", ["26 0 3", "24 1 4", "25 2 5", "22 3 6", "17 4 6"]),
        ("TO LAST A", ["26 0 3", "25 2 5", "17 4 6"]),
    ],
)
def test_the_next_match_begins_behind_the_last_row_or_before(tmp_path, skip, expected):
    clauses = SUMS + f"AFTER MATCH SKIP {skip} PATTERN (A+ C) DEFINE A AS SUM(A.price) < 30"
    assert [row.removeprefix("X ").replace("10:00:0", "").replace("10:00", "0")
            for row in matches(tmp_path, [7, 9, 10, 5, 10, 7, 14], clauses)] == expected  # fmt: skip


def test_patterns_that_the_page_excludes_are_errors(tmp_path):
    endless = SUMS + "AFTER MATCH SKIP TO FIRST A PATTERN (A+ C) DEFINE A AS SUM(A.price) < 30"
    with pytest.raises(JobFailed, match="the first event is skipped to in the match"):
        matches(tmp_path, [7, 9, 10, 5], endless)
    for pattern, problem in (("A*", "no row at all"), ("A B*", "greedy"), ("A??", "reluctant form"),
                             ("^A", "anchor"), ("PERMUTE(A, B)", "PERMUTE")):  # fmt: skip
        with pytest.raises(SqlError, match=problem):
            matches(tmp_path, [1], f"MEASURES A.price AS p PATTERN ({pattern}) DEFINE A AS A.price > 0")
