"""Process table functions in SQL and the Table API: the examples of Flink's page, and what is refused."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from rayflink.common import Row, RowKind
from rayflink.common.errors import InvalidTypesError
from rayflink.common.time import Duration, Instant
from rayflink.connectors.collection import CollectSink
from rayflink.table import ChangelogMode, DataTypes, EnvironmentSettings, ExplainDetail, SqlError, TableEnvironment
from rayflink.table.expressions import col, descriptor, lit
from rayflink.table.udf import (
    ChangelogFunction,
    ProcessTableFunction,
    ProcessTableFunctionArgument,
    ProcessTableFunctionState,
    list_view,
    table_arg,
    udptf,
    value_state,
)
from rayflink.table.udf import ProcessTableFunctionArgumentTrait as Trait
from tests.table.planned_streams import planned_stream

SET = {Trait.SET_SEMANTIC_TABLE}
ROW_OF_NAME = DataTypes.ROW([DataTypes.FIELD("name", DataTypes.STRING())])
NOON = datetime(2025, 3, 27, 12)


@udptf(arguments={"input": table_arg()}, result_type="STRING")
def greeting(ctx, input):
    yield f"Hello {input.name}!"


class GreetingWithMemory(ProcessTableFunction):
    """Says how often a name was greeted."""

    arguments = {"input": table_arg(traits=SET)}
    states = {"memory": value_state("ROW<times BIGINT>")}
    result_type = "STRING"

    def eval(self, ctx, memory, input):
        memory["times"] = (memory.times or 0) + 1
        yield f"Hello {input.name}, your {memory.times} time?"


class Cart:
    """Numbers of items by product."""

    def __init__(self):
        self.content = {}

    def add(self, product, items):
        self.content[product] = self.content.get(product, 0) + items
        if not self.content[product]:
            del self.content[product]


class Checkout(ProcessTableFunction):
    """Carts of users, with reminders and a timeout."""

    arguments = {"events": table_arg(traits={*SET, Trait.REQUIRE_ON_TIME}),
                 "reminder": DataTypes.INTERVAL(DataTypes.SECOND()), "timeout": DataTypes.INTERVAL(DataTypes.SECOND())}
    states = {"cart": value_state(Cart, ttl=Duration.of_days(7))}
    result_type = "ROW<checkout_type STRING, items MAP<BIGINT, INT>>"

    def eval(self, ctx, cart, events, reminder, timeout):
        if events.kind == "CHECKOUT":
            yield "CHECKOUT", cart.content
            ctx.clear_all()
            return
        cart.add(events.product, 1 if events.kind == "ADD" else -1)
        time = ctx.time_context(datetime)
        time.register_on_time("REMINDER", time.time() + reminder)
        time.register_on_time("TIMEOUT", time.time() + timeout)

    def on_timer(self, ctx, cart):
        if ctx.current_timer() == "REMINDER":
            yield "REMINDER", cart.content
        else:
            ctx.clear_all()


@udptf(
    arguments={"orders": table_arg(traits=SET), "payments": table_arg(traits=SET)},
    states={"order": value_state("ROW<user_id STRING>"), "payment": value_state("ROW<id INT>")},
    result_type="ROW<user_id STRING, payment INT>",
)
def pay(ctx, order, payment, orders, payments):
    """Joins an order and its first payment, of which neither is known for long."""
    if orders is not None and order.user_id is None:
        order["user_id"] = orders.user_id
    elif payments is not None and payment.id is None:
        payment["id"] = payments.id
    else:
        return
    if order.user_id is not None and payment.id is not None:
        yield order.user_id, payment.id


@pytest.fixture
def t_env() -> TableEnvironment:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set_string("execution.target", "local")
    t_env.create_temporary_view("names", t_env.from_elements([("Bob", 1), ("Alice", 2), ("Bob", 3)], ["name", "n"]))
    t_env.create_temporary_function("greeting", greeting)
    t_env.create_temporary_system_function("greeting_with_memory", GreetingWithMemory)
    t_env.create_temporary_function("pay", pay)
    return t_env


def rows(result) -> list[tuple]:
    return [tuple(row) for row in result.collect()]


def with_events(t_env, events, path) -> None:
    """Name a table of users' events, whose times are those of a file."""
    times = [(NOON + timedelta(seconds=event[3])).isoformat(" ", "milliseconds") for event in events]
    lines = [f"{user},{kind},{'' if product is None else product},{time}"
             for (user, kind, product, _), time in zip(events, times, strict=True)]  # fmt: skip
    (path / "events.csv").write_text("\n".join(lines) + "\n")
    t_env.execute_sql(f"""CREATE TEMPORARY TABLE events (`user` STRING, kind STRING, product BIGINT, ts TIMESTAMP(3),
        WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector'='filesystem', 'path'='{path}', 'format'='csv')
    """)


