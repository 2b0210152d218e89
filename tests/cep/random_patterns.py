"""Random patterns and streams, in the form of `described_patterns`."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.cep.described_patterns import Described

_LETTERS = "abcd"
_STEPS = "ABCDEFGH"


class RandomPatterns:
    """Draws pairs of a pattern and a stream.

    Args:
        random: what is drawn from; one of hypothesis finds the simplest pair that fails.
        is_plain: leaves out groups, windows between two events, `until`, conditions on the partial match, and skip
            strategies; steps that must not occur come behind those that occur once, and have letters of their own.
    """

    def __init__(self, random: Random, is_plain: bool = False) -> None:
        self._random, self._is_plain = random, is_plain
        self._names: list[str] = []
        self._top: list[str] = []

    def pair(self) -> Described:
        self._names = []
        steps = self._sequence(self._random.choice((1, 2, 2, 3, 3, 4)), 0)
        self._top = [step["name"] for step in steps if "name" in step]
        if steps[-1]["how"] == "not_followed_by" and (self._is_plain or self._chance(0.95)):
            steps[-1]["calls"].append(["within", self._random.randint(2, 8)])
        elif self._chance(0.3):
            self._random.choice(steps)["calls"].append(["within", self._random.randint(3, 12)])
        return {"steps": steps, "skip": self._skip(), "events": self._events(), "rest": 15}

    def _chance(self, share: float) -> bool:
        return self._random.randint(0, 999) < share * 1000

    def _sequence(self, count: int, depth: int) -> list[Described]:
        steps: list[Described] = []
        for place in range(count):
            steps.append(self._step(steps, place == count - 1, depth))
        return steps

    def _step(self, before: list[Described], is_last: bool, depth: int) -> Described:
        how = "begin"
        if before:
            may_be_negative = not _has(before[-1], "optional") and not (self._is_plain and _repeats(before[-1]))
            negative = may_be_negative and self._chance(0.25 if depth == 0 else 0.1)
            positive = ("next", "followed_by", "followed_by", "followed_by_any")
            may_be_next = not (self._is_plain and before[-1]["how"] == "not_followed_by")
            negatives = ("not_next", "not_followed_by")[1 - may_be_next :]
            how = self._random.choice(negatives if negative else positive)
        if how.startswith("not_"):
            step: Described = {"how": how, "name": self._name(), "calls": []}
            own = [["where", ["letter", self._random.choice("xy")]]]
            step["calls"] += own if self._is_plain else self._conditions(step["name"])
            return step
        if depth < 2 and not self._is_plain and self._chance(0.15):
            step = {"how": how, "group": self._sequence(self._random.randint(1, 2), depth + 1), "calls": []}
        else:
            step = {"how": how, "name": self._name(), "calls": []}
            step["calls"] += self._conditions(step["name"])
        follows_greedy = bool(before) and _has(before[-1], "greedy")
        step["calls"] += self._quantifier("group" in step, follows_greedy)
        if not _has(step, "zero") and not follows_greedy and self._chance(0.2):
            step["calls"].append(["optional"])
        if not self._is_plain and self._chance(0.08):
            step["calls"].append(["within_previous", self._random.randint(1, 5)])
        return step

    def _name(self) -> str:
        self._names.append(_STEPS[len(self._names)] if len(self._names) < len(_STEPS) else f"S{len(self._names)}")
        return self._names[-1]

    def _conditions(self, name: str) -> list[list[Any]]:
        letters = "".join(sorted(self._random.sample(_LETTERS, self._random.choice((1, 1, 1, 2, 3)))))
        conditions: list[list[Any]] = [["where", ["letter", letters]]]
        if self._chance(0.15):
            conditions.append(["or_", ["letter", self._random.choice(_LETTERS)]])
        if self._chance(0.15):
            conditions.append(["where", ["least", self._random.randint(1, 3)]])
        if not self._is_plain and self._chance(0.15):
            step = self._random.choice(self._names)
            test = ["rising", step] if self._chance(0.6) else ["fewer", step, self._random.randint(1, 3)]
            conditions.append([self._random.choice(("where", "where", "or_")), test])
        if not self._is_plain and self._chance(0.03):
            conditions = []
        return conditions

    def _quantifier(self, is_group: bool, follows_greedy: bool) -> list[list[Any]]:
        if self._chance(0.5):
            return []
        window = self._random.randint(1, 4) if not self._is_plain and self._chance(0.1) else None
        least = self._random.randint(1, 3)
        calls: list[list[Any]] = [
            self._random.choice(
                (
                    ["one_or_more", window],
                    ["times_or_more", least, window],
                    ["times", least, window],
                    ["times_range", least, least + self._random.randint(0, 2), window],
                    ["times_range", int(self._is_plain and follows_greedy), self._random.randint(1, 3), window],
                )
            )
        ]
        inner = self._random.choice(("", "", "consecutive", "allow_combinations"))
        if inner:
            calls.append([inner])
        if not is_group and inner != "allow_combinations" and self._chance(0.35):
            calls.append(["greedy"])
        loops = calls[0][0] in ("one_or_more", "times_or_more")
        if loops and not self._is_plain and self._chance(0.25):
            until = ["letter", self._random.choice(_LETTERS)] if self._chance(0.7) else ["least", 3]
            if self._chance(0.1):
                until = ["rising", self._random.choice(self._names)]
            calls.append(["until", until])
        return calls

    def _skip(self) -> list[Any]:
        if self._is_plain:
            return ["no_skip"]
        kind = self._random.choice(
            ("no_skip", "no_skip", "no_skip", "skip_to_next", "skip_past_last_event", "skip_to_first", "skip_to_last")
        )
        if kind in ("skip_to_first", "skip_to_last"):
            name = self._random.choice(self._names if self._chance(0.03) else self._top or self._names)
            return [kind, name, True] if self._chance(0.08) else [kind, name]
        return [kind]

    def _events(self) -> str:
        time, events = 0, []
        letters = _LETTERS[: self._random.randint(2, 4)] + ("xy" if self._is_plain and self._chance(0.5) else "")
        for _ in range(self._random.randint(3, 11)):
            events.append(f"{self._random.choice(letters)}{self._random.randint(0, 4)}@{time}")
            time += self._random.choice((0, 1, 1, 1, 2, 3))
        return " ".join(events)


def _has(step: Described, call: str) -> bool:
    if call in ("optional", "zero"):
        return any(one[0] == "optional" or one[:2] == ["times_range", 0] for one in step["calls"])
    return any(one[0] == call for one in step["calls"])


def _repeats(step: Described) -> bool:
    return any(call[0].startswith(("times", "one_or_more")) for call in step["calls"])


__all__ = ["RandomPatterns"]
