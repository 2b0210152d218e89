"""Conditions as expressions on columns: by kernels for a batch of columns, and the same for rows."""

from __future__ import annotations

import inspect
import operator
from collections import namedtuple
from dataclasses import make_dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from rayflink.cep import CEP, MalformedPatternException, Pattern
from rayflink.cep.nfa.compiler import compile_pattern
from rayflink.cep.nfa.masks import EventConditions
from rayflink.cep.nfa.matcher import UNKNOWN
from rayflink.cep.runtime.cep_operator import CepOperator, MatchOptions
from rayflink.common import Types
from rayflink.common.errors import InvalidFunction
from rayflink.common.records.batches import RowBatch
from rayflink.common.types import Row
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.operators.base import UserCodeError
from rayflink.table import StreamTableEnvironment
from rayflink.table.expressions import call, col, current_timestamp, lit
from rayflink.table.udf import udf
from rayflink.testing import OperatorHarness, rec, verify, wm
from rayflink.testing.elements import columns

SMALL_THEN_LARGE = Pattern.begin("small").where(col("price") < 5).followed_by("large").where(col("price") > 800)
Payment = namedtuple("Payment", "account price")
Bill = make_dataclass("Bill", ["account", "price"])


def prices(match, _):
    return ["-".join(str(_price(event)) for events in match.values() for event in events)]


def _price(event):
    return event["price"] if isinstance(event, dict | Row) else event.price


def account(event):
    return event["account"] if isinstance(event, dict | Row) else event.account


def matching(pattern=SMALL_THEN_LARGE, **options):
    return lambda: CepOperator(account, pattern, prices, MatchOptions(**options))


def masks(pattern, events):
    return EventConditions(compile_pattern(pattern).units).masks(events)


@pytest.mark.parametrize(
    "make",
    [
        lambda account, price: {"account": account, "price": price},
        lambda account, price: Row(account=account, price=price), Payment, Bill,
    ],
    ids=["dict", "Row", "named tuple", "dataclass"],
)  # fmt: skip
def test_rows_with_names_are_events_with_columns(make):
    assert masks(SMALL_THEN_LARGE, [make("a", 3), make("a", 900), make("a", 50)]) == [0b10, 0b01, 0b00]


def test_fields_of_tuples_are_f0_and_so_on():
    assert masks(Pattern.begin("b").where(col("f1") == "b"), [(1, "b"), (1, "c")]) == [1, 0]


def test_null_meets_no_comparison():
    pattern = Pattern.begin("small").where(col("price") < 5).or_(col("price").is_null).where(lit(True))
    assert masks(pattern, [{"price": None}, {"price": 7}, {"price": 4.5}]) == [1, 0, 1]


def test_what_a_value_is_depends_on_no_other_event_of_its_batch():
    half = Pattern.begin("half").where(col("n") / 2 == 0.5)
    events = [{"n": n} for n in (1, 1.0, True, Decimal("1"), None)]
    with pytest.raises(MalformedPatternException, match="does not take .BOOLEAN"):
        masks(half, events)
    del events[2]
    assert masks(half, events) == [mask for event in events for mask in masks(half, [event])] == [0, 1, 1, 0]


def test_a_row_without_an_answer_fails_only_where_it_is_needed():
    pattern = Pattern.begin("a").next("b").where(100 / col("n") > 20)
    assert masks(pattern, [{"n": 2}, {"n": 0}, {"n": 9}, {"n": 2**70}]) == [1, UNKNOWN, 0, UNKNOWN]
    guarded = Pattern.begin("b").where(col("n") != 0).where(100 / col("n") > 20)
    with OperatorHarness(lambda: CepOperator(len, guarded, lambda match, _: [match["b"]], MatchOptions())) as harness:
        harness.process({"n": 0}, timestamp=1)
        harness.process({"n": 2}, timestamp=2)
        harness.advance_watermark(5)
        assert harness.output == [rec([{"n": 2}], 2), wm(5)]