MEMORY = [(name, f"Hello {name}, your {times} time?") for name, times in (("Alice", 1), ("Bob", 1), ("Bob", 2))]


@pytest.mark.slow
def test_a_table_is_greeted_row_by_row_and_by_partitions(t_env):
    names = t_env.from_path("names").select(col("name"))
    hello = [("Hello Bob!",), ("Hello Alice!",), ("Hello Bob!",)]
    assert rows(t_env.execute_sql("SELECT * FROM greeting(TABLE names)")) == hello
    assert rows(names.process(greeting).execute()) == rows(names.process("greeting").execute()) == hello
    query = "SELECT * FROM greeting_with_memory(TABLE names PARTITION BY name)"
    assert sorted(rows(t_env.execute_sql(query))) == MEMORY
    for function in ("greeting_with_memory", GreetingWithMemory, GreetingWithMemory(), udptf(GreetingWithMemory())):
        assert sorted(rows(names.partition_by(col("name")).process(function).execute())) == MEMORY
    call = t_env.from_call("greeting_with_memory", names.partition_by(col("name")).as_argument("input"))
    assert call.get_schema().get_field_names() == ["name", "EXPR$0"]


def test_it_is_chained_joined_and_read_by_two_queries(t_env):
    query = """WITH first AS (SELECT name, EXPR$0 AS said FROM greeting_with_memory(TABLE names PARTITION BY name))
        SELECT g.EXPR$0, n.n FROM greeting_with_memory(TABLE first PARTITION BY name, uid => 'second') AS g
        JOIN names AS n ON n.name = g.name AND n.n = 2"""
    assert rows(t_env.execute_sql(query)) == [("Hello Alice, your 1 time?", 2)]
    shared = "SELECT * FROM greeting_with_memory(TABLE names PARTITION BY name, uid => 'same')"
    assert t_env.explain_sql(f"{shared} UNION ALL {shared}").count("Reused(") == 1
    other = "SELECT * FROM greeting_with_memory(TABLE few PARTITION BY name, uid => 'same')"
    with pytest.raises(SqlError, match="two calls of process table functions have the uid 'same'"):
        rows(t_env.execute_sql(f"WITH few AS (SELECT * FROM names WHERE n > 1) {shared} UNION ALL {other}"))


@pytest.mark.slow
def test_a_cart_is_reminded_of_and_checked_out(t_env, tmp_path):
    with_events(t_env, [("Bob", "ADD", 1, 11), ("Alice", "ADD", 1, 21), ("Bob", "REMOVE", 1, 51), ("Bob", "ADD", 2, 55),
                        ("Bob", "ADD", 5, 56), ("Bob", "CHECKOUT", None, 110)], tmp_path)  # fmt: skip
    t_env.create_temporary_function("checkout", Checkout)
    query = """SELECT `user`, checkout_type, items, CAST(rowtime AS STRING) FROM checkout(
        events => TABLE events PARTITION BY `user` ORDER BY ts, on_time => DESCRIPTOR(ts),
        reminder => INTERVAL '60' SECOND, timeout => INTERVAL '1' DAY, uid => 'cart-processor')"""
    assert sorted(rows(t_env.execute_sql(query))) == [
        ("Alice", "REMINDER", {1: 1}, "2025-03-27 12:01:21.000"),
        ("Bob", "CHECKOUT", {2: 1, 5: 1}, "2025-03-27 12:01:50.000"),
    ]
    plan = t_env.explain_sql(query)
    invocation = "events => TABLE #0 PARTITION BY (user) ORDER BY (ts ASC), reminder => "
    assert f"ProcessTableFunction(invocation=[CHECKOUT({invocation}" in plan
    assert "uid=[cart-processor], select=[user, checkout_type, items, rowtime])" in plan


