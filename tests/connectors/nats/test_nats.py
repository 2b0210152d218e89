"""NATS JetStream as a source and a sink, on a real server."""

from __future__ import annotations

import doctest
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from nats.js.api import StreamSource

from rayflink.common import OutputTag, SimpleStringSchema, WatermarkStrategy
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.connectors.message_logs.fetch_queue import FetchQueue
from rayflink.connectors.nats.nats_errors import MissingStreamMessages
from rayflink.connectors.nats.nats_fetcher import NatsFetcher, NatsRun
from rayflink.connectors.nats.nats_positions import NatsSplit, StreamFacts
from rayflink.connectors.nats.nats_server import NatsServer
from rayflink.datastream import ProcessFunction, StreamExecutionEnvironment
from rayflink.datastream.connectors.base import DeliveryGuarantee, MalformedRecords, Sink, Source
from rayflink.datastream.connectors.nats import (
    MissingMessages,
    NatsSink,
    NatsSinkBuilder,
    NatsSource,
    NatsSourceBuilder,
    NatsStreamPosition,
)
from rayflink.testing import SinkSubject, SourceSubject, check_sink, check_source
from tests.connectors.nats.nats_server_process import NatsProcess

pytestmark = pytest.mark.slow
PAGE = Path(__file__).parents[3] / "docs" / "nats.md"
NO_TIME = WatermarkStrategy.no_watermarks()


def environment(**options: Any) -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment({"execution.target": "local", "restart-strategy.type": "none", **options})


def source(server: NatsProcess, stream: str) -> NatsSourceBuilder:
    builder = NatsSource.builder().set_servers(server.url).set_stream(stream)
    return builder.set_deserialization_schema(SimpleStringSchema()).set_bounded(NatsStreamPosition.latest())


def sink(server: NatsProcess, subject: Any) -> NatsSinkBuilder:
    return NatsSink.builder().set_servers(server.url).set_subject(subject)


def records_of(built: NatsSource, **options: Any) -> list[Any]:
    with environment(**options).from_source(built, NO_TIME, "nats").execute_and_collect() as results:
        return list(results)


def write(records: Sequence[Any], built: NatsSink) -> None:
    env = environment()
    env.from_collection(records).sink_to(built)
    env.execute()


def test_records_are_published_and_read_with_headers(nats_server: NatsProcess) -> None:
    stream = nats_server.new_stream()
    builder = sink(nats_server, lambda record: f"{stream}.{int(record) % 2}").set_expected_stream(stream)
    write([str(number) for number in range(5_000)], builder.set_headers(lambda record: {"n": record}).build())
    built = NatsSource.builder().set_servers(nats_server.url).set_stream(stream)
    found = records_of(built.set_bounded(NatsStreamPosition.latest()).build())
    assert [(record.subject, record.data, record.headers["n"], record.sequence) for record in found] == [
        (f"{stream}.{number % 2}", b"%d" % number, str(number), number + 1) for number in range(5_000)
    ]
    with pytest.raises(Exception, match="expected stream does not match"):
        write(["x"], sink(nats_server, f"{stream}.a").set_expected_stream("other").build())


def test_ids_let_the_stream_drop_what_it_has(nats_server: NatsProcess) -> None:
    stream = nats_server.new_stream()
    built = sink(nats_server, f"{stream}.a").set_message_id(lambda record: record).build()
    write(["a", "b"], built)
    write(["b", "c"], built)
    assert nats_server.values(stream) == [b"a", b"b", b"c"]


def test_subjects_are_splits_with_timestamps_of_the_stream(nats_server: NatsProcess) -> None:
    stream = nats_server.new_stream()
    for number in range(3):
        nats_server.publish(range(10), f"{stream}.{number}")
    built = source(nats_server, stream).set_subjects(f"{stream}.0", f"{stream}.1", f"{stream}.none").build()
    env = environment(**{"parallelism.default": 2})

    class Stamps(ProcessFunction):
        def process_element(self, value, ctx):
            yield value, ctx.timestamp()

    before_ms = int(time.time() * 1000) - 60_000
    stamped = env.from_source(built, WatermarkStrategy.for_monotonous_timestamps(), "nats").process(Stamps())
    with stamped.execute_and_collect() as results:
        found = list(results)
    assert sorted(value for value, _ in found) == sorted(str(number) for number in [*range(10)] * 2)
    assert all(before_ms < stamp <= time.time() * 1000 for _, stamp in found)


