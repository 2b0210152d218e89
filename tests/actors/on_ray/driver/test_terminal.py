"""Printed text is complete, in order and bounded on its way to the driver."""

from __future__ import annotations

import io
import sys
import threading

import pytest

from rayflink.actors.on_ray.driver import terminal
from rayflink.actors.on_ray.driver.terminal import Printed, PrintedStream, Terminal


class Calls:
    """Calls that end when told."""

    def __init__(self) -> None:
        self.sent: list[list[terminal.Text]] = []
        self.ended = threading.Event()

    def send(self, texts: list[terminal.Text]):
        self.sent.append(texts)
        return lambda timeout_s: self.ended.wait(timeout_s)


def test_text_gathers_while_a_call_is_under_way():
    calls = Calls()
    printed = Printed(calls.send)
    for text in "abc":
        printed.put(False, text)
        printed.send()
    assert calls.sent == [[(False, "a")]]
    calls.ended.set()
    printed.send()
    assert calls.sent == [[(False, "a")], [(False, "b"), (False, "c")]]


def test_a_final_send_returns_only_when_everything_has_arrived():
    calls = Calls()
    printed = Printed(calls.send)
    printed.put(True, "a")
    printed.send()
    printed.put(True, "b")
    sender = threading.Thread(target=printed.send, kwargs={"wait": True})
    sender.start()
    sender.join(0.05)
    assert sender.is_alive()
    calls.ended.set()
    sender.join(5)
    assert calls.sent == [[(True, "a")], [(True, "b")]] and not printed.pending


def test_a_task_that_prints_too_much_sends_before_it_goes_on(monkeypatch):
    monkeypatch.setattr(terminal, "MAX_TASK_CHARS", 10)
    calls = Calls()
    calls.ended.set()
    printed = Printed(calls.send)
    stream = PrintedStream(printed, to_stderr=False)
    for number in range(8):
        print(f"line {number}", file=stream)
    printed.send(wait=True)
    sent = [text for texts in calls.sent for _, text in texts]
    assert "".join(sent) == "".join(f"line {number}\n" for number in range(8))
    assert all(sum(len(text) for _, text in texts) <= 20 for texts in calls.sent)


def test_a_printed_stream_takes_bytes_and_behaves_like_standard_output():
    calls = Calls()
    calls.ended.set()
    printed = Printed(calls.send)
    stream = PrintedStream(printed, to_stderr=False)
    for part in (b"a\xc3", b"\xa9", b"\xff\n"):
        assert stream.buffer.write(part) == len(part)
    stream.buffer.flush()
    printed.send(wait=True)
    assert "".join(text for texts in calls.sent for _, text in texts) == "a\xe9\\xff\n"
    assert (stream.encoding, stream.errors, stream.isatty()) == ("utf-8", "backslashreplace", False)
    with pytest.raises(io.UnsupportedOperation, match="no file number"):
        stream.fileno()


def test_a_driver_that_does_not_read_holds_the_tasks_back(monkeypatch):
    monkeypatch.setattr(terminal, "MAX_HELD_CHARS", 3)
    held = Terminal(now=lambda: 0.0)
    held.put([(False, "abcd")])
    writer = threading.Thread(target=held.put, args=([(False, "e")],))
    writer.start()
    writer.join(0.05)
    assert writer.is_alive()
    assert held.take(0) == ((False, "abcd"),)
    writer.join(5)
    assert held.take(0) == ((False, "e"),) and held.is_empty


def test_without_a_driver_text_goes_to_the_log_of_the_process(capsys):
    now = [0.0]
    held = Terminal(now=lambda: now[0])
    now[0] = terminal.READER_LOST_S + 1
    held.put([(False, "out\n"), (True, "err\n")])
    assert held.is_empty
    assert capsys.readouterr() == ("out\n", "err\n")


@pytest.mark.parametrize(("encoding", "shown"), [("ascii", b"\\xe91 \\ud800"), ("utf-8", b"\xc3\xa91 \\ud800")])
def test_what_a_stream_cannot_encode_is_escaped_and_no_error(monkeypatch, encoding, shown):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
    now = [0.0]
    held = Terminal(now=lambda: now[0])
    now[0] = terminal.READER_LOST_S + 1
    held.put([(False, "\xe91 \ud800")])
    assert raw.getvalue() == shown


@pytest.mark.parametrize("closed", [False, True])
def test_a_reader_is_answered_in_time(closed):
    held = Terminal()
    if closed:
        held.close()
    assert held.take(60 if closed else 0.01) == ()
