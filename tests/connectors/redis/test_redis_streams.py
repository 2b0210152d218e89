"""Redis Streams as a source and a sink, on a real server."""

from __future__ import annotations

import doctest
import re
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from rayflink.common import OutputTag, Row, SimpleStringSchema, WatermarkStrategy
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.connectors.discard import DiscardingSink
from rayflink.connectors.message_logs.fetch_queue import FetchQueue
from rayflink.connectors.redis.redis_client import RedisServer
from rayflink.connectors.redis.redis_errors import MissingEntries
from rayflink.connectors.redis.redis_fetcher import RedisFetcher, RedisRun
from rayflink.connectors.redis.redis_positions import RedisStreamSplit, id_of
from rayflink.datastream import ProcessFunction, StreamExecutionEnvironment
from rayflink.datastream.connectors.base import DeliveryGuarantee, MalformedRecords, Sink, Source
from rayflink.datastream.connectors.redis import (
    MissingMessages,
    RedisStreamPosition,
    RedisStreamSink,
    RedisStreamSource,
    RedisStreamSourceBuilder,
)
from rayflink.testing import SinkSubject, SourceSubject, check_sink, check_source
from tests.connectors.redis.conftest import RedisProcess

pytestmark = pytest.mark.slow
PAGE = Path(__file__).parents[3] / "docs" / "redis.md"


def environment(**options: Any) -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment({"execution.target": "local", "restart-strategy.type": "none", **options})


def source(server: RedisProcess, *streams: str) -> RedisStreamSourceBuilder:
    builder = RedisStreamSource.builder().set_url(server.url).set_streams(*streams)
    return builder.set_value_field("v", SimpleStringSchema()).set_bounded(RedisStreamPosition.latest())


def records_of(built: RedisStreamSource, **options: Any) -> list[Any]:
    env = environment(**options)
    with env.from_source(built, WatermarkStrategy.no_watermarks(), "redis").execute_and_collect() as results:
        return list(results)


def add(server: RedisProcess, stream: str, *values: object) -> list[str]:
    return [server.client.xadd(stream, {"v": str(value)}).decode() for value in values]


def test_rows_are_written_and_entries_read(redis_server: RedisProcess) -> None:
    stream, env = redis_server.new_stream(), environment()
    sink = RedisStreamSink.builder().set_url(redis_server.url).set_stream(stream).build()
    env.from_collection([Row(n=number, w=f"w{number}") for number in range(3_000)]).sink_to(sink)
    env.execute()
    built = RedisStreamSource.builder().set_url(redis_server.url).set_streams(stream)
    found = records_of(built.set_bounded(RedisStreamPosition.latest()).build())
    assert [(int(entry.fields["n"]), entry.fields["w"]) for entry in found] == [
        (number, b"w%d" % number) for number in range(3_000)
    ]
    assert found[0].stream == stream and re.fullmatch(r"\d+-\d+", found[0].entry_id)


def test_streams_are_splits_with_timestamps_of_their_ids(redis_server: RedisProcess) -> None:
    streams = [redis_server.new_stream() for _ in range(3)]
    for number, stream in enumerate(streams[:2]):
        for at in range(1_000, 1_010):
            redis_server.client.xadd(stream, {"v": f"{number}-{at}"}, id=f"{at}-0")
    built = source(redis_server, *streams).set_starting_position(RedisStreamPosition.from_timestamp(1_005)).build()
    env = environment(**{"parallelism.default": 2})
    stamped = env.from_source(built, WatermarkStrategy.for_monotonous_timestamps(), "redis")

    class Stamps(ProcessFunction):
        def process_element(self, value, ctx):
            yield value, ctx.timestamp()

    with stamped.process(Stamps()).execute_and_collect() as results:
        found = sorted(results)
    assert found == sorted((f"{number}-{at}", at) for number in range(2) for at in range(1_005, 1_010))