def test_reading_starts_and_ends_at_positions(nats_server: NatsProcess) -> None:
    stream = nats_server.new_stream()
    nats_server.publish(range(5), f"{stream}.a")
    split_ms = records_of(NatsSource.builder().set_servers(nats_server.url).set_stream(stream)
                          .set_bounded(NatsStreamPosition.latest()).build())[-1].timestamp_ms + 1  # fmt: skip
    while time.time() * 1000 < split_ms + 1:
        pass
    nats_server.publish(range(5, 8), f"{stream}.b")

    def read(starting: NatsStreamPosition, stopping: NatsStreamPosition, *subjects: str) -> list[int]:
        builder = source(nats_server, stream).set_starting_position(starting).set_bounded(stopping)
        return [int(value) for value in records_of((builder.set_subjects(*subjects) if subjects else builder).build())]

    at = NatsStreamPosition
    assert read(at.from_sequence(3), at.from_sequence(6)) == [2, 3, 4, 5]
    assert read(at.from_timestamp(split_ms), at.latest()) == [5, 6, 7]
    assert read(at.earliest(), at.from_timestamp(split_ms)) == [0, 1, 2, 3, 4]
    assert read(at.last(), at.latest()) == [7]
    assert read(at.last(), at.latest(), f"{stream}.a") == [4]
    assert read(at.latest(), at.latest()) == [] == read(at.from_timestamp(2_000_000_000_000), at.latest())


def test_malformed_messages_fail_are_skipped_or_go_aside(nats_server: NatsProcess) -> None:
    stream = nats_server.new_stream()
    nats_server.publish(["a", b"\xff", "b"], f"{stream}.a")
    with pytest.raises(Exception, match=rf"stream '{stream}', sequence 2: b'\\xff' cannot be decoded"):
        records_of(source(nats_server, stream).build())
    assert records_of(source(nats_server, stream).set_malformed_records(MalformedRecords.skip()).build()) == ["a", "b"]
    tag, env = OutputTag("bad"), environment()
    built = source(nats_server, stream).set_malformed_records(MalformedRecords.side_output(tag)).build()
    main = env.from_source(built, NO_TIME, "nats")
    with main.get_side_output(tag).map(lambda bad: bad.message).execute_and_collect() as results:
        assert list(results) == [b"\xff"]


def first_run(server: NatsProcess, split: NatsSplit, policy: MissingMessages, metrics: MetricGroup) -> NatsRun:
    queue: FetchQueue[NatsRun] = FetchQueue()
    fetcher = NatsFetcher(NatsServer((server.url,)), queue, policy, metrics)
    queue.add(split.split_id)
    fetcher.add_split(split)
    deadline = time.monotonic() + 20
    try:
        while time.monotonic() < deadline:
            run = queue.take(())
            if run is not None:
                return run
            time.sleep(0.001)
    finally:
        fetcher.close()
    raise TimeoutError("the fetcher brings nothing")


def facts_of(server: NatsProcess, stream: str) -> StreamFacts:
    return StreamFacts.of_answer(server.do(lambda streams: streams._api_request(f"$JS.API.STREAM.INFO.{stream}")))


def test_messages_that_were_removed_unread_are_an_error_or_counted(nats_server: NatsProcess) -> None:
    stream, metrics = nats_server.new_stream(max_msgs=10), MetricGroup()
    nats_server.publish(range(10), f"{stream}.a")
    read = NatsSplit(stream, "", facts_of(nats_server, stream).created, 5)
    assert first_run(nats_server, read, MissingMessages.FAIL, metrics).messages[0].data == b"5"
    nats_server.publish(range(10, 20), f"{stream}.a")
    with pytest.raises(MissingStreamMessages, match="^5 messages behind sequence 5 of .* are gone unread; let the str"):
        first_run(nats_server, read, MissingMessages.FAIL, metrics)
    run = first_run(nats_server, read, MissingMessages.SKIP, metrics)
    assert run.messages[0].data == b"10" and run.split_after(len(run.messages)).covered == 20
    assert metrics.snapshot()["numMessagesMissing"] == 5
    nats_server.do(lambda streams: streams.delete_stream(stream))
    with pytest.raises(Exception, match="has no such stream; create the stream, or correct its name"):
        first_run(nats_server, read, MissingMessages.SKIP, metrics)
    nats_server.create(stream)
    with pytest.raises(MissingStreamMessages, match="is another one: it was created at .* start the job anew"):
        first_run(nats_server, read, MissingMessages.SKIP, metrics)


