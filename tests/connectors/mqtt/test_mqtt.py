"""MQTT as a source and a sink, on a real broker."""

from __future__ import annotations

import doctest
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from rayflink.common import OutputTag, SimpleStringSchema, WatermarkStrategy
from rayflink.connectors.mqtt.mqtt_broker import MqttBroker
from rayflink.connectors.mqtt.mqtt_connection import MqttConnection, MqttSession
from rayflink.connectors.mqtt.mqtt_consumer import MqttConsumer, SessionHistory
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors.base import DeliveryGuarantee, MalformedRecords, Sink, Source
from rayflink.datastream.connectors.mqtt import MqttSink, MqttSinkBuilder, MqttSource, MqttSourceBuilder
from rayflink.testing import SinkSubject, SourceSubject, check_sink, check_source
from tests.connectors.mqtt.mosquitto_process import MosquittoProcess, Received, program

pytestmark = pytest.mark.slow
PAGE = Path(__file__).parents[3] / "docs" / "mqtt.md"
NO_TIME = WatermarkStrategy.no_watermarks()


def environment(**options: Any) -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment({"execution.target": "local", "restart-strategy.type": "none", **options})


def source(broker: MosquittoProcess, topic: str) -> MqttSourceBuilder:
    builder = MqttSource.builder().set_url(broker.url).set_topics(f"{topic}/#").set_client_id(broker.new_name())
    return builder.set_deserialization_schema(SimpleStringSchema())


def sink(broker: MosquittoProcess, topic: Any) -> MqttSinkBuilder:
    return MqttSink.builder().set_url(broker.url).set_topic(topic)


def write(records: Sequence[Any], built: MqttSink) -> None:
    env = environment()
    env.from_collection(records).sink_to(built)
    env.execute()


def consumer(
    broker: MosquittoProcess, client_id: str, topic: str, history: SessionHistory | None = None
) -> MqttConsumer:
    session = MqttSession(client_id, True, 60, 1_000)
    return MqttConsumer(MqttBroker(broker.url), {0: session}, [f"{topic}/#"], history or SessionHistory("", print))


def first(built: MqttSource, count: int, prepare: Callable[[], None]) -> list[Any]:
    """The first records of a job that acknowledges what it gives out; called once it has subscribed."""
    with environment().from_source(built, NO_TIME, "mqtt").execute_and_collect() as results:
        prepare()
        return [next(results) for _ in range(count)]


def subscribe(broker: MosquittoProcess, builder: MqttSourceBuilder) -> MqttSource:
    """The source, whose sessions are there."""
    settings = builder.build()._settings
    sessions = {number: settings.session(number) for number in range(settings.sessions)}
    MqttConsumer(settings.broker, sessions, settings.subscriptions, SessionHistory("", print)).close()
    return builder.build()


@contextmanager
def running(env: StreamExecutionEnvironment) -> Iterator[None]:
    client = env.execute_async()

    def run() -> None:
        with suppress(Exception):  # it is canceled
            client.get_job_execution_result().result()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        client.cancel()
        thread.join(30)
    assert not thread.is_alive()


@pytest.mark.parametrize("version", ["5", "3.1.1"])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_records_are_published(mosquitto: MosquittoProcess, version: str, qos: int) -> None:
    topic = mosquitto.new_name()
    records = [str(number) for number in range(2_000)]
    built = sink(mosquitto, lambda record: f"{topic}/{int(record) % 2}").set_qos(qos).set_protocol_version(version)
    with mosquitto.subscribed(f"{topic}/#") as received:
        write(records, built.build())
        assert received.await_values(set(records)) == records
    assert [message.topic for message in received.messages[:3]] == [f"{topic}/0", f"{topic}/1", f"{topic}/0"]
    assert {message.qos for message in received.messages} == {qos}


def test_retained_messages_wait_for_subscribers(mosquitto: MosquittoProcess) -> None:
    topic = mosquitto.new_name()
    write(["a", "b"], sink(mosquitto, f"{topic}/x").set_retained(True).build())
    built = MqttSource.builder().set_url(mosquitto.url).set_topics(f"{topic}/+").set_client_id(topic).build()
    (found,) = first(built, 1, lambda: None)
    assert (found.topic, found.payload, found.qos, found.is_retained) == (f"{topic}/x", b"b", 1, True)


