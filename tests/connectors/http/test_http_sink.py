"""The HTTP sink sends each record at least once, whatever the service answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rayflink.common.connector_base.delivery_guarantee import DeliveryGuarantee
from rayflink.common.connector_base.sink import Sink, UnwritableRecord, WriterContext
from rayflink.common.errors import JobFailed
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import RowBatch
from rayflink.common.serialization import SimpleStringSchema
from rayflink.connectors.http import http_client
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors.http import HttpError, HttpSink, HttpSinkSettings, HttpTarget, RefusedRecord
from rayflink.state.clock import ManualClock
from rayflink.testing import CommittedSink, SinkSubject, check_sink

from .service import Service, http_service


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setattr(http_client, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(http_client, "LONGEST_PAUSE_S", 0.01)
    with http_service() as started:
        yield started


def _sent(sink: HttpSink, records: list[str]) -> MetricGroup:
    """Write records through a writer of its own; return its metrics."""
    metrics = MetricGroup()
    writer = sink.create_writer(WriterContext(metrics=metrics, clock=ManualClock(0)))
    try:
        writer.write(RowBatch(records))
        writer.flush(end_of_input=True)
    finally:
        writer.close()
    return metrics


def test_each_record_is_a_request_and_the_order_is_kept_by_one_at_a_time(service: Service) -> None:
    sink = HttpSink(service.url, SimpleStringSchema(), HttpSinkSettings(requests_at_once=1))
    metrics = _sent(sink, [str(number) for number in range(50)])
    assert service.bodies == [str(number).encode() for number in range(50)]
    assert metrics.counter("numRequestsSent").get_count() == 50


def test_several_records_are_one_body(service: Service) -> None:
    _sent(HttpSink(service.url, SimpleStringSchema(), HttpSinkSettings(records_per_request=3)), ["a", "b", "c", "d"])
    assert sorted(service.bodies) == [b"a\nb\nc\n", b"d\n"]


def test_fewer_records_than_a_request_has_are_sent_after_a_pause(service: Service) -> None:
    clock = ManualClock(0)
    settings = HttpSinkSettings(records_per_request=3, linger_ms=50)
    writer = HttpSink(service.url, SimpleStringSchema(), settings).create_writer(WriterContext(clock=clock))
    writer.write(RowBatch(["a", "b"]))
    assert writer.next_time_ms() == 50
    writer.write(RowBatch(["c", "d"]))
    assert writer.next_time_ms() == 50
    writer.on_time(50)
    assert writer.next_time_ms() is None
    writer.flush(end_of_input=False)
    assert sorted(service.bodies) == [b"a\nb\nc\n", b"d\n"]
    writer.close()


@pytest.mark.parametrize("answers", [[503, 429, 500], [0, 0], [-200]])
def test_what_meets_an_outage_is_sent_again(service: Service, answers: list[int]) -> None:
    service.answers = list(answers)
    metrics = _sent(HttpSink(service.url, SimpleStringSchema()), ["a"])
    assert set(service.bodies) == {b"a"}
    assert metrics.counter("numRequestRetries").get_count() == len(answers)


def test_an_outage_without_end_fails_and_names_no_secret(service: Service) -> None:
    service.is_away = True
    url = service.url.replace("http://", "http://me:hidden@") + "?key=hidden"
    with pytest.raises(HttpError, match="did not take a request in 3 tries") as failure:
        _sent(HttpSink(HttpTarget(url, retries=2), SimpleStringSchema()), ["a"])
    assert "hidden" not in f"{failure.value} {failure.value!r} {HttpSink(url, SimpleStringSchema())!r}"


def test_user_and_password_of_the_url_become_a_header(service: Service) -> None:
    target = HttpTarget(service.url.replace("http://", "http://me:pass@"), headers={"X-Kind": "event"})
    _sent(HttpSink(target, SimpleStringSchema()), ["a"])
    (headers,) = service.headers
    assert headers["X-Kind"] == "event"
    assert next(value for key, value in headers.items() if key.lower() == "authorization") == "Basic bWU6cGFzcw=="


def test_a_refusal_fails_or_goes_to_the_dead_letters(service: Service) -> None:
    service.refuses = lambda body: b"bad" in body
    with pytest.raises(HttpError, match="refused 1 records with HTTP 422: 'no' .the first is 'bad'.; correct them"):
        _sent(HttpSink(service.url, SimpleStringSchema()), ["good", "bad"])
    CommittedSink.forget("dead letters")
    sink = HttpSink(service.url, SimpleStringSchema(), dead_letters=CommittedSink("dead letters"))
    env = StreamExecutionEnvironment({"execution.target": "local"})
    env.from_collection(["good", "bad", "better"]).sink_to(sink)
    env.execute()
    assert CommittedSink.records("dead letters") == [RefusedRecord("bad", 422, "'no'")]
    assert {b"good", b"better"}.issubset(service.bodies)


def test_a_record_that_cannot_be_encoded_is_named(service: Service) -> None:
    with pytest.raises(UnwritableRecord, match="17"):
        _sent(HttpSink(service.url, SimpleStringSchema()), ["a", 17])  # type: ignore[list-item]


@pytest.mark.parametrize(
    "arguments", [("ftp://host/x",), ("nothing",), ("http://host", "GET"), ("http://host", "POST", {}, 0)]
)
def test_a_target_that_is_none_is_refused(arguments: Any) -> None:
    with pytest.raises(HttpError, match=";"):
        HttpTarget(*arguments)


def test_a_service_that_is_not_there_fails_the_job_with_its_address() -> None:
    env = StreamExecutionEnvironment({"execution.target": "local"})
    env.from_collection(["a"]).sink_to(HttpSink(HttpTarget("http://127.0.0.1:9/in", retries=0), SimpleStringSchema()))
    with pytest.raises(JobFailed, match="http://127.0.0.1:9/in did not take a request in 1 tries"):
        env.execute()


@pytest.mark.slow
def test_the_sink_keeps_its_promise(service: Service) -> None:
    class Http(SinkSubject):
        guarantee = DeliveryGuarantee.AT_LEAST_ONCE

        def __init__(self) -> None:
            service.bodies.clear()

        def create_sink(self) -> Sink:
            return HttpSink(service.url, SimpleStringSchema())

        def record(self, number: int) -> str:
            return str(number)

        def read(self) -> Iterable[int]:
            return list(map(int, service.bodies))

        @contextmanager
        def outage(self) -> Iterator[None]:  # type: ignore[override]
            service.is_away = True
            try:
                yield
            finally:
                service.is_away = False

    check_sink(Http, seeds=range(3), records=90)