def batch(*given, column="price", kind=None):
    return pa.record_batch({"account": ["a"] * len(given), column: pa.array(given, kind)})


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"comparator": lambda one, other: one["price"] - other["price"]}])
def test_matches_of_columns_are_found_under_every_hardship(options):
    verify(
        matching(**options),
        elements=[
            columns(batch(3, 50, None, 900, kind=pa.int32()), np.array([1, 2, 3, 4])), wm(5),
            columns(batch(4, 1000, kind=pa.int16()), np.array([9, 8])), wm(9),
            rec({"account": "a", "price": 801.5}, 12), wm(20),
        ],
        then=[rec("3-900", 4), wm(5), wm(9), rec("4-801.5", 12), wm(20)],
        key=account,
    )  # fmt: skip


@pytest.mark.parametrize(
    "pattern",
    [
        SMALL_THEN_LARGE,
        Pattern.begin("small").where(col("price") < 5).where(lambda event: event.account == "a")
        .followed_by("large").where(col("price") > 800).where(lambda event, ctx: True),
    ],
    ids=["columns alone", "with callables"],
)  # fmt: skip
@pytest.mark.parametrize("is_processing_time", [False, True])
def test_rows_that_change_no_match_never_become_python_values(pattern, is_processing_time):
    date, no_date = (pa.scalar(moment, pa.timestamp("us")) for moment in (0, -(10**18)))
    days = pa.chunked_array([pa.repeat(date, 1), pa.repeat(no_date, 500), pa.repeat(date, 1)]).combine_chunks()
    data = batch(3, *[50] * 500, 900).append_column("day", days)  # Python has no such date: no Row can have it
    with OperatorHarness(matching(pattern, is_processing_time=is_processing_time)) as harness:
        harness.process_batch(columns(data, np.arange(502)).batch)
        harness.advance_watermark(1000)
        assert harness.output == [rec("3-900", None if is_processing_time else 501), wm(1000)]


EXTREMES = (-(2**63), -3, -1, 0, 1, 2**31, 2**62, 2**63 - 1)


@pytest.mark.parametrize(
    "operation, is_error",
    [
        (operator.add, lambda a, b: False),
        (operator.sub, lambda a, b: False),
        (operator.mul, lambda a, b: False),
        (operator.truediv, lambda a, b: b == 0),
        (operator.mod, lambda a, b: b == 0),
        (lambda a, b: -a, lambda a, b: False),
    ],
    ids=["+", "-", "*", "/", "%", "sign"],
)
def test_whole_numbers_are_those_of_python_or_an_error_of_the_row(operation, is_error):
    pattern = Pattern.begin("positive").where(operation(col("a"), col("b")) > 0)
    events = [{"a": a, "b": b} for a in EXTREMES for b in EXTREMES]
    expected = []
    for event in events:
        a, b = event["a"], event["b"]
        result = None if is_error(a, b) else whole(operation, a, b)
        expected.append(UNKNOWN if result is None or not -(2**63) <= result < 2**63 else int(result > 0))
    assert masks(pattern, events) == expected
    conditions = EventConditions(compile_pattern(pattern).units)
    assert conditions.column_masks(pa.RecordBatch.from_pylist(events)).tolist() == expected
    assert UNKNOWN in expected


def whole(operation, a, b):
    """The result of SQL in numbers of Python: a quotient is cut towards zero, a remainder has the dividend's sign."""
    if operation is operator.truediv:
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    if operation is operator.mod:
        return abs(a) % abs(b) * (-1 if a < 0 else 1)
    return operation(a, b)


@pytest.mark.parametrize(
    "condition, price, problem",
    [
        (col("price") * 4 > 0, 2**62, r"the result of \* is beyond the 64 bits of BIGINT; cast an operand to DECIMAL"),
        (1 / col("price") > 0, 0, "division by zero; divide by NULLIF"),
        (col("price") > 0, 2**64, f"{2**64} is beyond the 64 bits of BIGINT; pass a callable"),
    ],
    ids=["overflow", "zero", "too large"],
)
def test_a_row_without_a_value_fails_with_the_line_of_where_and_the_row(condition, price, problem):
    pattern = Pattern.begin("a")
    pattern = pattern.where(condition)
    line = f"{__file__}:{inspect.currentframe().f_lineno - 1}"
    with OperatorHarness(matching(pattern)) as harness:
        harness.process({"account": "x", "price": price}, timestamp=1)
        with pytest.raises(UserCodeError, match=problem) as failure:
            harness.advance_watermark(5)
    assert failure.value.call_site.startswith(line)
    assert str(price) in failure.value.record