def test_sessions_keep_what_comes_before_the_job(mosquitto: MosquittoProcess) -> None:
    for version in ("5", "3.1.1"):
        topic = mosquitto.new_name()
        built = subscribe(mosquitto, source(mosquitto, topic).set_protocol_version(version))
        mosquitto.publish(range(1_500), f"{topic}/x")
        assert first(built, 1_500, lambda: None) == [str(number) for number in range(1_500)]


def test_what_is_not_acknowledged_comes_again(mosquitto: MosquittoProcess) -> None:
    topic, client_id = mosquitto.new_name(), mosquitto.new_name()
    consumer(mosquitto, client_id, topic).close()
    mosquitto.publish(range(5), f"{topic}/x")

    def receive(count: int) -> tuple[list[bytes], MqttConsumer, list[Any]]:
        one, found, tags = consumer(mosquitto, client_id, topic), [], []
        deadline = time.monotonic() + 20
        while len(found) < count and time.monotonic() < deadline:
            deliveries = one.receive(100, 0.05)
            if deliveries is not None:
                found += [message.payload for message in deliveries.messages]
                tags += deliveries.tags
        return found, one, tags

    found, one, tags = receive(5)
    one.acknowledge(tags[:2])
    one.close()
    again, one, tags = receive(3)
    assert found == [b"0", b"1", b"2", b"3", b"4"] and again == [b"2", b"3", b"4"]
    one.acknowledge(tags)
    assert one.receive(100, 0.05) is None
    one.close()


def test_malformed_messages_fail_are_skipped_or_go_aside(mosquitto: MosquittoProcess) -> None:
    topic = mosquitto.new_name()
    values = ["a", b"\xff", "b"]
    failing = subscribe(mosquitto, source(mosquitto, topic))
    skipping = subscribe(mosquitto, source(mosquitto, topic).set_malformed_records(MalformedRecords.skip()))
    tag = OutputTag("bad")
    aside = subscribe(mosquitto, source(mosquitto, topic).set_malformed_records(MalformedRecords.side_output(tag)))
    mosquitto.publish(values, f"{topic}/x")
    with pytest.raises(Exception, match=rf"of MQTT at .*, topic '{topic}/x': b'\\xff' cannot be decoded"):
        first(failing, 3, lambda: None)
    assert first(skipping, 2, lambda: None) == ["a", "b"]
    main = environment().from_source(aside, NO_TIME, "mqtt")
    with main.get_side_output(tag).map(lambda bad: bad.message).execute_and_collect() as results:
        assert next(results) == b"\xff"


def test_refusals_of_the_broker_name_the_remedy(mosquitto: MosquittoProcess) -> None:
    topic = mosquitto.new_name()
    wrong = source(mosquitto, topic).set_user("limited", "s3cret2").build()
    with pytest.raises(Exception, match="connecting failed: MQTT at .* answers.*correct user and password") as raised:
        first(wrong, 1, lambda: None)
    assert "s3cret2" not in str(raised.value) and "s3cret2" not in repr(wrong)
    with pytest.raises(Exception, match='MQTT at .* answers "Packet too large"; send less'):
        write(["a" * 70_000], sink(mosquitto, topic).build())
    gone = source(mosquitto, topic).set_url("mqtt://me:s3cret@127.0.0.1:1").set_outage_timeout(100).build()
    with pytest.raises(Exception, match="no service by MQTT at 127.0.0.1:1 .*check that it runs") as raised:
        first(gone, 1, lambda: None)
    assert "s3cret" not in str(raised.value)


def test_two_jobs_with_one_client_id_do_not_fight_for_ever(mosquitto: MosquittoProcess) -> None:
    topic = mosquitto.new_name()
    built = source(mosquitto, topic).build()
    with ThreadPoolExecutor(2) as pool:
        jobs = {pool.submit(first, built, 1, lambda: None) for _ in range(2)}
        ended, _ = wait(jobs, 30, FIRST_COMPLETED)
        assert "closed 10 connections in a row" in str(ended.pop().exception())
        mosquitto.publish(["x"], f"{topic}/x")
        assert [job.result(30) for job in jobs if job.exception(30) is None] == [["x"]]


def test_a_lost_session_is_noticed(mosquitto: MosquittoProcess) -> None:
    client_id, lost = mosquitto.new_name(), []
    history = SessionHistory("", lost.append)
    consumer(mosquitto, client_id, "t", history).close()
    consumer(mosquitto, client_id, "t", history).close()
    assert lost == []
    mosquitto.end(signal.SIGKILL)
    mosquitto.saved.unlink(missing_ok=True)
    mosquitto.start()
    consumer(mosquitto, client_id, "t", history).close()
    assert lost == [0]