def test_rows_come_in_the_order_of_a_time_and_further_keys(t_env, tmp_path):
    events = [("a", "x", 5, 1.9), ("b", "x", 7, 1.1), ("a", "y", 6, 1.9), ("b", "-", 1, 1.1), ("c", "z", 1, 1.5)]
    with_events(t_env, events, tmp_path)

    @udptf(
        arguments={"event": table_arg(traits={*SET, Trait.OPTIONAL_PARTITION_BY}), "mark": "STRING"},
        states={"count": value_state("ROW<n BIGINT>")}, result_type="ROW<n BIGINT, shown STRING>",
    )  # fmt: skip
    def number(ctx, count, event, mark="!"):
        count["n"] = (count.n or 0) + 1
        yield count.n, f"{event.user}{event.product}{mark}{ctx.table_semantics_for('event').order_by_columns()}"

    t_env.create_temporary_function("number", number)
    call = "number(event => TABLE events ORDER BY (ts, product DESC), mark => NULL)"
    shown = [(1, "b7None(3, 2)"), (2, "b1None(3, 2)"), (3, "c1None(3, 2)"), (4, "a6None(3, 2)"), (5, "a5None(3, 2)")]
    assert rows(t_env.execute_sql(f"SELECT * FROM {call}")) == shown
    ordered = t_env.from_path("events").partition_by(col("kind")).order_by(col("ts"), col("product").desc)
    result = rows(ordered.process(number, None).execute())
    assert [row for row in result if row[0] == "x"] == [("x", 1, "b7!(3, 2)"), ("x", 2, "a5!(3, 2)")]


def test_times_go_on_to_windows(t_env, tmp_path):
    with_events(t_env, [("a", "x", n, n) for n in range(1, 9)], tmp_path)

    @udptf(arguments={"event": table_arg(traits={*SET, Trait.OPTIONAL_PARTITION_BY})}, result_type="ROW<n BIGINT>")
    def later(ctx, event):
        time = ctx.time_context(Instant)
        time.register_on_time(Instant.of_epoch_milli(time.time().to_epoch_milli() + 500))

    @later.on_timer
    def later_timer(ctx):
        yield ctx.time_context(int).time() % 60_000

    timed = t_env.from_path("events").partition_by().process(later, descriptor("ts").as_argument("on_time"))
    query = f"""SELECT window_start, COUNT(*), MAX(n)
        FROM TUMBLE(TABLE {timed}, DESCRIPTOR(rowtime), INTERVAL '5' SECOND) GROUP BY window_start, window_end"""
    assert rows(t_env.execute_sql(query)) == [(NOON, 4, 4500), (NOON + timedelta(seconds=5), 4, 8500)]


def test_several_tables_meet_in_their_partitions(t_env):
    orders = [("Bob", 1), ("Bob", 2), ("Alice", 3), ("Charly", 4)]
    t_env.create_temporary_view("orders", t_env.from_elements(orders, ["user_id", "id"]))
    payments = [(70, 1), (70, 1), (31, 2), (11, 3)]
    t_env.create_temporary_view("payments", t_env.from_elements(payments, ["id", "order_id"]))
    result = t_env.execute_sql("SELECT * FROM pay(TABLE orders PARTITION BY id, TABLE payments PARTITION BY order_id)")
    assert sorted(rows(result)) == [(1, 1, "Bob", 70), (2, 2, "Bob", 31), (3, 3, "Alice", 11)]
    with pytest.raises(SqlError, match=r"PARTITION BY of several tables has the types \(BIGINT\) and \(STRING\)"):
        t_env.execute_sql("SELECT * FROM pay(TABLE orders PARTITION BY id, TABLE orders PARTITION BY user_id)")


