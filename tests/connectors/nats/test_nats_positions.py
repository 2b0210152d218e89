"""The decisions about positions in a stream and removed messages, about answers and settings, without a server."""

from __future__ import annotations

import pickle

import nats.errors
import pytest

from rayflink.common import SimpleStringSchema
from rayflink.connectors.nats.nats_connection import api_error
from rayflink.connectors.nats.nats_errors import MissingStreamMessages, NatsError, NatsOutage, NatsRefusal, failure_of
from rayflink.connectors.nats.nats_fetcher import NatsRun
from rayflink.connectors.nats.nats_messages import MessageWriter, NatsMessage
from rayflink.connectors.nats.nats_positions import NatsSplit, NatsStreamPosition, RemovalWatch, StreamFacts
from rayflink.connectors.nats.nats_server import NatsServer, NatsTls
from rayflink.datastream.connectors.nats import NatsSink, NatsSource

FACTS = StreamFacts("today", first=5, last=9)
AT = NatsStreamPosition


@pytest.mark.parametrize(
    ("position", "start", "stop"),
    [
        (AT.earliest(), 4, 4),
        (AT.latest(), 9, 9),
        (AT.last(), 7, 9),
        (AT.from_sequence(2), 4, 2),
        (AT.from_sequence(8), 7, 8),
        (AT.from_sequence(10), 9, 10),
        (AT.from_timestamp(1), 7, 7),
    ],
)
def test_a_position_is_a_number_of_the_stream(position, start, stop) -> None:
    assert (FACTS.start(position, 7), FACTS.stop(position, 7)) == (start, stop)


def test_positions_that_no_stream_has_are_refused() -> None:
    with pytest.raises(NatsError, match="the stream ends at sequence 9, and 11 is wanted first; start at 10"):
        FACTS.start(AT.from_sequence(11), 0)
    with pytest.raises(NatsError, match="found sequence 0, wanted 1 or more"):
        AT.from_sequence(0)


def test_an_empty_stream_begins_behind_its_last_message() -> None:
    answer = {"created": "t", "config": {"max_msgs_per_subject": 1, "retention": "interest"},
              "state": {"messages": 0, "first_seq": 0, "last_seq": 0}}  # fmt: skip
    assert StreamFacts.of_answer(answer) == StreamFacts("t", 1, 0, "interest", True)
    answer["state"] = {"messages": 0, "first_seq": 8, "last_seq": 9}
    assert StreamFacts.of_answer(answer).first == 10


def test_messages_that_were_removed_before_their_delivery_are_missing() -> None:
    watch = RemovalWatch(10)
    watch.deliver([11, 12, 13])
    assert not watch.is_doubtful and watch.missing(StreamFacts(first=14)) == 0
    watch.deliver([20, 21])
    assert watch.is_doubtful and watch.missing(StreamFacts(first=14)) == 0, "those between were deleted one by one"
    watch.deliver([30])
    assert watch.missing(StreamFacts(first=35)) == 12, "22 to 29 before it and 31 to 34 behind it"
    assert watch.missing(StreamFacts(first=35)) == 0, "they are counted once"
    assert watch.missing(StreamFacts(first=40, keeps_last_of_subjects=True)) == 0, "newer ones are in their places"


def test_messages_of_other_subjects_are_not_missing() -> None:
    watch = RemovalWatch(10, is_filtered=True)
    watch.deliver([12])
    assert watch.missing(StreamFacts(first=9)) == 0
    watch.cover(50)
    assert watch.missing(StreamFacts(first=51)) == 0
    assert watch.missing(StreamFacts(first=53)) == 2


def test_another_stream_of_the_name_is_noticed() -> None:
    split = NatsSplit("S", "", "today", 9)
    split.check(FACTS, "h:1")
    with pytest.raises(MissingStreamMessages, match="another one: it was created at today .*, and at tomorrow now"):
        split.check(StreamFacts("tomorrow", 1, 20), "h:1")
    with pytest.raises(MissingStreamMessages, match="it ends at 8, and was read up to 9: the server has lost its end"):
        split.check(StreamFacts("today", 1, 8), "h:1")


