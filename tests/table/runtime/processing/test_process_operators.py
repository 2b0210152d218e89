"""Process table functions under every hardship, and what their state and timers are."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest

from rayflink.common.time import Duration, Instant
from rayflink.common.types import Row
from rayflink.operators.base import UserCodeError
from rayflink.state.errors import SnapshotMismatch
from rayflink.table.udf import (
    ProcessTableFunctionArgumentTrait,
    list_view,
    map_view,
    table_arg,
    udptf,
    value_state,
)
from rayflink.testing import OperatorHarness, at, in2, rec, verify, wm

from .process_cases import calling, moment, rows, values_of

SET = {ProcessTableFunctionArgumentTrait.SET_SEMANTIC_TABLE}
ROW_OF_N = "ROW<n BIGINT>"
BY_WORD = "r => TABLE t PARTITION BY word"
IN_TIME = f"{BY_WORD}, on_time => DESCRIPTOR(ts)"


@dataclass
class Basket:
    """Numbers by their size."""

    content: dict = field(default_factory=dict)
    total: int = 0


@udptf(
    arguments={"r": table_arg(traits=SET), "most": "BIGINT"},
    states={"basket": value_state(Basket), "last": value_state("ROW<n BIGINT>"), "seen": list_view("BIGINT"),
            "times": map_view("BIGINT", "BIGINT")},
    result_type="ROW<what STRING, total BIGINT, seen STRING>",
)  # fmt: skip
def shop(ctx, basket, last, seen, times, r, most=20):
    """Sums up to a bound, then starts again; reminds of what is there, and forgets it later."""
    basket.content[r.n] = basket.content.get(r.n, 0) + 1
    basket.total += r.n
    seen.add(r.n)
    times[r.n] = (times[r.n] or 0) + 1
    time = ctx.time_context(datetime)
    if basket.total > most:
        yield "full", basket.total, f"{sorted(basket.content.items())} {last.n} {sorted(times.items())}"
        ctx.clear_all()
        return
    last["n"] = r.n
    time.register_on_time("remind", time.time() + timedelta(seconds=5))
    time.register_on_time(time.time() + timedelta(seconds=8))
    if r.n == 7:
        time.clear_timer("remind")
    yield "add", basket.total, f"{list(seen)} {time.time().second}"


@shop.on_timer
def shop_timer(ctx, basket, last, seen, times):
    """Works the timers of `shop`."""
    watermark = ctx.time_context().current_watermark()
    yield ctx.current_timer() or "plain", basket.total, f"{list(seen)} {last.n} {watermark}"
    if ctx.current_timer() is None:
        ctx.clear_state("seen")


def out(word, what, total, seen, ms):
    return rec(Row(word=word, what=what, total=total, seen=seen, rowtime=moment(ms)))


@pytest.mark.slow
def test_states_and_timers_go_on_under_every_hardship():
    verify(
        calling(shop, IN_TIME),
        elements=[
            rows(("a", 3, 1_000), ("b", 7, 2_000), ("a", 3, 3_000), (None, 4, 1_000)),
            wm(4_000),
            wm(7_000),
            rows(("b", 9, 8_000), ("a", 2, 500)),
            wm(8_500),
            wm(9_000),
            rows(("a", 30, 9_000), ("b", 1, 9_000)),
            wm(60_000),
        ],
        then=[
            out("a", "add", 3, "[3] 1", 1_000),
            out("b", "add", 7, "[7] 2", 2_000),
            out("a", "add", 6, "[3, 3] 3", 3_000),
            out(None, "add", 4, "[4] 1", 1_000),
            wm(4_000),
            out(None, "remind", 4, "[4] 4 7000", 6_000),
            wm(7_000),
            out("b", "add", 16, "[7, 9] 8", 8_000),
            out("a", "add", 8, "[3, 3, 2] 0", 500),
            out("a", "remind", 8, "[3, 3, 2] 2 8500", 5_500),
            out("a", "plain", 8, "[3, 3, 2] 2 8500", 8_500),
            wm(8_500),
            out("a", "plain", 8, "[] 2 9000", 9_000),
            out(None, "plain", 4, "[4] 4 9000", 9_000),
            wm(9_000),
            out("a", "full", 38, "[(2, 1), (3, 2), (30, 1)] 2 [(2, 1), (3, 2), (30, 1)]", 9_000),
            out("b", "add", 17, "[7, 9, 1] 9", 9_000),
            out("b", "plain", 17, "[7, 9, 1] 1 60000", 10_000),
            out("b", "remind", 17, "[] 1 60000", 14_000),
            out("b", "plain", 17, "[] 1 60000", 16_000),
            out("b", "plain", 17, "[] 1 60000", 17_000),
            wm(60_000),
        ],
    )


@udptf(
    arguments={"orders": table_arg(traits=SET), "payments": table_arg(traits=SET)},
    states={"order": value_state(ROW_OF_N)}, result_type="ROW<what STRING, n BIGINT>",
)  # fmt: skip
def pay(ctx, order, orders, payments):
    """Pairs an order with a payment within five seconds."""
    if orders is not None:
        order["n"] = orders.n
        ctx.time_context().register_on_time("late", ctx.time_context().time() + 5_000)
    elif order.n is not None:
        yield "paid", order.n + payments.n
        ctx.clear_all()


@pay.on_timer
def unpaid(ctx, order):
    """Works the timer of `pay`."""
    yield "unpaid", order.n


@pytest.mark.slow
def test_two_tables_have_the_state_of_their_key_under_every_hardship():
    def pair(word, what, n, ms):
        return rec(Row(word=word, word0=word, what=what, n=n, rowtime=moment(ms)))

    verify(
        calling(pay, "TABLE t PARTITION BY word, TABLE t PARTITION BY word, on_time => DESCRIPTOR(ts)"),
        elements=[
            rows(("a", 1, 1_000), ("b", 2, 1_000)),
            in2(rows(("a", 10, 2_000), ("c", 5, 2_000))),
            wm(5_000),
            in2(wm(5_000)),
            rows(("c", 3, 6_000)),
            wm(30_000),
            in2(wm(30_000)),
        ],
        then=[
            pair("a", "paid", 11, 2_000),
            wm(5_000),
            pair("b", "unpaid", 2, 6_000),
            pair("c", "unpaid", 3, 11_000),
            wm(30_000),
        ],
        key=(lambda row: row["word"], lambda row: row["word"]),
    )


def test_rows_by_themselves_are_beside_their_columns():
    passing = {ProcessTableFunctionArgumentTrait.PASS_COLUMNS_THROUGH}

    @udptf(arguments={"r": table_arg(traits=passing), "times": "INT"}, result_type="ROW<n BIGINT>")
    def repeat(ctx, r, times):
        return [r.n * number for number in range(times)]

    verify(
        calling(repeat, "TABLE t, 2"),
        elements=[rows(("a", 3, 0), (None, 1, 5)), wm(5)],
        then=[
            rec(Row(word=word, n=n, ts=moment(ms), n0=n * times))
            for word, n, ms in (("a", 3, 0), (None, 1, 5)) for times in range(2)
        ] + [wm(5)],
    )  # fmt: skip


def test_the_watermark_at_the_end_of_input_is_a_datetime_too():
    @udptf(arguments={"r": table_arg(traits=SET)}, result_type="ROW<until STRING>")
    def wait(ctx, r):
        ctx.time_context().register_on_time(r.n)

    @wait.on_timer
    def end(ctx):
        yield f"{ctx.time_context(datetime).current_watermark():%Y}"
        yield str(ctx.time_context(Instant).current_watermark() > Instant.of_epoch_milli(0))

    with OperatorHarness(calling(wait, IN_TIME)) as harness:
        harness.give(rows(("a", 5_000, 0)))
        harness.end_input()
        assert [values_of(element)[1] for element in harness.take()[:2]] == ["9999", "True"]


def test_state_that_only_is_read_expires():
    @udptf(
        arguments={"r": table_arg(traits=SET)},
        states={"first": value_state(ROW_OF_N, ttl=Duration.of_seconds(10)), "seen": value_state(ROW_OF_N)},
        result_type="BIGINT",
    )  # fmt: skip
    def since_first(ctx, first, seen, r):
        seen["n"] = (seen.n or 0) + 1
        first["n"] = r.n if first.n is None else first.n
        yield first.n

    with OperatorHarness(calling(since_first, BY_WORD)) as harness:
        for second, n in ((1, 5), (6, 6), (12, 7)):
            harness.give(at(second * 1000))
            harness.give(rows(("a", n, 0)))
        assert [values_of(one)[1] for one in harness.take()] == [5, 5, 7]


def test_a_state_that_gets_a_field_keeps_the_others():
    def counting(state, result):
        @udptf(arguments={"r": table_arg(traits=SET)}, states={"count": value_state(state)}, result_type=ROW_OF_N)
        def count(ctx, count, r):
            count["n"] = (count.n or 0) + 1
            yield result(count)

        return calling(count, BY_WORD)

    with OperatorHarness(counting(ROW_OF_N, lambda count: count.n)) as harness:
        harness.give(rows(("a", 1, 0), ("a", 1, 0)))
        snapshot = harness.snapshot()
    wider = counting("ROW<more STRING, n BIGINT>", lambda count: count.n * 10 + len(count.more or ""))
    with OperatorHarness(wider, restore=[snapshot]) as harness:
        harness.give(rows(("a", 1, 0)))
        assert [values_of(one) for one in harness.take()] == [("a", 30)]


def set_n(value):
    def write(state):
        state["n"] = value

    return write


@pytest.mark.parametrize(
    ("declared", "write", "message"),
    [
        (value_state(ROW_OF_N), set_n("x"), r"state 's' of function F\.n: found str 'x', wanted BIGINT"),
        (value_state(ROW_OF_N), set_n(True), r"state 's' of function F\.n: found bool True, wanted BIGINT"),
        (value_state(ROW_OF_N, ttl=Duration.of_days(1)), set_n(1.5), r"F\.n: found float 1\.5, wanted BIGINT"),
        (value_state("ROW<n ARRAY<DATE>>"), set_n(["x"]), r"F\.n\[\.\.\.\]: found str 'x', wanted DATE"),
        (value_state("ROW<n ROW<m INT>>"), set_n(Row("x")), r"F\.n\.m: found str 'x', wanted INT"),
        (value_state("ROW<n MAP<STRING, INT>>"), set_n({1: 1}), r"F\.n\[\.\.\.\]: found int 1, wanted STRING"),
        (list_view("STRING"), lambda seen: seen.add(3), "state 's' of function F: found int 3, wanted STRING"),
        (map_view("STRING", "INT"), lambda seen: seen.put(3, 3), "key of state 's' of function F: found int 3"),
        (map_view("STRING", "INT"), lambda seen: seen.put("a", "x"), "state 's' of function F: found str 'x'"),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_not_written_to_state(declared, write, message):
    def body(ctx, s, r):
        write(s)
        yield 1

    function = udptf(body, arguments={"r": table_arg(traits=SET)}, states={"s": declared}, result_type=ROW_OF_N)
    with OperatorHarness(calling(function, BY_WORD)) as harness:
        with pytest.raises(UserCodeError, match=f"(?s){message}.*write a value of the declared type"):
            harness.give(rows(("a", 3, 0)))


@dataclass
class Total:
    """A number by its name."""

    n: int = 0
    more: str | None = None


@dataclass
class Name:
    """Has no field of `Total`."""

    first: str = ""


def working_on(declared, work):
    def body(ctx, s, r):
        work(s)
        yield 1

    states = {"s": declared}
    return calling(udptf(body, arguments={"r": table_arg(traits=SET)}, states=states, result_type=ROW_OF_N), BY_WORD)


def snapshot_of(declared, work):
    with OperatorHarness(working_on(declared, work)) as harness:
        harness.give(rows(("a", 1, 0)))
        return harness.snapshot()


def set_total(state):
    state.n = 3


def add(value):
    return lambda seen: seen.add(value)


@pytest.mark.parametrize(
    ("before", "write", "now", "reason"),
    [
        (value_state(ROW_OF_N), set_n(3), value_state("ROW<n STRING>"), "field 'n': its type was BIGINT and is STRING"),
        (value_state(ROW_OF_N), set_n(3), value_state("ROW<n INT>"), "field 'n': its type was BIGINT and is INT"),
        (value_state(ROW_OF_N), set_n(3), value_state(Name), "its fields were n and are first, none of which"),
        (value_state(Total), set_total, value_state(Name), "its fields were n, more and are first"),
        (value_state(Total), set_total, value_state("ROW<n STRING>"), "field 'n': its type was BIGINT and is STRING"),
        (list_view("STRING"), add("a"), list_view("INT"), "its type was STRING and is INT"),
        (map_view("INT", "INT"), lambda seen: seen.put(1, 1), map_view("INT", "DATE"), "its type was INT and is DATE"),
    ],
)  # fmt: skip
def test_state_of_another_type_is_not_restored(before, write, now, reason):
    snapshot = snapshot_of(before, write)
    with pytest.raises(SnapshotMismatch, match=f"(?s)cannot restore state 's'.*{reason}.*rename the state"):
        OperatorHarness(working_on(now, write), restore=[snapshot]).give(rows(("a", 1, 0)))


LIVING = {"ttl": Duration.of_days(1)}


@pytest.mark.parametrize(
    ("before", "write", "now", "content"),
    [
        (value_state(ROW_OF_N), set_n(3), value_state("ROW<n DOUBLE, more STRING>"), 3),
        (value_state(ROW_OF_N, **LIVING), set_n(3), value_state("ROW<more INT, n BIGINT>", **LIVING), 3),
        (value_state("ROW<n DECIMAL(9, 2), m INT>"), set_n(3), value_state("ROW<n DECIMAL(12, 2)>"), 3),
        (value_state(ROW_OF_N), set_n(3), value_state(Total), 3),
        (value_state(Total), set_total, value_state("ROW<n BIGINT NOT NULL>"), 3),
        (list_view("ROW<n INT>"), add(Row(n=1)), list_view("ROW<n BIGINT, m INT>"), [Row(n=1, m=None)]),
        (list_view("VARCHAR(3)"), add("a"), list_view("STRING"), ["a"]),
    ],
)  # fmt: skip
def test_state_of_a_wider_type_is_restored(before, write, now, content):
    contents = []

    def read(state):
        contents.append(list(state) if isinstance(content, list) else state.n)

    with OperatorHarness(working_on(now, read), restore=[snapshot_of(before, write)]) as harness:
        harness.give(rows(("a", 1, 0)))
    assert contents == [content]


def test_state_whose_snapshot_names_no_type_is_restored():
    old = snapshot_of(value_state(ROW_OF_N), set_n(3))
    for index, (snapshot, *others) in old.items():
        untyped = tuple(replace(state, schema="", value_type="") for state in snapshot.states)
        old[index] = (replace(snapshot, states=untyped), *others)
    contents = []

    def read(state):
        contents.append(state.n)
        state["n"] = "x"

    with OperatorHarness(working_on(value_state("ROW<n STRING>"), read), restore=[old]) as harness:
        harness.give(rows(("a", 1, 0)))
        harness.give(rows(("a", 1, 0)))
    assert contents == [3, "x"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda ctx, r: 1 / 0, r"function F failed for the row Row\(word='a'.*ZeroDivisionError: division by zero"),
        (lambda ctx, r: [(1, 2)], "function F returned .1, 2. of type tuple; return BIGINT"),
        (lambda ctx, r: ["x"], "function F returned 'x' of type str; return BIGINT"),
        (lambda ctx, r: ctx.time_context().register_on_time(5), "the call has no timers; timers need a table argument"),
        (lambda ctx, r: ctx.clear_state("x"), "there is no state 'x'; declared are none"),
        (lambda ctx, r: ctx.table_semantics_for("q"), "there is no table argument 'q'.*; declared are r"),
    ],
)  # fmt: skip
def test_a_function_that_fails_is_named_with_the_row(body, message):
    function = udptf(body, arguments={"r": table_arg(traits=SET)}, result_type="ROW<n BIGINT>")
    with OperatorHarness(calling(function, BY_WORD)) as harness:
        with pytest.raises(UserCodeError, match=f"(?s){message}"):
            harness.give(rows(("a", 3, 0)))
