"""Requests under way leave in their order, or as they are answered but never across an event."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rayflink.common.records.batches import Watermark
from rayflink.operators.async_io.request_queue import Request, RequestQueue, RequestQueueStatistics


def shown(taken):
    return [entry.payload if isinstance(entry, Request) else entry for entry in taken]


def test_answers_leave_in_the_order_of_the_requests():
    queue = RequestQueue(ordered=True)
    first, second = queue.add("a"), queue.add("b")
    queue.add_event(Watermark(5))
    queue.complete(second, "B")
    assert shown(queue.pop_ready()) == []
    queue.complete(first, "A")
    assert shown(queue.pop_ready()) == ["a", "b", Watermark(5)]
    assert len(queue) == queue.requests == 0


def test_unordered_answers_leave_as_they_come_but_not_across_an_event():
    queue = RequestQueue(ordered=False)
    a, b = queue.add("a"), queue.add("b")
    queue.add_event(Watermark(5))
    c = queue.add("c")
    queue.complete(c, "C")
    queue.complete(b, "B")
    assert queue.statistics() == RequestQueueStatistics(requests=3, answered=2, events=1)
    assert shown(queue.pop_ready()) == ["b"]
    assert queue.statistics() == RequestQueueStatistics(requests=2, answered=1, events=1)
    assert queue.waiting() == ["a", Watermark(5), "c"]
    queue.complete(a, "A")
    assert shown(queue.pop_ready()) == ["a", Watermark(5), "c"]


@given(st.booleans(), st.lists(st.sampled_from("re"), max_size=12), st.randoms(use_true_random=False))
def test_everything_leaves_once_and_stays_on_its_side_of_every_event(ordered, arrivals, draw):
    queue, open_requests, left, came = RequestQueue(ordered), [], [], []
    for number, kind in enumerate(arrivals):
        if kind == "e":
            queue.add_event(Watermark(number))
        else:
            open_requests.append(queue.add(number))
        came.append(Watermark(number) if kind == "e" else number)
        while open_requests and draw.random() < 0.5:
            queue.complete(open_requests.pop(draw.randrange(len(open_requests))), None)
            left += shown(queue.pop_ready())
        left += shown(queue.pop_ready())
        assert len(left) + len(queue.waiting()) == len(came)
    draw.shuffle(open_requests)
    for request in open_requests:
        queue.complete(request, None)
        left += shown(queue.pop_ready())
    left += shown(queue.pop_ready())
    assert len(queue) == 0 and queue.waiting() == []
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
