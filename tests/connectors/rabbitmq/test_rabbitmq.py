"""RabbitMQ as a source and a sink, on a real server."""

from __future__ import annotations

import doctest
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest

from rayflink.common import OutputTag, SimpleStringSchema
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors.base import DeliveryGuarantee, MalformedRecords, Sink, Source
from rayflink.datastream.connectors.rabbitmq import RMQConnectionConfig, RMQSink, RMQSinkPublishOptions, RMQSource
from rayflink.testing import CommittedSink, SinkSubject, SourceSubject, check_sink, check_source
from tests.connectors.rabbitmq.rabbitmq_server import PASSWORD, Proxy, RabbitProcess

pytestmark = pytest.mark.slow
PAGE = Path(__file__).parents[3] / "docs" / "rabbitmq.md"
STRINGS = SimpleStringSchema()


def environment(**options: Any) -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment({"execution.target": "local", "restart-strategy.type": "none", **options})


def builder_of(server: RabbitProcess, port: int | None = None) -> RMQConnectionConfig.Builder:
    builder = RMQConnectionConfig.Builder().set_host("127.0.0.1").set_port(port or server.port)
    return builder.set_user_name("all").set_password(PASSWORD).set_outage_timeout(60_000)


def source_of(server: RabbitProcess, queue: str, port: int | None = None, ids: bool = False) -> RMQSource[str]:
    return RMQSource(builder_of(server, port).build(), queue, ids, STRINGS)


