"""What the connectors of RabbitMQ decide, without a server."""

from __future__ import annotations

import pickle
import sys

import pika
import pika.exceptions
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common import SimpleStringSchema
from rayflink.connectors.rabbitmq.rabbitmq_errors import RMQOutage, RMQRefusal, failure_of
from rayflink.connectors.rabbitmq.rabbitmq_publisher import Unconfirmed
from rayflink.datastream.connectors.rabbitmq import RMQConnectionConfig, RMQError, RMQSink, RMQSource

closed_channel = pika.exceptions.ChannelClosedByBroker
closed_connection = pika.exceptions.ConnectionClosedByBroker
REFUSALS = {
    "correct set_user_name": pika.exceptions.ProbableAuthenticationError(
        "ConnectionClosedByBroker: (403) 'ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN'"
    ),
    "create the virtual host": closed_connection(530, "NOT_ALLOWED - vhost missing not found"),
    "grant the user permissions to": closed_channel(403, "ACCESS_REFUSED - access to queue 'q' refused"),
    "declare it, or start the job anew": closed_channel(404, "NOT_FOUND - no queue 'q' in vhost '/'"),
    "one that is not exclusive": closed_channel(405, "RESOURCE_LOCKED - cannot obtain exclusive access"),
    "correct the source or sink": closed_channel(406, "PRECONDITION_FAILED - message size 9 is larger than 8"),
}
OUTAGES = {
    "check that it runs": pika.exceptions.StreamLostError("reset"),
    "ProbableAuthenticationError: StreamLostError": pika.exceptions.ProbableAuthenticationError("StreamLostError"),
    "320 CONNECTION_FORCED": closed_connection(320, "CONNECTION_FORCED - broker forced connection closure"),
    "or raise set_outage_timeout": OSError("unreachable"),
    "no service": closed_channel(404, "NOT_FOUND - home node 'a' of durable queue 'q' is down or inaccessible"),
    "take checkpoints more often": closed_channel(
        406, "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out. Timeout value used: 1800000 ms"
    ),
}


@pytest.mark.parametrize("remedy", REFUSALS)
def test_what_a_restart_would_repeat_is_refused(remedy: str) -> None:
    failure = failure_of(REFUSALS[remedy], "consuming queue 'q'", "mq:5672/")
    assert isinstance(failure, RMQRefusal) and remedy in str(failure) and "mq:5672/" in str(failure)
    assert str(pickle.loads(pickle.dumps(failure))) == str(failure)


@pytest.mark.parametrize("words", OUTAGES)
def test_what_may_pass_is_an_outage(words: str) -> None:
    failure = failure_of(OUTAGES[words], "consuming queue 'q'", "mq:5672/")
    assert isinstance(failure, RMQOutage) and words in str(failure)


@given(st.lists(st.integers(0, 4)), st.lists(st.tuples(st.integers(1, 12), st.booleans())))
def test_a_message_is_confirmed_once_by_itself_or_by_a_later_one(sizes: list[int], answers: list) -> None:
    messages, expected = Unconfirmed(), {}
    for start, size in enumerate(sizes):
        batch = [f"{start}-{number}" for number in range(size)]
        messages.add(batch)
        expected.update(enumerate(batch, max(expected, default=0) + 1))
    for number, is_multiple in answers:
        done = [at for at in expected if at == number or (is_multiple and at < number)]
        assert messages.confirm(number, is_multiple) == len(done)
        for at in done:
            del expected[at]
    assert messages.all() == list(expected.values()) and len(messages) == len(expected)


def test_a_config_has_pyflinks_settings_and_shows_no_password() -> None:
    builder = RMQConnectionConfig.Builder().set_host("mq").set_port(5671).set_virtual_host("shop").set_user_name("me")
    builder.set_password("s3cret").set_topology_recovery_enabled(False).set_requested_heartbeat(7)
    builder.set_requested_frame_max(8_192).set_requested_channel_max(3).set_network_recovery_interval(10)
    config = builder.set_connection_timeout(2_500).set_automatic_recovery(False).set_prefetch_count(17).build()
    assert (config.get_host(), config.get_port(), config.get_virtual_host(), config.get_user_name()) == (
        "mq", 5671, "shop", "me",
    )  # fmt: skip
    assert (config.get_password(), config.get_uri(), config.get_network_recovery_interval()) == ("s3cret", "", 10)
    assert not config.is_automatic_recovery() and not config.is_topology_recovery() and config.retries_ms == 0
    assert (config.get_connection_timeout(), config.get_requested_channel_max()) == (2_500, 3)
    found = config.parameters("test")
    assert (found.heartbeat, found.frame_max, found.channel_max, found.socket_timeout) == (7, 8_192, 3, 2.5)
    assert config.get_requested_frame_max() == 8_192 and config.get_requested_heartbeat() == 7
    source = RMQSource(config, "q", True, SimpleStringSchema())
    shown = f"{config!r} {source!r} {source._reading!r} {RMQSink(config, 'q', SimpleStringSchema())!r}"
    assert "mq:5671/shop" in shown and "s3cret" not in shown
    assert source.max_parallelism == 1 and RMQSource(config, "q", False, SimpleStringSchema()).max_parallelism is None


@pytest.mark.parametrize(
    "build, problem",
    [
        (lambda builder: builder.build(), r"has no host; call set_host\(...\) or set_uri"),
        (lambda builder: builder.set_host("a").build(), "has no user name; call set_user_name"),
        (lambda builder: builder.set_prefetch_count(65_536), r"in \[0, 65535\], found 65536"),
        (lambda builder: builder.set_uri("amqp://me:s3cret@host:port/x"), "malformed; write amqp://user"),
        (
            lambda builder: RMQSink(builder.set_uri("amqp://h").build(), "", SimpleStringSchema()),
            "neither queue nor publish_options",
        ),
    ],
)
def test_wrong_settings_name_the_remedy(build, problem: str) -> None:
    with pytest.raises(RMQError, match=problem) as raised:
        build(RMQConnectionConfig.Builder())
    assert "s3cret" not in str(raised.value)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    config = RMQConnectionConfig.Builder().set_host("a").set_user_name("b").set_password("c").build()
    monkeypatch.setitem(sys.modules, "pika", None)
    with pytest.raises(RMQError, match=r"pip install 'rayflink\[rabbitmq\]'"):
        config.parameters("test")