def test_malformed_entries_fail_are_skipped_or_go_aside(redis_server: RedisProcess) -> None:
    stream = redis_server.new_stream()
    add(redis_server, stream, "a")
    redis_server.client.xadd(stream, {"other": "x"})
    redis_server.client.xadd(stream, {"v": b"\xff"})
    add(redis_server, stream, "b")
    with pytest.raises(Exception, match=rf"stream '{stream}', entry .*the entry has no field 'v', found other"):
        records_of(source(redis_server, stream).build())
    assert records_of(source(redis_server, stream).set_malformed_records(MalformedRecords.skip()).build()) == ["a", "b"]
    tag, env = OutputTag("bad"), environment()
    built = source(redis_server, stream).set_malformed_records(MalformedRecords.side_output(tag)).build()
    main = env.from_source(built, WatermarkStrategy.no_watermarks(), "redis")
    with main.get_side_output(tag).map(lambda bad: bad.message).execute_and_collect() as results:
        assert list(results) == [b"other x", b"v \xff"]


def first_run(server: RedisProcess, split: RedisStreamSplit, policy: MissingMessages, metrics: MetricGroup) -> RedisRun:
    queue: FetchQueue[RedisRun] = FetchQueue()
    fetcher = RedisFetcher(RedisServer(server.url), queue, policy, "", metrics)
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


def test_entries_that_were_trimmed_unread_are_an_error_or_counted(redis_server: RedisProcess) -> None:
    stream, metrics = redis_server.new_stream(), MetricGroup()
    ids = [id_of(entry) for entry in add(redis_server, stream, *range(20))]
    read = RedisStreamSplit(stream, ids[4], 5)
    assert first_run(redis_server, read, MissingMessages.FAIL, metrics).messages[0].pairs == [b"v", b"5"]
    redis_server.client.xtrim(stream, maxlen=10, approximate=False)
    with pytest.raises(MissingEntries, match="^5 entries behind .* are gone unread; let streams keep more"):
        first_run(redis_server, read, MissingMessages.FAIL, metrics)
    run = first_run(redis_server, read, MissingMessages.SKIP, metrics)
    assert run.messages[0].pairs == [b"v", b"10"] and run.split_after(len(run.messages)).entries_read == 20
    assert metrics.snapshot()["numMessagesMissing"] == 5
    redis_server.client.delete(stream)
    redis_server.client.xadd(stream, {"v": "x"}, id="1-1")
    with pytest.raises(MissingEntries, match="it was deleted, or the server has lost its end"):
        first_run(redis_server, read, MissingMessages.SKIP, metrics)


def test_refusals_of_the_server_name_the_remedy(redis_server: RedisProcess) -> None:
    stream = redis_server.new_stream()
    redis_server.client.set(stream, "a string")
    with pytest.raises(Exception, match="is no stream .*give the key of a stream"):
        records_of(source(redis_server, stream).build())
    redis_server.client.acl_setuser("limited", enabled=True, passwords=["+s3cret"], keys=["none"], commands=["+@all"])
    limited = redis_server.url.replace("://", "://limited:s3cret@")
    wrong = redis_server.url.replace("://", "://limited:s3cret2@")
    for url in (limited, wrong):
        built = source(redis_server, redis_server.new_stream()).set_url(url).build()
        with pytest.raises(Exception, match="refuses access.*correct user, password and permissions") as raised:
            records_of(built)
        assert "s3cret" not in str(raised.value) and "s3cret" not in repr(built)
    sink = RedisStreamSink.builder().set_url(redis_server.url).set_stream(stream).build()
    env = environment()
    env.from_collection([{"a": 1}]).sink_to(sink)
    with pytest.raises(Exception, match="is no stream"):
        env.execute()
    gone = source(redis_server, "s").set_url("redis://127.0.0.1:1/0").set_outage_timeout(100).build()
    with pytest.raises(Exception, match="no service by Redis at 127.0.0.1:1/0.*check that it runs"):
        records_of(gone)