def until(condition: Callable[[], object], problem: str, within_s: float = 60.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, problem
        time.sleep(0.01)


@contextmanager
def running(env: StreamExecutionEnvironment) -> Iterator[Any]:
    """Run a job beside the test, and cancel it at the end."""
    client = env.execute_async()

    def run() -> None:
        with suppress(Exception):  # it is canceled
            client.get_job_execution_result().result()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield client
    finally:
        client.cancel()
        thread.join(30)
        assert not thread.is_alive()


def test_records_are_published_persistently_and_consumed(rabbit: RabbitProcess) -> None:
    queue, env = rabbit.new_name(), environment()
    env.from_collection([str(number) for number in range(2_500)]).add_sink(
        RMQSink(builder_of(rabbit).build(), queue, STRINGS)
    )
    env.execute()
    with rabbit.channel() as channel:
        _, properties, body = channel.basic_get(queue, auto_ack=False)  # is put back when the channel is closed
    assert body == b"0" and properties.delivery_mode == 2
    env = environment()
    found = env.add_source(source_of(rabbit, queue), "mq").execute_and_collect(limit=2_500)
    assert found == [str(number) for number in range(2_500)]
    until(lambda: rabbit.size(queue) == 0, "without checkpoints, what was given out is acknowledged")


def test_options_choose_exchange_key_and_properties(rabbit: RabbitProcess) -> None:
    class ByParity(RMQSinkPublishOptions[int]):
        def compute_exchange(self, record: int) -> str:
            return "amq.direct"

        def compute_routing_key(self, record: int) -> str:
            return "even" if record % 2 == 0 else "odd"

        def compute_properties(self, record: int) -> dict[str, object]:
            return {"correlation_id": f"id {record}", "headers": {"n": record}, "delivery_mode": 1}

        def compute_mandatory(self, record: int) -> bool:
            return record < 10  # the broker drops odd ones from here on

    queue, env = rabbit.declare(), environment()
    with rabbit.channel() as channel:
        channel.queue_bind(queue, "amq.direct", "even")
    numbers = env.from_collection([0, 2, 11, 12]).map(lambda number: number)

    class Text(SimpleStringSchema):
        def serialize(self, element: int) -> bytes:
            return str(element).encode()

    numbers.sink_to(RMQSink(builder_of(rabbit).build(), "", Text(), ByParity()))
    env.execute()
    found = rabbit.take(queue)
    assert [body for body, _ in found] == ["0", "2", "12"]
    properties = found[1][1]
    assert (properties.correlation_id, properties.headers, properties.delivery_mode) == ("id 2", {"n": 2}, 1)
    env = environment()
    env.from_collection([1]).sink_to(RMQSink(builder_of(rabbit).build(), "", Text(), ByParity()))
    with pytest.raises(Exception, match="no queue takes those of exchange 'amq.direct' with routing key 'odd'"):
        env.execute()


def test_a_message_that_cannot_be_encoded_fails_at_once(rabbit: RabbitProcess) -> None:
    class LongKeys(RMQSinkPublishOptions[str]):
        def compute_routing_key(self, record: str) -> str:
            return record * 300

    env = environment()
    env.from_collection(["a"]).sink_to(RMQSink(builder_of(rabbit).build(), "", STRINGS, LongKeys()))
    with pytest.raises(Exception, match="a message cannot be published to exchange ''.*correct the routing key"):
        env.execute()


def test_malformed_messages_fail_are_skipped_or_go_aside(rabbit: RabbitProcess) -> None:
    def source(policy: MalformedRecords) -> RMQSource[str]:
        queue = rabbit.declare()
        with rabbit.channel() as channel:
            for body in (b"a", b"\xff", b"b"):
                channel.basic_publish("", queue, body)
        return RMQSource(builder_of(rabbit).build(), queue, False, STRINGS, policy)

    with pytest.raises(Exception, match=r"queue 'queue-\d+' of RabbitMQ at 127.0.0.1:\d+/, delivery 2: .* be decoded"):
        environment().add_source(source(MalformedRecords.fail())).execute_and_collect(limit=3)
    assert environment().add_source(source(MalformedRecords.skip())).execute_and_collect(limit=2) == ["a", "b"]
    tag = OutputTag("bad")
    aside = environment().add_source(source(MalformedRecords.side_output(tag)))
    bad = aside.get_side_output(tag).map(lambda record: record.message)
    assert bad.execute_and_collect(limit=1) == [b"\xff"]


def test_refusals_of_the_broker_name_the_remedy(rabbit: RabbitProcess) -> None:
    queue = rabbit.declare()

    def fails(builder: RMQConnectionConfig.Builder, problem: str, queue: str = queue) -> None:
        for as_source in (True, False):
            env, config = environment(), builder.build()
            if as_source:
                env.add_source(RMQSource(config, queue, False, STRINGS)).print()
            else:
                env.from_collection(["a"]).sink_to(RMQSink(config, queue, STRINGS))
            with pytest.raises(Exception, match=problem) as raised:
                env.execute()
            assert PASSWORD not in str(raised.value)

    fails(builder_of(rabbit).set_password(PASSWORD + "2"), "refuses the credentials; correct set_user_name")
    fails(builder_of(rabbit).set_virtual_host("missing"), "vhost missing not found.*create the virtual host")
    fails(builder_of(rabbit).set_virtual_host("other"), "access to vhost 'other' refused.*grant the user permissions")
    fails(builder_of(rabbit).set_user_name("none"), "refuses access .*set_permissions", rabbit.new_name())
    fails(builder_of(rabbit, 1).set_outage_timeout(100), "no service by RabbitMQ at 127.0.0.1:1/.*check that it runs")
    fails(builder_of(rabbit, 1).set_automatic_recovery(False), "no service by RabbitMQ at 127.0.0.1:1/")
    env = environment()
    full = rabbit.declare(arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    env.from_collection(["a"] * 5).sink_to(RMQSink(builder_of(rabbit).set_outage_timeout(200).build(), full, STRINGS))
    with pytest.raises(Exception, match=r"does not accept a message \(basic.nack\); check whether a queue is full"):
        env.execute()


def test_a_queue_that_is_deleted_fails_the_job(rabbit: RabbitProcess) -> None:
    queue, env = rabbit.declare(), environment(**{"execution.checkpointing.interval": "20 ms"})
    rabbit.put(queue, range(3))
    env.add_source(source_of(rabbit, queue)).sink_to(CommittedSink(queue))
    client = env.execute_async()
    errors: list[BaseException] = []

    def run() -> None:
        try:
            client.get_job_execution_result().result()
        except Exception as error:  # the one under test
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    until(lambda: len(CommittedSink.records(queue)) == 3, "records do not come")
    with rabbit.channel() as channel:
        channel.queue_delete(queue)
    thread.join(30)
    assert len(errors) == 1 and "it is not there" in str(errors[0]) and "start the job anew" in str(errors[0])
    CommittedSink.forget(queue)


def test_nothing_is_lost_or_doubled_when_connections_and_the_broker_are_killed(rabbit: RabbitProcess) -> None:
    queue, proxy = rabbit.declare(), Proxy(rabbit.port)
    env = environment(**{"execution.checkpointing.interval": "200 ms"})
    env.add_source(source_of(rabbit, queue, proxy.port, ids=True)).sink_to(CommittedSink(queue))
    with running(env):
        for turn in range(6):
            rabbit.put(queue, range(300 * turn, 300 * turn + 300))
            until(lambda: rabbit.size(queue) == 0, "messages are not delivered")  # and few are acknowledged
            if turn < 5:
                assert proxy.cut()
        rabbit.kill()
        rabbit.start()
        rabbit.put(queue, range(1_800, 2_100))
        until(lambda: len(CommittedSink.records(queue)) >= 2_100, "records are lost")
        until(lambda: rabbit.size(queue) == 0, "messages are not acknowledged")
    assert sorted(map(int, CommittedSink.records(queue))) == list(range(2_100)), "each once"
    CommittedSink.forget(queue)
    proxy.close()


class Queue:
    """A queue of the test, and a proxy through which the connector reaches it; a job has the class of its subject."""

    proxies: ClassVar[dict[str, Proxy]] = {}

    def __init__(self, server: RabbitProcess) -> None:
        self.queue, proxy = server.declare(), Proxy(server.port)
        self.proxies[self.queue], self.port = proxy, proxy.port

    def outage(self) -> Any:
        self.proxies[self.queue].cut()
        return nullcontext()

    def close(self) -> None:
        self.proxies.pop(self.queue).close()


@pytest.mark.parametrize("ids", [True, False])
def test_the_source_keeps_its_promise(rabbit: RabbitProcess, ids: bool) -> None:
    class Incoming(Queue, SourceSubject):
        guarantee = DeliveryGuarantee.EXACTLY_ONCE if ids else DeliveryGuarantee.AT_LEAST_ONCE

        def create_source(self) -> Source:
            return source_of(rabbit, self.queue, self.port, ids)

        def write(self, numbers: Sequence[int]) -> None:
            rabbit.put(self.queue, numbers, with_ids=ids)

    if ids:
        Incoming.parallelisms = (1,)
    check_source(lambda: Incoming(rabbit), seeds=range(3), records=60)


def test_the_sink_publishes_each_record_at_least_once(rabbit: RabbitProcess) -> None:
    class Outgoing(Queue, SinkSubject):
        guarantee = DeliveryGuarantee.AT_LEAST_ONCE

        def __init__(self, server: RabbitProcess) -> None:
            super().__init__(server)
            self.found: list[int] = []

        def create_sink(self) -> Sink:
            return RMQSink(builder_of(rabbit, self.port).build(), self.queue, STRINGS)

        def record(self, number: int) -> str:
            return str(number)

        def read(self) -> Iterable[int]:
            self.found += [int(body) for body, _ in rabbit.take(self.queue)]
            return self.found

    check_sink(lambda: Outgoing(rabbit), seeds=range(2), records=60)


def test_the_examples_of_the_page_run(rabbit: RabbitProcess) -> None:
    found = doctest.testfile(str(PAGE), module_relative=False, globs={"uri": rabbit.uri})
    assert found.attempted >= 5 and found.failed == 0
