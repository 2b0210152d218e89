"""The verdict on what Flink and rayflink find for a pair: equal, a known difference and its reason, or another one.

A known difference is one in which Flink drops a part of the pattern or fails. Where it drops one, rayflink is asked for
the pattern without that part, and has to find what Flink does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rayflink.cep.errors import MalformedPatternException
from rayflink.cep.skip_strategies import SkipFailed
from tests.cep.described_patterns import Described, TooMany, find

Answer = dict[str, Any]

_REFUSED = ("MalformedPatternException", "UnsupportedOperationException", "IllegalArgumentException")
"""Flink's errors for a pattern that it does not take; others come while it runs."""
_TOO_MANY = "more than"
_REFUSED_BY_US = {
    "may begin with the step": "Flink fails at the first event that a match may not begin with",
    "has optional steps alone": "Flink does not end on a group that repeats and has optional steps alone",
    "as the last step of a group": "Flink drops a not_followed_by at the end of a group",
}
"""Parts of our errors, and what Flink does instead, whether it says so or not."""


def difference_of(pair: Described, flink: Answer) -> str:
    """Return the verdict on a pair and Flink's answer; it begins with DIFFERENT where the difference is not known."""
    ours = our_answer(pair)
    error, our_error = flink.get("error", ""), ours.get("error", "")
    if our_error == _TOO_MANY or error.startswith(f"IllegalStateException: {_TOO_MANY}"):
        return "left out: too many partial matches"
    if error.startswith(_REFUSED) and our_error.startswith("refused"):
        return "equal: both refuse the pattern"
    for part, reason in _REFUSED_BY_US.items():
        if part in our_error:
            return f"known: {reason}"
    if our_error.startswith("refused"):
        return _of_our_refusal(pair, our_error)
    if error and not error.startswith("FlinkRuntimeException"):
        return _of_failure(pair, error)
    verdict = _of_answers(flink, ours)
    return _known_difference(pair, flink, ours, verdict) if verdict.startswith("DIFFERENT") else verdict


def our_answer(pair: Described, windows: Mapping[str, int] | None = None) -> Answer:
    """Return what rayflink finds, in the form of Flink's answers: `found` or `error`.

    Args:
        pair: a pattern and a stream.
        windows: milliseconds between two events by state, in place of those that the pattern has.
    """
    try:
        return {"found": find(pair, windows)}
    except MalformedPatternException as refused:
        return {"error": f"refused: {refused}"}
    except SkipFailed as failed:
        return {"error": f"failed: {failed}"}
    except TooMany:
        return {"error": _TOO_MANY}


def _of_our_refusal(pair: Described, error: str) -> str:
    if "ms may pass before an event" in error:
        return "known: Flink takes a window between events that is longer than that of the match, and drops it"
    if "not supported as a last part" in error and "group" in pair["steps"][-1]:
        return "known: Flink drops a not_followed_by at the end of a group"
    return f"DIFFERENT error: nothing, and {error}"


def _of_failure(pair: Described, error: str) -> str:
    """Return the verdict on a pattern that Flink refuses, or fails at, alone."""
    steps = {step.get("name") for step in pair["steps"]}
    if "can not be found in the given Pattern" in error and pair["skip"][1] not in steps:
        return "known: Flink's skip strategies name no step within a group"
    calls = [{call[0] for call in step["calls"]} for step in _flat(pair["steps"])]
    if "NullPointerException" in error and any({"greedy", "optional", "until"} <= names for names in calls):
        return "known: Flink fails on optional().greedy().until() behind not_followed_by"
    return f"DIFFERENT error: {error[:80]}"


def _of_answers(flink: Answer, ours: Answer) -> str:
    if "error" in flink or "error" in ours:
        if "Could not skip" in flink.get("error", "") and ours.get("error", "").startswith("failed"):
            return "equal: both fail at a miss"
        return f"DIFFERENT error: {flink.get('error', '')[:80]!r} and {ours.get('error', '')[:80]!r}"
    if flink["found"] == ours["found"]:
        return "equal: something is found" if flink["found"] else "equal: nothing is found"
    if sorted(flink["found"]) != sorted(ours["found"]):
        return "DIFFERENT matches"
    if _without(flink, "over") == _without(ours, "over"):
        return "equal: but for the order of partial matches that time out"
    return "DIFFERENT order"


def _known_difference(pair: Described, flink: Answer, ours: Answer, verdict: str) -> str:
    """Return the verdict on matches that differ: what Flink drops, if that explains them."""
    windows = {name.replace("GroupPattern", "group"): ms for name, ms in flink.get("windows", {}).items()}

    def explains(other: Described) -> bool:
        if pair["skip"][1:2] and pair["skip"][1] not in {step["name"] for step in _flat(other["steps"])}:
            return True  # the strategy names the step that Flink drops, so that the pattern without it is refused
        return _of_answers(flink, our_answer(other, windows)).startswith("equal")

    if windows and explains(pair):
        return "known: Flink drops the window between two events once an event is ignored"
    if explains(_without_nots_before_not_next(pair)):
        return "known: Flink drops a not_followed_by in front of not_next"
    negatives = [step["how"] for step in _flat(pair["steps"])[-2:] if step["how"].startswith("not_")]
    if len(negatives) == 2 and _without(flink, "over", "at") == _without(ours, "over", "at"):
        return "known: Flink sees the last step alone of several at the end that must not occur"
    if negatives[-1:] == ["not_followed_by"]:
        # A loop before it still ends where such an event comes, so some matches without the step are missing.
        other = {**pair, "steps": _without_last(pair["steps"])}
        if explains(other) or set(flink.get("found", ())) <= set(our_answer(other, windows).get("found", ())):
            return "known: Flink drops a last not_followed_by if within is called on an earlier step"
    return verdict


def _without(answer: Answer, *beginnings: str) -> list[str]:
    return [line for line in answer.get("found", ()) if not line.startswith(beginnings)]


def _without_nots_before_not_next(pair: Described) -> Described:
    steps: list[Described] = []
    for step in pair["steps"]:
        calls = [*step["calls"]]
        while step["how"] == "not_next" and steps[-1]["how"] == "not_followed_by":
            calls += [call for call in steps.pop()["calls"] if call[0] == "within"]
        steps.append({**step, "calls": calls})
    return {**pair, "steps": steps}


def _without_last(steps: list[Described]) -> list[Described]:
    """Return the steps without the last one, which may be within a group."""
    *before, last = steps
    return [*before, {**last, "group": _without_last(last["group"])}] if "group" in last else before


def _flat(steps: list[Described]) -> list[Described]:
    """Return the steps and those within groups, without the groups."""

    def walk(steps: list[Described]) -> Iterator[Described]:
        for step in steps:
            yield from walk(step["group"]) if "group" in step else (step,)

    return list(walk(steps))


__all__ = ["difference_of", "our_answer"]
