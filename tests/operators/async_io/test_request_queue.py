"""Requests under way leave in their order, or as they are answered but never across an event."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rayflink.common.records.batches import Watermark
from rayflink.operators.async_io.request_queue import InFlight, Request


def shown(taken):
    return [entry.given if isinstance(entry, Request) else entry for entry in taken]


def test_answers_leave_in_the_order_of_the_requests():
    line = InFlight(ordered=True)
    first, second = line.ask("a"), line.ask("b")
    line.divide(Watermark(5))
    line.answered(second, "B")
    assert shown(line.taken()) == []
    line.answered(first, "A")
    assert shown(line.taken()) == ["a", "b", Watermark(5)]
    assert len(line) == line.requests == 0


def test_unordered_answers_leave_as_they_come_but_not_across_an_event():
    line = InFlight(ordered=False)
    a, b = line.ask("a"), line.ask("b")
    line.divide(Watermark(5))
    c = line.ask("c")
    line.answered(c, "C")
    line.answered(b, "B")
    assert shown(line.taken()) == ["b"]
    assert line.waiting() == ["a", Watermark(5), "c"]
    line.answered(a, "A")
    assert shown(line.taken()) == ["a", Watermark(5), "c"]


@given(st.booleans(), st.lists(st.sampled_from("re"), max_size=12), st.randoms(use_true_random=False))
def test_everything_leaves_once_and_stays_on_its_side_of_every_event(ordered, arrivals, draw):
    line, open_requests, left, came = InFlight(ordered), [], [], []
    for number, kind in enumerate(arrivals):
        if kind == "e":
            line.divide(Watermark(number))
        else:
            open_requests.append(line.ask(number))
        came.append(Watermark(number) if kind == "e" else number)
        while open_requests and draw.random() < 0.5:
            line.answered(open_requests.pop(draw.randrange(len(open_requests))), None)
            left += shown(line.taken())
        left += shown(line.taken())
        assert len(left) + len(line.waiting()) == len(came)
    draw.shuffle(open_requests)
    for request in open_requests:
        line.answered(request, None)
        left += shown(line.taken())
    left += shown(line.taken())
    assert len(line) == 0 and line.waiting() == []
    if ordered:
        assert left == came
    assert segments(left) == segments(came)


def segments(entries):
    """The requests between two events, without their order."""
    found = [set()]
    for entry in entries:
        if isinstance(entry, Watermark):
            found += [entry, set()]
        else:
            found[-1].add(entry)
    return found