def test_whole_numbers_of_small_columns_do_not_wrap_around():
    pattern = Pattern.begin("positive").where(col("a") * col("a") > 0)
    small = pa.record_batch({"a": pa.array([2**30, 3], pa.int32())})
    conditions = EventConditions(compile_pattern(pattern).units)
    assert conditions.column_masks(small).tolist() == [1, 1]


def test_late_rows_are_late_whatever_they_meet():
    with OperatorHarness(matching(late_tag="late")) as harness:
        harness.advance_watermark(5)
        harness.process_batch(columns(batch(3, 50, 50), np.array([9, 5, 8])).batch)
        assert [late.value["price"] for late in harness.side_output("late")] == [50]


def test_a_column_that_a_declared_stream_lacks_is_an_error_of_its_line():
    env = StreamExecutionEnvironment.get_execution_environment({"execution.target": "local"})
    names, types = ["account", "price"], [Types.STRING(), Types.INT()]
    declared = env.from_collection([Row(account="a", price=3)], Types.ROW_NAMED(names, types))
    wanted = r"no column 'prize' \(did you mean 'price'\?\); their columns are account, price \(at .*test_column_cond"
    misspelt = Pattern.begin("a").where(col("prize") > 3)
    with pytest.raises(MalformedPatternException, match=wanted):
        CEP.pattern(declared, misspelt)
    t_env = StreamTableEnvironment.create(env)
    table = t_env.to_data_stream(t_env.from_elements([("a", 3)], names))
    with pytest.raises(MalformedPatternException, match=wanted):
        CEP.pattern(table, misspelt)
    with pytest.raises(MalformedPatternException, match=r"does not take .STRING, INT.*test_column_conditions.py"):
        CEP.pattern(table, Pattern.begin("a").where(col("account") > 3))
    CEP.pattern(declared, SMALL_THEN_LARGE)


def test_a_column_that_events_lack_is_an_error_of_its_line_at_the_first_of_them():
    wanted = r"no column 'prize' \(did you mean 'price'\?\); their columns are account, price \(at .*test_column_cond"
    misspelt = Pattern.begin("a").where(col("prize") > 3)
    for events in (RowBatch([Row(account="a", price=3)], [1]), columns(batch(3), np.array([1])).batch):
        with OperatorHarness(matching(misspelt)) as harness, pytest.raises(UserCodeError, match=wanted):
            harness.process_batch(events)
    with OperatorHarness(lambda: CepOperator(len, misspelt, prices, MatchOptions())) as harness:
        with pytest.raises(UserCodeError, match="'prize'; events with columns are Arrow batches, dicts"):
            harness.process("text", timestamp=1)


@pytest.mark.parametrize(
    "expression, problem",
    [
        (lambda: col("price") + 1, "neither true nor false"),
        (lambda: lit(3), "neither true nor false"),
        (lambda: col("price").sum > 3, "SUM is an aggregate"),
        (lambda: col("price") > current_timestamp(), "CURRENT_TIMESTAMP depends on more than the columns"),
        (lambda: call("UPER", col("account")) == "A", r"no function UPER \(did you mean UPPER\?\)"),
        (lambda: udf(lambda n: n > 3, result_type="BOOLEAN")(col("price")), "calls the function .* of the program"),
    ],
)
def test_an_expression_that_is_no_condition_is_refused_at_its_line(expression, problem):
    with pytest.raises(InvalidFunction, match=problem + r".*; .*\(at .*test_column_conditions.py"):
        Pattern.begin("a").where(expression())


def test_expressions_are_explained_as_they_are_written():
    assert "take large if (price > 800) -> end" in SMALL_THEN_LARGE.explain()
