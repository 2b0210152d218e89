"""Messages between two tasks, as values."""

from __future__ import annotations

import pickle

import pytest

from rayflink.actors.exchange.frames import (
    AddCredit,
    BufferResponse,
    CancelPartitionRequest,
    CloseRequest,
    Envelope,
    ErrorResponse,
    Frame,
    MessageType,
    PartitionId,
    PartitionRequest,
    TaskAddress,
    TaskEventRequest,
    WindowUpdate,
)
from rayflink.common.records.batches import EndOfPartition, Watermark

PARTITION = PartitionId("a" * 32, 3)
FRAMES: list[Frame] = [
    BufferResponse(1, 2, 3, b"body"),
    ErrorResponse(1, "cause"),
    PartitionRequest(PARTITION, 4, 1, 2),
    TaskEventRequest(PARTITION, "event", 1),
    CancelPartitionRequest(1),
    CloseRequest(),
    AddCredit(1, 2),
    WindowUpdate(1, 20, 10, 2),
]


@pytest.mark.spec("O01", "X55")
def test_messages_carry_the_numbers_of_flinks_protocol() -> None:
    assert [frame.type for frame in FRAMES] == [0, 1, 2, 3, 4, 5, 6, 10]
    assert [kind.value for kind in MessageType] == [0, 1, 2, 3, 4, 5, 6, 10]


@pytest.mark.spec("O02")
def test_an_envelope_comes_out_of_a_pickle_as_it_went_in() -> None:
    envelope = Envelope(TaskAddress("a"), TaskAddress("b"), 7, (*FRAMES, BufferResponse(0, 0, 0, None, Watermark(5))))
    copy = pickle.loads(pickle.dumps(envelope))
    assert copy == envelope
    assert [frame.type for frame in copy.frames[:8]] == list(MessageType)


def test_the_size_of_an_envelope_is_that_of_its_data() -> None:
    frames = (BufferResponse(0, 0, 0, b"12345"), AddCredit(1, 1), BufferResponse(0, 1, 0, None, EndOfPartition()))
    assert Envelope(TaskAddress("a"), TaskAddress("b"), 0, frames).body_bytes == 5