def test_it_is_found_by_its_full_name_and_by_its_class(t_env):
    t_env.execute_sql("CREATE DATABASE shop")
    create = "CREATE FUNCTION shop.greet AS 'tests.table.test_process_functions.GreetingWithMemory' LANGUAGE PYTHON"
    t_env.execute_sql(create)
    calls = "shop.greet(TABLE names PARTITION BY name)", "default_catalog.shop.greet(TABLE names PARTITION BY name)"
    for call in calls:
        assert sorted(rows(t_env.execute_sql(f"SELECT * FROM {call} AS g"))) == MEMORY
    joined = f"SELECT n.n, g.EXPR$0 FROM names AS n JOIN {calls[0]} AS g ON g.name = n.name WHERE n.n = 2"
    assert rows(t_env.execute_sql(joined)) == [(2, "Hello Alice, your 1 time?")]
    with pytest.raises(SqlError, match="there is no function shop.greeting"):
        t_env.execute_sql("SELECT * FROM shop.greeting(TABLE names)")


def test_state_belongs_to_the_uid_whatever_the_query_around_it_is(t_env):
    def operator_ids(query):
        with t_env._queries.env.apart():
            planned_stream(t_env, t_env.sql_query(query)).sink_to(CollectSink()).uid("out")
            vertices = t_env._queries.env.get_job_graph().vertices
        return {str(one.operator_id) for vertex in vertices for one in vertex.operators
                if one.name == "ProcessTableFunction"}  # fmt: skip

    call = "SELECT * FROM greeting_with_memory(TABLE {} PARTITION BY name, uid => '{}')"
    ids = operator_ids(call.format("names", "greet"))
    changed = f"WITH few AS (SELECT UPPER(name) AS name FROM names) {call.format('few', 'greet')} WHERE name <> 'x'"
    assert len(ids) == 1 and operator_ids(changed) == ids
    assert operator_ids(call.format("names", "other")).isdisjoint(ids)


def test_changelogs_become_columns_and_changelogs_again(t_env):
    counts = "WITH counts AS (SELECT name, COUNT(*) AS times FROM names GROUP BY name)"
    kinds = "op => DESCRIPTOR(kind), op_mapping => MAP['INSERT', 'i', 'UPDATE_BEFORE', 'b', 'UPDATE_AFTER', 'a']"
    logged = f"{counts}, logged AS (SELECT * FROM TO_CHANGELOG(input => TABLE counts, {kinds}))"
    first = ("i", "Bob", 1)
    assert first in rows(t_env.execute_sql(f"{logged} SELECT * FROM logged"))
    back = "op => DESCRIPTOR(kind), op_mapping => MAP['i', 'INSERT', 'b', 'UPDATE_BEFORE', 'a', 'UPDATE_AFTER']"
    result = t_env.execute_sql(f"{logged} SELECT * FROM FROM_CHANGELOG(TABLE logged, {back})")
    assert [(str(row.get_row_kind()), *row) for row in result.collect()][-1] == ("+U", "Bob", 2)
    for call, message in (
        ("TO_CHANGELOG(names)", r"TO_CHANGELOG has no table; write TO_CHANGELOG\(input => TABLE t\)"),
        ("TO_CHANGELOG(TABLE names PARTITION BY name)", "TO_CHANGELOG takes no PARTITION BY"),
        ("FROM_CHANGELOG(TABLE names)", "there is no column 'op'"),
        ("TO_CHANGELOG(TABLE names, inptu => 1)", "inptu is not an argument of this function"),
    ):
        with pytest.raises(SqlError, match=f"(?s)line 1, column.*{message}"):
            t_env.execute_sql(f"SELECT * FROM {call}")


