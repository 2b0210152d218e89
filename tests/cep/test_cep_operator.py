"""The operator of pattern matching, under every hardship."""

from __future__ import annotations

from functools import partial
from operator import itemgetter

from rayflink.cep.functions import PatternProcessFunction, TimedOutPartialMatchHandler
from rayflink.cep.pattern import Pattern
from rayflink.cep.runtime.cep_operator import CepOperator, MatchOptions
from rayflink.common.output_tag import OutputTag
from rayflink.testing import rec, side, verify, wm

TIMED_OUT = OutputTag("timed out")
_key = itemgetter(0)


def _kind(kind):
    return lambda event: event[1] == kind


class Words(PatternProcessFunction, TimedOutPartialMatchHandler):
    """Gives each match as the numbers of its events."""

    def process_match(self, match, ctx):
        yield "".join(str(event[2]) for events in match.values() for event in events)

    def process_timed_out_match(self, match, ctx):
        yield TIMED_OUT, "".join(str(event[2]) for events in match.values() for event in events)


def _matches(pattern, **options):
    return partial(CepOperator, _key, pattern, Words(), MatchOptions(**options))


def _a_then_b():
    return Pattern.begin("a").where(_kind("a")).followed_by("b").where(_kind("b"))


def test_matches_are_found_by_key_in_the_order_of_time():
    verify(
        _matches(_a_then_b()),
        given=[
            rec(("x", "b", 3), 30), rec(("x", "a", 1), 10), rec(("y", "b", 2), 20), rec(("y", "a", 4), 40),
            wm(35), rec(("y", "b", 5), 50), wm(60),
        ],
        then=[rec("13", 30), wm(35), rec("45", 50), wm(60)],
        key=_key,
    )  # fmt: skip


def test_partial_matches_time_out():
    verify(
        _matches(_a_then_b().within(20)),
        given=[rec(("x", "a", 1), 10), rec(("x", "a", 2), 15), rec(("x", "b", 3), 32), wm(60)],
        then=[side("timed out", "1", 30), rec("23", 32), wm(60)],
        key=_key,
    )