def test_a_run_knows_the_position_behind_each_message() -> None:
    split = NatsSplit("S", "a", "today", 3, 20)
    run = NatsRun(split, [NatsMessage("a", b"x", {}, 5, 1_000), NatsMessage("a", b"y", {}, 9, 2_000)], 12)
    assert [run.split_after(count).covered for count in range(3)] == [3, 5, 12]
    assert run.timestamps(0, 2) == [1_000, 2_000] and run.place_of(1) == "stream 'S', sequence 9"
    assert not split.is_finished and NatsSplit("S", covered=20, stopping=20).is_finished


def test_answers_of_the_server_are_outages_or_refusals() -> None:
    def answer(code: int, err_code: int, description: str) -> NatsError:
        error = api_error({"code": code, "err_code": err_code, "description": description})
        return failure_of(error, "reading stream 'S'", "h:1")

    assert "has no such stream; create the stream" in str(answer(404, 10059, "stream not found"))
    assert isinstance(answer(404, 10059, "stream not found"), NatsRefusal)
    assert isinstance(answer(503, 10008, "system temporarily unavailable"), NatsOutage)
    assert "is full" in str(answer(503, 10077, "maximum messages exceeded"))
    assert isinstance(answer(400, 10054, "message size exceeds maximum allowed"), NatsRefusal)
    denied = failure_of(Exception('nats: permissions violation for publish to "x"'), "publishing", "h:1")
    assert isinstance(denied, NatsRefusal) and "refuses access" in str(denied)
    for error in (ConnectionResetError("reset"), nats.errors.Error("nats: maximum connections exceeded")):
        assert isinstance(failure_of(error, "publishing", "h:1"), NatsOutage)


def test_records_are_messages_with_ids_and_headers() -> None:
    record = NatsMessage("a.b", b"x", {"k": "v"})
    assert MessageWriter().message(record) == ("a.b", b"x", {"k": "v"})
    writer = MessageWriter(
        lambda word: f"w.{word}", SimpleStringSchema(), lambda word: f"id-{word}", lambda _: {"h": "1"}
    )
    assert writer.message("tea") == ("w.tea", b"tea", {"h": "1", "Nats-Msg-Id": "id-tea"})
    assert MessageWriter("s").message("é") == ("s", "é".encode(), None)
    for writer, found, message in ((MessageWriter("s"), 1, "of type int, wanted bytes, a str or a NatsMessage"),
                                   (MessageWriter(), b"x", "'' is no subject"),
                                   (MessageWriter(lambda _: "a.*"), b"x", "without \\* and >")):  # fmt: skip
        with pytest.raises(NatsError, match=message):
            writer.message(found)


def test_settings_are_checked_and_shown_without_secrets() -> None:
    builder = NatsSource.builder().set_servers("nats://me:s3cret@db.example:7000", "other")
    built = builder.set_stream("S").set_token("s3cret").set_user("me", "s3cret").set_nkey_seed("s3cret").build()
    assert repr(built) == "NatsSource(db.example:7000, other:4222, stream='S')"
    assert "s3cret" not in repr(pickle.loads(pickle.dumps(built))._settings)
    for call, message in (
        (lambda: NatsSource.builder().set_servers("http://h"), "malformed; write nats://host:4222"),
        (lambda: NatsSource.builder().set_stream("a.b"), "is no name of a stream"),
        (lambda: NatsSource.builder().set_subjects("a.*", "*.b"), "both 'a.\\*' and '\\*.b'"),
        (lambda: NatsSource.builder().set_stream("S").build(), "no server of NATS is named"),
        (lambda: NatsSource.builder().set_servers("h").build(), "the source has no stream"),
        (lambda: NatsSink.builder().set_subject("a.>"), "no subject to publish to"),
        (lambda: NatsServer(("h",), tls=NatsTls("/no/ca.pem")).options(), "cannot be used for TLS"),
    ):
        with pytest.raises(NatsError, match=message):
            call()