class Latest(ChangelogFunction):
    """The kinds of changes of a partition so far, as one row that is updated."""

    arguments = {"input": table_arg(traits={*SET, Trait.SUPPORT_UPDATES})}
    states = {"seen": list_view("STRING")}
    result_type = "ROW<changes STRING>"

    def __init__(self, mode=None):
        self.mode = mode or ChangelogMode.upsert()

    def get_changelog_mode(self, context):
        return self.mode

    def eval(self, ctx, seen, input):
        before = " ".join(seen)
        seen.add(str(input.get_row_kind()))
        if before and self.mode.before:
            yield Row.of_kind(RowKind.UPDATE_BEFORE, before)
        yield Row.of_kind(RowKind.UPDATE_AFTER if before else RowKind.INSERT, " ".join(seen))


def test_rows_that_change_come_in_and_go_out(t_env):
    counts = "WITH counts AS (SELECT name, COUNT(*) AS times FROM names GROUP BY name)"
    query = f"{counts} SELECT * FROM latest(TABLE counts PARTITION BY name)"
    t_env.create_temporary_function("latest", Latest())
    changes = [(str(row.get_row_kind()), *row) for row in t_env.execute_sql(query).collect()]
    assert sorted(changes) == [("+I", "Alice", "+I"), ("+I", "Bob", "+I"), ("+U", "Bob", "+I +U")]
    assert "select=[name, changes], changelogMode=[I,UA,D])" in t_env.explain_sql(query, ExplainDetail.CHANGELOG_MODE)
    by_times = query.replace("PARTITION BY name", "PARTITION BY times")  # updates move between partitions
    changes = [tuple(row) for row in t_env.execute_sql(by_times).collect()]
    assert (1, "+I +I -U") in changes or (1, "+I -U +I") in changes
    with pytest.raises(SqlError, match="doesn't support consuming update changes.*SUPPORT_UPDATES"):
        rows(t_env.execute_sql(f"{counts} SELECT * FROM greeting_with_memory(TABLE counts PARTITION BY name)"))
    summed = f"SELECT COUNT(DISTINCT changes) FROM ({query.replace(counts, '')})"
    with pytest.raises(SqlError, match="gives updates without the row before.*ChangelogMode.all"):
        rows(t_env.execute_sql(f"{counts} {summed}"))
    t_env.create_temporary_function("latest", Latest(ChangelogMode.all()))
    assert rows(t_env.execute_sql(f"{counts} {summed}"))[-1] == (2,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("greeting_with_memory(TABLE names)", "has no PARTITION BY for 'input'; write input => TABLE t PARTITION BY k"),
        ("greeting(TABLE names PARTITION BY name)", "for 'input', whose rows are worked by themselves"),
        ("greeting_with_memory(TABLE lists PARTITION BY name)", "with a key of type ARRAY<.*>.*; partition by a part"),
        ("greeting(names)", "has the argument 'input', which is a table"),
        ("greeting()", "is called without the argument 'input'"),
        ("greeting(TABLE names, inptu => 1)", r"has no argument 'inptu' \(did you mean input\?\)"),
        ("greeting(TABLE names, uid => '1')", "has the uid '1'; give a string of letters"),
        ("greeting(TABLE names, input => TABLE names)", "is called with two arguments 'input'"),
        ("greeting(TABLE names, on_time => DESCRIPTOR(n))", "a column of type BIGINT; name a TIMESTAMP"),
        ("greeting_with_memory(TABLE names PARTITION BY name ORDER BY n)", "has ORDER BY n ASC; order by a column"),
        ("names, LATERAL TABLE(greeting(name))", "GREETING is a process table function, which takes no rows one"),
        ("pay(TABLE names PARTITION BY name)", "is called without the argument 'payments'"),
    ],
)
def test_a_wrong_call_is_refused_with_its_form(t_env, call, message):
    t_env.execute_sql("CREATE TEMPORARY VIEW lists AS SELECT ARRAY[name] AS name FROM names")
    with pytest.raises(SqlError, match=message):
        t_env.execute_sql(f"SELECT * FROM {call}")


