"""Spans: what took place in a job from one moment to another, in a tree, with ids that are computed.

Ids depend on the job and on what the trace is of, and on nothing else. So whoever knows the number of a checkpoint
knows its trace.

Source: apache/flink Span; OpenTelemetry specification, "Trace API".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeAlias

__all__ = ["Attribute", "IdentifiedSpan", "Span", "Trace", "trace_id"]

Attribute: TypeAlias = "str | int | float | bool"
"""A value that describes a span."""


@dataclass(frozen=True)
class Span:
    """Something that took time.

    Args:
        name: Flink's, where Flink has such a span.
        start_ms: epoch milliseconds.
        end_ms: likewise, not before it.
        attributes: name -> value.
        children: that took place within it, in order.
        failure: why it failed; "": it did not.
    """

    name: str
    start_ms: int
    end_ms: int
    attributes: Mapping[str, Attribute]
    children: tuple[Span, ...] = ()
    failure: str = ""


@dataclass(frozen=True)
class IdentifiedSpan:
    """A span with its ids, as hex digits.

    Args:
        span: with its children, which are also yielded.
        trace_id: 32 digits, that of all spans of a trace.
        span_id: 16 digits.
        parent_id: 16 digits; "": it is the root.
    """

    span: Span
    trace_id: str
    span_id: str
    parent_id: str


@dataclass(frozen=True)
class Trace:
    """A tree of spans.

    Args:
        scope: the class that reports it in Flink, else that which does here.
        job_id: 32 hex digits.
        subject: distinguishes it from the other traces of the job: "checkpoint/7".
        root: of the tree.
    """

    scope: str
    job_id: str
    subject: str
    root: Span

    def spans(self) -> Iterator[IdentifiedSpan]:
        """Yield all spans, each before its children.

        >>> trace = Trace("s", "ab", "checkpoint/7", Span("C", 0, 2, {}, (Span("A", 0, 1, {}), Span("A", 1, 2, {}))))
        >>> root, first, second = trace.spans()
        >>> root.trace_id == trace_id("ab", "checkpoint/7"), root.parent_id, first.parent_id == root.span_id
        (True, '', True)
        >>> len({root.span_id, first.span_id, second.span_id})
        3
        """
        yield from _identified(self.root, trace_id(self.job_id, self.subject), "", "")


def trace_id(job_id: str, subject: str) -> str:
    """Return the id of a trace: 32 hex digits.

    >>> trace_id("ab", "checkpoint/7")
    '7acd0870a0c6f7c6ec15797e0fadb8fd'
    """
    return blake2b(f"{job_id}/{subject}".encode(), digest_size=16).hexdigest()


def _identified(span: Span, trace: str, path: str, parent: str) -> Iterator[IdentifiedSpan]:
    own = blake2b(f"{trace}/{path}".encode(), digest_size=8).hexdigest()
    yield IdentifiedSpan(span, trace, own, parent)
    for index, child in enumerate(span.children):
        yield from _identified(child, trace, f"{path}/{index}", own)