def test_connections_are_encrypted_and_permissions_checked(tmp_path: Path) -> None:
    if shutil.which("openssl") is None or program("mosquitto") is None:
        pytest.skip("openssl or mosquitto is not installed")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    (tmp_path / "permissions").write_text("topic readwrite #\n\nuser limited\ntopic readwrite none/#\n")
    more = f"certfile {certificate}\nkeyfile {key}\nacl_file {tmp_path}/permissions"
    broker = MosquittoProcess(tmp_path, more)
    try:
        url = broker.url.replace("mqtt:", "mqtts:")
        built = source(broker, "t").set_url(url).set_tls(str(certificate))
        subscribe(broker, built)
        encrypted = sink(broker, "t/a").set_url(url).set_tls(str(certificate))
        write([str(number) for number in range(2_000)], encrypted.build())
        with pytest.raises(Exception, match='publishing failed: MQTT at .* answers "Not authorized"; correct user'):
            write(["a"], encrypted.set_user("limited", "s3cret").build())
        assert len(first(built.build(), 2_000, lambda: None)) == 2_000
        with pytest.raises(Exception, match=r"no TLS connection to MQTT at .*call set_tls\(\)"):
            write(["a"], sink(broker, "t/a").set_url(url).build())
    finally:
        broker.end()


def test_a_broker_that_restarts_is_waited_for(mosquitto: MosquittoProcess) -> None:
    incoming, outgoing = mosquitto.new_name(), mosquitto.new_name()
    built = subscribe(mosquitto, source(mosquitto, incoming))
    settings = MqttSession(mosquitto.new_name(), True, 60, 10_000)
    broker, received = MqttBroker(mosquitto.url), Received()

    def drain(wanted: int) -> None:
        """Read what the job wrote, by a session that outlives the broker."""
        connection = MqttConnection(broker, settings, received.add)
        connection.open()
        connection.subscribe([outgoing])
        deadline = time.monotonic() + 30
        values = set(map(str, range(wanted)))
        while not values <= {message.payload.decode() for message in received.messages}:
            assert time.monotonic() < deadline, "messages are lost"
            connection.step(0.05)
        connection.close()

    drain(0)
    mosquitto.publish(range(300), f"{incoming}/x")
    env = environment(**{"execution.checkpointing.interval": "50 ms"})
    env.from_source(built, NO_TIME, "mqtt").sink_to(sink(mosquitto, outgoing).build())
    with running(env):
        drain(300)
        mosquitto.end()
        mosquitto.start()
        mosquitto.publish(range(300, 600), f"{incoming}/x")
        drain(600)


def test_the_source_reads_each_message_at_least_once(mosquitto: MosquittoProcess) -> None:
    class Topics(SourceSubject):
        guarantee = DeliveryGuarantee.AT_LEAST_ONCE

        def __init__(self) -> None:
            self.topic, self.client_id = mosquitto.new_name(), mosquitto.new_name()
            subscribe(mosquitto, self._builder())

        def _builder(self) -> MqttSourceBuilder:
            builder = source(mosquitto, self.topic).set_client_id(self.client_id)
            return builder.set_shared_subscription(self.topic, 2)

        def create_source(self) -> Source:
            return self._builder().build()

        def write(self, numbers: Sequence[int]) -> None:
            mosquitto.publish(numbers, f"{self.topic}/x")

    check_source(Topics, seeds=range(2), records=60)


def test_the_sink_publishes_each_record_at_least_once(mosquitto: MosquittoProcess) -> None:
    class Topic(SinkSubject):
        guarantee = DeliveryGuarantee.AT_LEAST_ONCE

        def __init__(self) -> None:
            self.topic, self.received = mosquitto.new_name(), Received()
            session = MqttSession(self.topic, True, 60, 10_000)
            self.connection = MqttConnection(MqttBroker(mosquitto.url), session, self.received.add)
            self.connection.open()
            self.connection.subscribe([self.topic])

        def create_sink(self) -> Sink:
            return sink(mosquitto, self.topic).build()

        def record(self, number: int) -> str:
            return str(number)

        def read(self) -> Iterable[int]:
            self.connection.step(0.2)
            return [int(message.payload) for message in self.received.messages]

        def close(self) -> None:
            self.connection.close()

    check_sink(Topic, seeds=range(2), records=60)


def test_the_examples_of_the_page_run(mosquitto: MosquittoProcess) -> None:
    found = doctest.testfile(str(PAGE), module_relative=False, globs={"url": mosquitto.url})
    assert found.attempted >= 5 and found.failed == 0