def test_calls_that_are_none_are_refused(t_env):
    names = t_env.from_path("names")
    for process in (names.process, names.partition_by(col("name")).process, t_env.from_call):
        with pytest.raises(TypeError, match="registered name"):
            process(object())
    with pytest.raises(SqlError, match="(?s)has no argument 'x'.*test_process_functions.py"):
        names.process(greeting, lit(1).as_argument("x"))
    batch = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    batch.get_config().set_string("execution.target", "local")
    table = batch.from_elements([("a",)], ["name"])
    assert rows(table.process(greeting).limit(1).execute()) == [("Hello a!",)]
    with pytest.raises(SqlError, match="has state of partitions, which batch mode does not keep"):
        table.partition_by(col("name")).process(GreetingWithMemory)


def with_event(body, traits=SET, states=None, on_timer=None, **more):
    """Declare a function of a table and a string."""
    arguments = {"event": table_arg(traits=traits), **more}
    declared = udptf(body, arguments, states, ROW_OF_NAME)
    if on_timer is not None:
        declared.on_timer(on_timer)
    return declared


MEMORY_STATE = {"memory": value_state("ROW<count BIGINT>")}


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: with_event(lambda ctx, separator, event: (), separator="STRING"), r"Invalid eval\(\) signature"),
        (lambda: with_event(lambda ctx, memory, event: (), states=MEMORY_STATE, on_timer=lambda memory, ctx: ()),
         r"Invalid on_timer\(\) signature"),
        (lambda: with_event(lambda ctx, memory, event: (), None, MEMORY_STATE), "State requires"),
        (lambda: with_event(lambda ctx, event: (), None, on_timer=lambda ctx: ()), "Timers require"),
        (lambda: with_event(lambda ctx, event: (), {*SET, Trait.PASS_COLUMNS_THROUGH}, on_timer=lambda ctx: ()),
         "pass-through"),
        (lambda: with_event(lambda ctx, event: (), {*SET, Trait.ROW_SEMANTIC_TABLE}), "both row and set semantics"),
        (lambda: with_event(lambda ctx, event: (), {*SET, Trait.REQUIRE_UPDATE_BEFORE}), "requires SUPPORT_UPDATES"),
        (lambda: with_event(lambda ctx, event, uid: (), uid="STRING"), "argument 'uid' is one that each call has"),
        (lambda: udptf(lambda ctx, a, b: (), {"a": table_arg(), "b": table_arg()}, result_type="INT"),
         "several table arguments must all have set semantics"),
        (lambda: ProcessTableFunctionState.value("memory", DataTypes.BIGINT()), "state must use a ROW"),
        (lambda: value_state(timedelta), "whose objects do not change"),
        (lambda: value_state(ProcessTableFunctionState), "made with name, data_type; give its parameters default"),
        (lambda: value_state("ROW<n INT>", ttl=5), "the ttl of state .* is a Duration"),
        (lambda: udptf(lambda ctx: (), {}), "the result type of function .* is not known"),
    ],
)  # fmt: skip
def test_a_declaration_that_does_not_go_together_is_refused(declare, message):
    with pytest.raises((ValueError, TypeError, InvalidTypesError), match=message):
        declare()


def test_arguments_are_declared_as_in_pyflink():
    class Tokenize(ProcessTableFunction):
        def eval(self, ctx, event, separator):
            for token in event.text.split(separator):
                yield Row(token)

    event = ProcessTableFunctionArgument.table("event")
    separator = ProcessTableFunctionArgument.scalar("separator", DataTypes.STRING())
    function = udptf(Tokenize(), arguments=[event, separator], result_type=ROW_OF_NAME)
    assert [argument.name for argument in function.declaration.arguments] == ["event", "separator"]
    assert not function.declaration.has_timers
    assert list(function(None, Row(text="hello flink"), " ")) == [Row("hello"), Row("flink")]
