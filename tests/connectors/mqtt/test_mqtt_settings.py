"""Settings, messages and reasons, without a broker."""

from __future__ import annotations

import pickle

import pytest

from rayflink.common import Duration, SimpleStringSchema
from rayflink.connectors.mqtt.mqtt_broker import MqttBroker, MqttTls
from rayflink.connectors.mqtt.mqtt_consumer import SessionHistory
from rayflink.connectors.mqtt.mqtt_errors import (
    MqttConflict,
    MqttOutage,
    MqttRefusal,
    failure_of,
    failure_of_reason,
)
from rayflink.connectors.mqtt.mqtt_messages import MessageWriter, MqttMessage, checked_filter
from rayflink.datastream.connectors.mqtt import MqttSink, MqttSource


def test_reasons_of_brokers_are_outages_or_refusals() -> None:
    kinds = {128: MqttOutage, 134: MqttRefusal, 135: MqttRefusal, 136: MqttOutage, 142: MqttRefusal, 149: MqttRefusal,
             151: MqttOutage, 158: MqttRefusal}  # fmt: skip
    assert {value: type(failure_of_reason(value, "r", "connecting", "h:1")) for value in kinds} == kinds
    taken = failure_of_reason(142, "Session taken over", "the connection", "h:1")
    assert "another client has connected" in str(taken) and "set_client_id()" in str(taken)
    assert isinstance(failure_of(TimeoutError("late"), "connecting", "h:1"), MqttOutage)
    assert isinstance(failure_of(ValueError("odd"), "connecting", "h:1"), MqttRefusal)


def test_connections_that_end_soon_many_times_are_a_conflict() -> None:
    lost: list[int] = []
    history = SessionHistory("h:1", lost.append)

    def connect(now_s: float, is_there: bool = True) -> None:
        history.begin(now_s)
        history.add({0: True, 1: is_there}, now_s)

    for at in range(10):
        connect(at * 0.1, at == 0)
    assert lost == [1] * 9
    connect(60)
    for at in range(9):
        connect(60.1 + at)
    with pytest.raises(MqttConflict, match="closed 10 connections in a row soon .* with the same client id"):
        connect(69.2)


@pytest.mark.parametrize("pattern", ["", "a+", "a/#/b", "#a", "$share/g/a"])
def test_topics_that_are_no_filters_are_refused(pattern) -> None:
    with pytest.raises(MqttRefusal, match=r"is no topic filter; write 'sensors/kitchen'"):
        checked_filter(pattern)


def test_topics_with_wildcards_are_filters() -> None:
    assert [checked_filter(name) for name in ("a", "a/+/b", "#", "/", "+/x/#")] == ["a", "a/+/b", "#", "/", "+/x/#"]


def test_records_are_messages() -> None:
    assert MessageWriter().message(MqttMessage("a/b", b"x")) == ("a/b", b"x")
    assert MessageWriter(lambda word: f"w/{word}", SimpleStringSchema()).message("tea") == ("w/tea", b"tea")
    assert MessageWriter("s").message("é") == ("s", "é".encode())
    for writer, found, message in ((MessageWriter("s"), 1, "of type int, wanted bytes, a str or an MqttMessage"),
                                   (MessageWriter(), b"x", "'' is no topic"),
                                   (MessageWriter(lambda _: "a/#"), b"x", "without # and \\+")):  # fmt: skip
        with pytest.raises(MqttRefusal, match=message):
            writer.message(found)


def test_sessions_are_numbered_and_share_a_subscription() -> None:
    builder = MqttSource.builder().set_url("mqtt://h").set_client_id("job").set_topics("a/#", "b")
    assert builder.build()._settings.subscriptions == ["a/#", "b"] and builder.build().max_parallelism == 1
    built = builder.set_shared_subscription("g", 4).set_session_expiry(Duration.of_minutes(2)).build()
    assert built._settings.subscriptions == ["$share/g/a/#", "$share/g/b"] and built.max_parallelism is None
    session = built._settings.session(3)
    assert (session.client_id, session.is_kept, session.expiry_s) == ("job-3", True, 120)


def test_settings_are_checked_and_shown_without_secrets() -> None:
    assert MqttBroker("wss://b.example/path").place == "b.example:443"
    assert MqttBroker("mqtt://u%40x:p%2F@h").credentials == ("u@x", "p/")
    built = MqttSource.builder().set_url("mqtts://me:s3cret@b.example").set_topics("a").set_client_id("c").build()
    assert repr(built) == "MqttSource(topics 'a' of MQTT at b.example:8883)"
    assert "s3cret" not in repr(pickle.loads(pickle.dumps(built))._settings)
    source, sink = MqttSource.builder(), MqttSink.builder()
    for call, message in (
        (lambda: source.set_url("http://h"), "malformed; write mqtt://"),
        (lambda: source.set_topics(), "no topic is named"),
        (lambda: source.build(), "no broker of MQTT is named"),
        (lambda: MqttSource.builder().set_url("mqtt://h").build(), "the source has no topics"),
        (lambda: MqttSource.builder().set_url("mqtt://h").set_topics("a").build(), "the source has no client id"),
        (lambda: source.set_shared_subscription("a/b", 2), "no name of a shared subscription"),
        (lambda: sink.set_topic("a/+"), "no topic to publish to"),
        (lambda: MqttTls("/no/ca.pem").context(), "cannot be used for TLS"),
    ):
        with pytest.raises(MqttRefusal, match=message):
            call()
    for call, message in (
        (lambda: source.set_shared_subscription("g", 0), "expected 1 to 1000 sessions, found 0"),
        (lambda: source.set_max_unacknowledged(70_000), "expected 1 to 65535"),
        (lambda: source.set_protocol_version("3.1"), "wanted one of '5', '3.1.1'"),
        (lambda: sink.set_qos(3), "found QoS 3, wanted 0, 1 or 2"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