def test_a_consumer_that_is_gone_is_replaced(nats_server: NatsProcess) -> None:
    stream = nats_server.new_stream()
    nats_server.publish(range(5), f"{stream}.a")
    queue: FetchQueue[NatsRun] = FetchQueue()
    split = NatsSplit(stream, "", facts_of(nats_server, stream).created)
    fetcher = NatsFetcher(NatsServer((nats_server.url,)), queue, MissingMessages.FAIL, MetricGroup())
    queue.add(split.split_id)
    fetcher.add_split(split)
    found: list[bytes] = []

    def read(count: int) -> None:
        deadline = time.monotonic() + 20
        while len(found) < count:
            assert time.monotonic() < deadline
            run = queue.take(())
            found.extend(message.data for message in run.messages) if run else time.sleep(0.001)

    read(5)
    for name in [info.name for info in nats_server.do(lambda streams: streams.consumers_info(stream))]:
        nats_server.do(lambda streams, name=name: streams.delete_consumer(stream, name))
    nats_server.publish(range(5, 9), f"{stream}.a")
    read(9)
    fetcher.close()
    assert found == [b"%d" % number for number in range(9)]


def test_refusals_of_the_server_name_the_remedy(nats_server: NatsProcess) -> None:
    stream = nats_server.new_stream()
    limited = source(nats_server, stream).set_user("limited", "s3cret").build()
    wrong = source(nats_server, stream).set_user("limited", "s3cret2").build()
    for built in (limited, wrong):
        with pytest.raises(Exception, match="refuses access.*correct user, password, token or key") as raised:
            records_of(built)
        assert "s3cret" not in str(raised.value) and "s3cret" not in repr(built)
    with pytest.raises(Exception, match="refuses access"):
        write(["a"], sink(nats_server, f"{stream}.a").set_user("limited", "s3cret").build())
    with pytest.raises(Exception, match="no stream of NATS at .* takes subject 'nowhere'; create a stream"):
        write(["a"], sink(nats_server, "nowhere").build())
    with pytest.raises(Exception, match="a message is greater than NATS at .* takes; send less"):
        write(["a" * 70_000], sink(nats_server, f"{stream}.a").build())
    with pytest.raises(Exception, match="has no such stream; create the stream"):
        records_of(source(nats_server, "none").build())
    with pytest.raises(Exception, match="removes what was read \\(retention workqueue\\).*which has this"):
        records_of(source(nats_server, nats_server.new_stream(retention="workqueue")).build())
    with pytest.raises(Exception, match="the account has no JetStream.*start nats-server with -js"):
        records_of(source(nats_server, stream).set_user("plain", "plain").build())
    gone = source(nats_server, "s").set_servers("nats://me:s3cret@127.0.0.1:1").set_outage_timeout(100).build()
    with pytest.raises(Exception, match="no service by NATS at 127.0.0.1:1 .*check that it runs") as raised:
        records_of(gone)
    assert "s3cret" not in str(raised.value)


def test_a_full_stream_is_waited_for(nats_server: NatsProcess) -> None:
    stream = nats_server.new_stream(max_msgs=3, discard="new")
    with pytest.raises(Exception, match="a stream of NATS at .* is full .*maximum messages exceeded.*raise its limits"):
        write(list("abcd"), sink(nats_server, f"{stream}.a").set_outage_timeout(100).build())


def test_keys_authenticate(nats_server: NatsProcess) -> None:
    stream = nats_server.new_stream()
    write(["a"], sink(nats_server, f"{stream}.a").set_nkey_seed(nats_server.nkey_seed).build())
    assert records_of(source(nats_server, stream).set_nkey_seed(nats_server.nkey_seed).build()) == ["a"]
    with pytest.raises(Exception, match="connecting failed") as raised:
        records_of(source(nats_server, stream).set_nkey_seed("SUAM-no-seed").build())
    assert "SUAM-no-seed" not in str(raised.value)


def test_connections_are_encrypted(tmp_path: Path) -> None:
    if shutil.which("openssl") is None or shutil.which("nats-server") is None:
        pytest.skip("openssl or nats-server is not installed")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    server = NatsProcess(tmp_path, f'tls {{ cert_file: "{certificate}", key_file: "{key}" }}')
    try:
        built = sink(server, "a").set_tls(str(certificate)).build()
        with pytest.raises(Exception, match="no stream of NATS at .* takes subject 'a'"):
            write(["a"], built)
        with pytest.raises(Exception, match=r"no TLS connection to NATS at .*call set_tls\(\)"):
            write(["a"], sink(server, "a").build())
    finally:
        server.end()


