"""What the threads of one process print."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from rayflink.actors.on_ray.shared_output import MOST_PARTS, SharedStream


@pytest.fixture
def texts() -> list[tuple[bool, str]]:
    return []


@pytest.fixture
def stream(texts: list[tuple[bool, str]]) -> SharedStream:
    printed: Any = SimpleNamespace(put=lambda to_stderr, text: texts.append((to_stderr, text)))
    return SharedStream(printed, True)


def elsewhere(act: Callable[[], object]) -> None:
    thread = threading.Thread(target=act)
    thread.start()
    thread.join()


def test_a_line_that_a_thread_has_begun_is_not_torn_by_another(stream: SharedStream, texts: Any) -> None:
    stream.write("mine, ")
    elsewhere(lambda: print("another's", 7, file=stream))
    print("whole", file=stream)
    assert texts == [(True, "another's 7\n"), (True, "mine, whole\n")]


def test_what_follows_the_last_line_waits_for_a_flush(stream: SharedStream, texts: Any) -> None:
    stream.write("a\nb\nc")
    assert texts == [(True, "a\nb\n")]
    stream.flush()
    stream.flush()
    assert texts == [(True, "a\nb\n"), (True, "c")]


def test_a_flush_gives_out_what_ended_threads_began_and_not_what_others_are_writing(
    stream: SharedStream, texts: Any
) -> None:
    begun, flushed = threading.Event(), threading.Event()

    def write() -> None:
        stream.write("still ")
        begun.set()
        flushed.wait(10)
        stream.write("here\n")

    writer = threading.Thread(target=write)
    writer.start()
    begun.wait(10)
    elsewhere(lambda: stream.write("from a thread that has ended"))
    stream.write("mine")
    stream.flush()
    assert sorted(texts) == [(True, "from a thread that has ended"), (True, "mine")]
    flushed.set()
    writer.join()
    assert texts[-1] == (True, "still here\n")


def test_a_line_without_end_does_not_grow_for_ever(stream: SharedStream, texts: Any) -> None:
    for _ in range(MOST_PARTS):
        stream.write(".")
    stream.write("x" * 10_000)
    assert texts == [(True, "." * MOST_PARTS), (True, "x" * 10_000)]


def test_a_character_written_in_two_parts_is_not_mixed_with_another_threads_bytes(
    stream: SharedStream, texts: Any
) -> None:
    first, last = "\u00e9".encode()[:1], "\u00e9".encode()[1:]
    stream.buffer.write(b"mine " + first)
    elsewhere(lambda: stream.buffer.write("an \u00e4\n".encode()))
    stream.buffer.write(last + b"\n")
    assert texts == [(True, "an \u00e4\n"), (True, "mine \u00e9\n")]


def test_a_character_that_a_thread_left_unfinished_is_not_completed_by_another(
    stream: SharedStream, texts: Any
) -> None:
    elsewhere(lambda: stream.buffer.write(b"\xc3"))
    elsewhere(lambda: stream.buffer.write(b"\xa9 other\n"))
    assert texts == [(True, "\\xa9 other\n")]