def test_a_killed_server_is_waited_for(redis_server: RedisProcess) -> None:
    incoming, outgoing = redis_server.new_stream(), redis_server.new_stream()
    add(redis_server, incoming, *range(300))
    env = environment(**{"execution.checkpointing.interval": "50 ms"})
    builder = RedisStreamSource.builder().set_url(redis_server.url).set_streams(incoming)
    built = builder.set_value_field("v", SimpleStringSchema()).build()
    sink = RedisStreamSink.builder().set_url(redis_server.url).set_stream(outgoing)
    sink.set_value_field("v", SimpleStringSchema())
    env.from_source(built, WatermarkStrategy.no_watermarks(), "redis").sink_to(sink.build())
    client = env.execute_async()

    def run() -> None:
        with suppress(Exception):  # it is canceled
            client.get_job_execution_result().result()

    thread = threading.Thread(target=run)
    thread.start()
    deadline = time.monotonic() + 30
    while redis_server.client.xlen(outgoing) < 300 and time.monotonic() < deadline:
        time.sleep(0.01)
    redis_server.kill()
    redis_server.start()
    add(redis_server, incoming, *range(300, 600))
    while redis_server.client.xlen(outgoing) < 600 and time.monotonic() < deadline:
        time.sleep(0.01)
    values = [int(fields[b"v"]) for _, fields in redis_server.client.xrange(outgoing)]
    assert set(values) >= set(range(600)), "nothing is lost"
    client.cancel()
    thread.join(30)
    assert not thread.is_alive()


def test_the_group_follows_complete_checkpoints(redis_server: RedisProcess) -> None:
    stream = redis_server.new_stream()
    last = add(redis_server, stream, *range(50))[-1]
    env = environment(**{"execution.checkpointing.interval": "20 ms"})
    built = source(redis_server, stream).set_group("job").build()
    slow = env.from_source(built, WatermarkStrategy.no_watermarks(), "redis")
    slow.map(lambda value: (time.sleep(0.01), value)[1]).sink_to(DiscardingSink())
    env.execute()
    groups = redis_server.client.xinfo_groups(stream)
    assert [group["name"] for group in groups] == [b"job"]
    assert (0, 0) < id_of(groups[0]["last-delivered-id"]) <= id_of(last)


@contextmanager
def down(server: RedisProcess) -> Iterator[None]:
    """The server is killed, and started again with what was on its disk."""
    server.kill()
    try:
        yield
    finally:
        server.start()


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 20))])
def test_the_source_reads_each_entry_once(redis_server: RedisProcess, seed: int) -> None:
    class Streams(SourceSubject):
        def __init__(self) -> None:
            self.streams = [redis_server.new_stream() for _ in range(3)]

        def create_source(self) -> Source:
            builder = RedisStreamSource.builder().set_url(redis_server.url).set_streams(*self.streams)
            return builder.set_value_field("v", SimpleStringSchema()).build()

        def write(self, numbers: Sequence[int]) -> None:
            for number in numbers:
                redis_server.client.xadd(self.streams[number % 3], {"v": str(number)})

        def outage(self) -> AbstractContextManager[None]:
            return down(redis_server)

    check_source(Streams, seeds=[seed], records=60)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 20))])
def test_the_sink_writes_each_record_at_least_once(redis_server: RedisProcess, seed: int) -> None:
    class Stream(SinkSubject):
        guarantee = DeliveryGuarantee.AT_LEAST_ONCE

        def __init__(self) -> None:
            self.stream = redis_server.new_stream()

        def create_sink(self) -> Sink:
            builder = RedisStreamSink.builder().set_url(redis_server.url).set_stream(self.stream)
            return builder.set_value_field("v", SimpleStringSchema()).set_outage_timeout(200).build()

        def record(self, number: int) -> str:
            return str(number)

        def read(self) -> Iterable[int]:
            return [int(fields[b"v"]) for _, fields in redis_server.client.xrange(self.stream)]

        def outage(self) -> AbstractContextManager[None]:
            return down(redis_server)

    check_sink(Stream, seeds=[seed], records=60)


def test_a_stream_keeps_its_length(redis_server: RedisProcess) -> None:
    stream, env = redis_server.new_stream(), environment()
    builder = RedisStreamSink.builder().set_url(redis_server.url).set_stream(lambda record: record["to"])
    env.from_collection([{"to": stream, "n": number} for number in range(50)]).sink_to(
        builder.set_max_length(7, exact=True).build()
    )
    env.execute()
    assert [fields[b"n"] for _, fields in redis_server.client.xrange(stream)] == [b"%d" % n for n in range(43, 50)]


def test_the_examples_of_the_page_run(redis_server: RedisProcess) -> None:
    found = doctest.testfile(str(PAGE), module_relative=False, globs={"url": redis_server.url})
    assert found.attempted >= 5 and found.failed == 0
