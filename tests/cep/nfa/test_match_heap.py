"""Matches that wait to be emitted, the earliest first."""

from __future__ import annotations

import random

from rayflink.cep.nfa.match_heap import drop, pop, push
from rayflink.cep.nfa.partial_matches import START, PartialMatch


def test_what_is_left_after_some_were_dropped_comes_in_the_order_of_its_first_events() -> None:
    for seed in range(200):
        numbers = random.Random(seed).choices(range(20), k=15)
        heap: list[PartialMatch] = []
        for number in numbers:
            push(heap, (0, None, 0, number, 0))
        drop(heap, lambda match: match[START] % 3 == 0)
        wanted = sorted(number for number in numbers if number % 3)
        assert [pop(heap)[START] for _ in wanted] == wanted and not heap, seed
