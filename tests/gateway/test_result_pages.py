"""Rows by token, and values as Flink's clients read them."""

from __future__ import annotations

import datetime
import json
import threading
from decimal import Decimal
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common.types import Row, RowKind
from rayflink.gateway.gateway_errors import GatewayError
from rayflink.gateway.logical_types import type_document
from rayflink.gateway.operation import Operation, StatementResult
from rayflink.gateway.result_pages import ResultPages
from rayflink.gateway.result_values import RowForm, RowWriter
from rayflink.table.types import DataTypes

WRITER = RowWriter([DataTypes.INT()], RowForm.JSON, "UTC")


def numbers(page):
    return [json.loads(row)["fields"][0] for row in page.rows]


@given(st.lists(st.integers(0, 9)), st.integers(1, 120), st.lists(st.booleans(), max_size=40))
def test_every_row_comes_once_however_often_an_answer_is_lost(values, most_bytes, losses):
    pages = ResultPages.of(Row(value) for value in values)
    received, token, lost = [], 0, iter(losses)
    while (page := pages.page(token, WRITER, most_bytes, 0)).next_token is not None:
        if next(lost, False):
            assert pages.page(token, WRITER, 10**6, 0) == page
        received, token = received + numbers(page), page.next_token
    assert received == values and pages.is_fetched
    assert pages.page(token, WRITER, most_bytes, 0) == page
    with pytest.raises(GatewayError, match="Expecting token"):
        pages.page(token - 1, WRITER, most_bytes, 0)


def test_another_token_than_the_next_is_refused():
    pages = ResultPages.of([Row(1)])
    with pytest.raises(GatewayError, match="Expecting token to be 0, but found 1"):
        pages.page(1, WRITER, 100, 0)
    pages.page(0, WRITER, 100, 0)
    with pytest.raises(GatewayError, match="Expecting token to be 1 or 0, but found 7"):
        pages.page(7, WRITER, 100, 0)


def test_a_row_that_cannot_be_written_loses_no_row_before_it():
    pages = ResultPages.of([Row(1), Row("\ud800"), Row(3)])
    for _ in range(2):
        with pytest.raises(UnicodeEncodeError):
            pages.page(0, WRITER, 10**6, 0)
    assert numbers(pages.page(0, WRITER, 1, 0)) == [1]


def test_numbers_keep_all_their_digits():
    value = Decimal("1234567890123456789012345678.0123456789")
    row = RowWriter([DataTypes.DECIMAL(38, 10)], RowForm.JSON, "UTC").write(Row(value))
    assert row == b'{"kind":"INSERT","fields":[%s]}' % str(value).encode()


def test_who_puts_rows_waits_for_room_and_ends_when_the_result_is_closed():
    pages, refused = ResultPages(2), threading.Event()

    def put():
        while pages.put(Row(1)):
            pass
        refused.set()

    thread = threading.Thread(target=put)
    thread.start()
    assert numbers(pages.page(0, WRITER, 10**6, 10)) != []
    assert pages.page(1, WRITER, 10**6, 10).next_token == 2
    assert len(pages._rows) <= 2 and not refused.is_set()
    pages.close()
    thread.join(10)
    assert refused.is_set()


def test_a_failure_comes_behind_the_rows_and_again_when_asked_again():
    pages = ResultPages(5)
    pages.put(Row(1))
    pages.complete(ValueError("the job failed"))
    assert numbers(pages.page(0, WRITER, 10**6, 0)) == [1]
    for _ in range(2):
        with pytest.raises(ValueError, match="the job failed"):
            pages.page(1, WRITER, 10**6, 0)


def test_an_interrupt_that_a_function_raises_ends_the_rows():
    def rows():
        yield Row(1)
        raise KeyboardInterrupt

    operation = Operation("SELECT f(a) FROM t", {}, 5)
    operation.begin()
    operation.finish(StatementResult(("a",), (DataTypes.INT(),), rows(), is_query=True))
    _, pages = operation.ready(10)
    assert numbers(pages.page(0, WRITER, 1, 10)) == [1]
    with pytest.raises(KeyboardInterrupt):
        pages.page(1, WRITER, 1, 10)


def test_a_query_that_failed_is_fetched_when_its_failure_is():
    pages = ResultPages(5)
    pages.put(Row(1))
    pages.complete(ValueError("the job failed"))
    pages.page(0, WRITER, 10**6, 0)
    assert not pages.is_fetched
    with pytest.raises(ValueError, match="the job failed"):
        pages.page(1, WRITER, 10**6, 0)
    assert pages.is_fetched, "the session may forget it for another statement"


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_query_that_nobody_wants_any_more_ends_though_it_gives_no_row(is_closed):
    cancelled = threading.Event()

    def rows():
        assert cancelled.wait(10)
        yield from ()

    operation = Operation("SELECT a FROM t", {}, 5)
    operation.begin()
    (operation.close if is_closed else operation.cancel)()
    job = SimpleNamespace(cancel=cancelled.set)
    operation.finish(StatementResult(("a",), (DataTypes.INT(),), rows(), is_query=True, job=job))
    assert cancelled.is_set()


@pytest.mark.parametrize(
    ("data_type", "value", "in_json", "as_text"),
    [
        (DataTypes.DECIMAL(38, 10), Decimal("0E-10"), 0, "0.0000000000"),
        (DataTypes.DECIMAL(38, 0), Decimal(10**37), 1e37, str(10**37)),
        (DataTypes.DOUBLE(), float("-inf"), "-Infinity", "-Infinity"),
        (DataTypes.FLOAT(), 0.10000000149011612, 0.1, "0.1"),
        (DataTypes.BIGINT(), -(2**63), -(2**63), str(-(2**63))),
        (DataTypes.STRING(), 'a "quote", \n and é', 'a "quote", \n and é', 'a "quote", \n and é'),
        (DataTypes.TIME(0), datetime.time(10, 0), "10:00:00", "10:00:00"),
        (DataTypes.INTERVAL(DataTypes.DAY(), DataTypes.SECOND(3)), datetime.timedelta(days=-1), -86_400_000,
         "-1 00:00:00.000"),
        (DataTypes.MULTISET(DataTypes.STRING()), {"a": 2}, {"a": 2}, "{a=2}"),
        (DataTypes.MAP(DataTypes.INT(), DataTypes.BYTES()), {1: b"\x00"}, {"1": "AA=="}, "{1=x'00'}"),
        (DataTypes.ROW([DataTypes.FIELD("q", DataTypes.DATE())]), Row(q=None), {"q": None}, "(NULL)"),
    ],
)  # fmt: skip
def test_a_value_has_the_form_that_flinks_clients_read(data_type, value, in_json, as_text):
    row = Row.of_kind(RowKind.UPDATE_AFTER, value, None)
    for form, wanted in ((RowForm.JSON, in_json), (RowForm.PLAIN_TEXT, as_text)):
        written = json.loads(RowWriter([data_type, data_type], form, "UTC").write(row))
        assert written == {"kind": "UPDATE_AFTER", "fields": [wanted, None]}


def test_a_type_that_flink_lacks_is_one_of_text():
    assert type_document(DataTypes.NULL()) == {"type": "NULL"}
    field = DataTypes.FIELD("q", DataTypes.INT(), "what it is")
    [document] = type_document(DataTypes.ROW([field]))["fields"]
    assert document == {"name": "q", "fieldType": {"type": "INTEGER", "nullable": True}, "description": "what it is"}