def test_a_killed_server_is_waited_for(nats_server: NatsProcess) -> None:
    incoming, outgoing = nats_server.new_stream(), nats_server.new_stream()
    nats_server.publish(range(300), f"{incoming}.a")
    env = environment(**{"execution.checkpointing.interval": "50 ms"})
    builder = NatsSource.builder().set_servers(nats_server.url).set_stream(incoming)
    built = builder.set_deserialization_schema(SimpleStringSchema()).build()
    env.from_source(built, NO_TIME, "nats").sink_to(sink(nats_server, f"{outgoing}.a").build())
    client = env.execute_async()

    def run() -> None:
        with suppress(Exception):  # it is canceled
            client.get_job_execution_result().result()

    def await_size(size: int) -> None:
        deadline = time.monotonic() + 30
        while nats_server.size(outgoing) < size and time.monotonic() < deadline:
            time.sleep(0.01)

    thread = threading.Thread(target=run)
    thread.start()
    await_size(300)
    for first, ending in ((300, signal.SIGKILL), (600, signal.SIGTERM)):
        nats_server.end(ending)
        nats_server.start()
        nats_server.publish(range(first, first + 300), f"{incoming}.a")
        await_size(first + 300)
    values = [int(value) for value in nats_server.values(outgoing)]
    client.cancel()
    thread.join(30)
    assert set(values) >= set(range(900)), "nothing is lost"
    assert not thread.is_alive()


def test_the_source_reads_each_message_once(nats_server: NatsProcess) -> None:
    class Subjects(SourceSubject):
        def __init__(self) -> None:
            self.stream = nats_server.new_stream()

        def create_source(self) -> Source:
            builder = NatsSource.builder().set_servers(nats_server.url).set_stream(self.stream)
            builder.set_subjects(*(f"{self.stream}.{number}" for number in range(3)))
            return builder.set_deserialization_schema(SimpleStringSchema()).build()

        def write(self, numbers: Sequence[int]) -> None:
            for number in numbers:
                nats_server.publish([number], f"{self.stream}.{number % 3}")

    check_source(Subjects, seeds=range(2), records=60)


def test_the_sink_publishes_each_record_at_least_once(nats_server: NatsProcess) -> None:
    class Stream(SinkSubject):
        guarantee = DeliveryGuarantee.AT_LEAST_ONCE

        def __init__(self) -> None:
            self.stream = nats_server.new_stream()

        def create_sink(self) -> Sink:
            return sink(nats_server, f"{self.stream}.a").build()

        def record(self, number: int) -> str:
            return str(number)

        def read(self) -> Iterable[int]:
            return [int(value) for value in nats_server.values(self.stream)]

    check_sink(Stream, seeds=range(2), records=60)


@pytest.mark.parametrize("retention", ["workqueue", "interest"])
def test_what_a_queue_removes_is_read_from_a_stream_that_has_it_as_its_source(
    nats_server: NatsProcess, retention: str
) -> None:
    queue = nats_server.new_stream(retention=retention)
    log = f"{queue}-log"
    nats_server.do(lambda streams: streams.add_stream(name=log, sources=[StreamSource(name=queue)]))
    deadline = time.monotonic() + 20
    for number in count():  # a stream of interest removes what comes before the log is there
        nats_server.publish([number], f"{queue}.a")
        if nats_server.do(lambda streams: streams.stream_info(log)).state.messages >= 5:
            break
        assert time.monotonic() < deadline
    read = [int(value) for value in records_of(source(nats_server, log).set_subjects(f"{queue}.*").build())]
    assert len(read) >= 5 and read == list(range(read[0], read[0] + len(read)))
    assert [int(value) for value in records_of(source(nats_server, log).build())][: len(read)] == read, "read again"


def test_the_examples_of_the_page_run(nats_server: NatsProcess) -> None:
    nats_server.do(lambda streams: streams.add_stream(name="SALES", subjects=["sales.>"]))
    found = doctest.testfile(str(PAGE), module_relative=False, globs={"url": nats_server.url})
    assert found.attempted >= 5 and found.failed == 0
