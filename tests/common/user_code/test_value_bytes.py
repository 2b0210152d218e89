"""Values as bytes: classes by name where a name finds them, else by value, else refused with the way to the value."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from pickle import PickleBuffer
from typing import Any

import numpy
import pytest

from rayflink.common.errors import NotSerializable
from rayflink.common.records.batches import RowBatch
from rayflink.common.user_code.value_bytes import from_bytes, to_bytes, to_pieces
from rayflink.operators.external_sort import ExternalSort
from rayflink.operators.feedback import FeedbackQueue


class Named:
    pass


class Held:
    def __init__(self) -> None:
        self.lock = threading.Lock()


def test_a_class_with_a_name_is_the_same_class_and_one_without_goes_by_value() -> None:
    class Local:
        def __init__(self, number: int) -> None:
            self.number = number

    named, local, function = from_bytes(to_bytes([Named, Local(3), lambda n: n + 1]))
    assert named is Named
    assert local.number == 3 and function(1) == 2
    assert function.__code__.co_filename == type(local).__init__.__code__.co_filename == __file__, "tracebacks need it"


def into_a_file(value: Any) -> bytes:
    FeedbackQueue(0).put(RowBatch(value))
    return b""


def into_a_sort(value: Any) -> bytes:
    ExternalSort(None, Path("unused")).add([b"", b""], [0, 1], value)
    return b""


@pytest.mark.parametrize("write", [to_bytes, to_pieces, into_a_file, into_a_sort])
def test_what_cannot_be_pickled_is_refused_with_the_way_there(write: Callable[[Any], bytes]) -> None:
    with pytest.raises(
        NotSerializable, match=r"serialize a (list|tuple): (.*-> )?\[1\] -> Held.lock, a lock: .*cannot pickle"
    ):
        write([0, Held()])


def test_buffers_that_cannot_change_are_views_and_others_are_copies() -> None:
    blob, array, empty = PickleBuffer(b"blob"), numpy.arange(100), PickleBuffer(b"")
    data = b"".join(to_pieces([blob, array, empty, "plain"]))
    view, same, nothing, plain = from_bytes(data)
    assert (bytes(view), same.tolist(), bytes(nothing), plain) == (b"blob", array.tolist(), b"", "plain")
    assert view.obj is data
    same[0] = 7  # the program may change it, as after `to_bytes`


def test_a_value_without_buffers_is_written_as_ever() -> None:
    assert to_pieces((1, ["a"])) == [to_bytes((1, ["a"]))]
