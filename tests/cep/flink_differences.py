"""The verdict on what Flink and rayflink find for a pair: equal, a known difference with its reason, or an unknown one."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from rayflink.cep.errors import MalformedPatternException
from rayflink.cep.skip_strategies import SkipFailed
from tests.cep.described_patterns import Described, TooMany, find

_REFUSED = ("MalformedPatternException", "UnsupportedOperationException", "IllegalArgumentException")


def our_answer(pair: Described, windows: Mapping[str, int] | None = None) -> dict[str, Any]:
    """Return what rayflink finds, in the form of Flink's answers: `found` or `error`."""
    try:
        return {"found": find(pair, windows)}
    except MalformedPatternException as refused:
        return {"error": f"refused: {refused}"}
    except SkipFailed as failed:
        return {"error": f"failed: {failed}"}
    except TooMany:
        return {"error": "more than"}


def difference_of(pair: Described, flink: dict[str, Any]) -> str:
    """Return the verdict on a pair and Flink's answer, which begins with DIFFERENT where the difference is unknown."""
    ours = our_answer(pair)
    error, our_error = flink.get("error", ""), ours.get("error", "")
    if error.startswith("IllegalStateException: more than") or our_error == "more than":
        return "left out: too many partial matches"
    if "may begin with the step" in our_error:
        return "known: Flink fails where a match may begin with a step that must not occur, at the first such event"
    ends_with_group = "group" in pair["steps"][-1] and "not supported as a last part" in our_error and not error
    if "as the last step of a group" in our_error or ends_with_group:
        return "known: Flink drops a not_followed_by at the end of a group"
    if "ms may pass before an event" in our_error and not error.startswith(_REFUSED):
        return "known: Flink accepts a window between events that no state has and that is longer than that of the match"
    if error and our_error or error and not error.startswith("FlinkRuntime"):
        return _of_errors(pair, error, our_error)
    verdict = _of_matches(flink, ours)
    windows = {name.replace("GroupPattern", "group"): ms for name, ms in flink.get("windows", {}).items()}
    if verdict.startswith("DIFFERENT") and windows:
        if _of_matches(flink, our_answer(pair, windows)).startswith("equal"):
            return "known: Flink's windows between two events end once an event is ignored"
    if verdict.startswith("DIFFERENT") and _ends_with_two_negative_steps(pair["steps"]):
        if _without_time(flink) == _without_time(ours):
            return "known: Flink sees the last step alone of several at the end that must not occur"
    if verdict.startswith("DIFFERENT") and _of_matches(flink, our_answer(_without_lost_steps(pair), windows))[:5] == "equal":
        return "known: Flink drops a not_followed_by in front of not_next"
    if verdict.startswith("DIFFERENT") and _is_dropped_by_flink(pair):
        without = {**pair, "steps": pair["steps"][:-1]}
        is_named = pair["skip"][1:2] == [pair["steps"][-1]["name"]]  # then the strategy cannot be compiled without it
        if is_named or set(flink["found"]) <= set(our_answer(without, windows).get("found", ())):
            return "known: Flink drops a last not_followed_by if within is called on an earlier step"
    return verdict


def _of_matches(flink: dict[str, Any], ours: dict[str, Any]) -> str:
    if "error" in flink or "error" in ours:
        if "Could not skip" in flink.get("error", "") and ours.get("error", "").startswith("failed"):
            return "equal: both fail at a miss"
        return f"DIFFERENT error: {flink.get('error', '')[:60]!r} {ours.get('error', '')[:60]!r}"
    if flink["found"] == ours["found"]:
        return "equal: something is found" if flink["found"] else "equal: nothing is found"
    if sorted(flink["found"]) != sorted(ours["found"]):
        return "DIFFERENT matches"
    if _without_timeouts(flink) == _without_timeouts(ours):
        return "equal: but for the order of partial matches that time out"
    return "DIFFERENT order"


def _without_timeouts(answer: dict[str, Any]) -> list[str]:
    return [line for line in answer["found"] if not line.startswith("over")]


def _without_time(answer: dict[str, Any]) -> list[str]:
    return [line for line in answer.get("found", ()) if not line.startswith(("over", "at"))]


def _ends_with_two_negative_steps(steps: list[Described]) -> bool:
    last = _without_groups(steps)[-2:]
    return len(last) == 2 and last[1]["how"] == "not_followed_by" and last[0]["how"].startswith("not_")


def _without_groups(steps: list[Described]) -> list[Described]:
    return [one for step in steps for one in (_without_groups(step["group"]) if "group" in step else [step])]


def _without_lost_steps(pair: Described) -> Described:
    """Return the pair without the steps of the sequence that Flink drops: `not_followed_by` in front of `not_next`."""
    steps: list[Described] = []
    for step in pair["steps"]:
        while step["how"] == "not_next" and steps[-1]["how"] == "not_followed_by":
            steps.pop()
        steps.append(step)
    return {**pair, "steps": steps}


def _is_dropped_by_flink(pair: Described) -> bool:
    """Return whether the last step must not occur, and has no `within` of its own."""
    last = pair["steps"][-1]
    return last["how"] == "not_followed_by" and not any(call[0].startswith("within") for call in last["calls"])


def _of_errors(pair: Described, error: str, our_error: str) -> str:
    if error.startswith(_REFUSED) and our_error.startswith("refused"):
        return "equal: both refuse the pattern"
    if "Could not skip" in error and our_error.startswith("failed"):
        return "equal: both fail at a miss"
    if "circle of PROCEED edges" in error:
        return "known: Flink does not end on a group that repeats and has optional steps alone"
    top = {step.get("name") for step in pair["steps"]}
    if "can not be found in the given Pattern" in error and pair["skip"][1] not in top:
        return "known: Flink's skip strategies name no step within a group"
    if "NullPointerException" in error and _has_greedy_optional_until(pair["steps"]):
        return "known: Flink fails on optional().greedy().until() behind not_followed_by"
    return f"DIFFERENT error: {error[:60]!r} {our_error[:60]!r}"


def _has_greedy_optional_until(steps: list[Described]) -> bool:
    return any(
        {"greedy", "optional", "until"} <= {call[0] for call in step["calls"]}
        or _has_greedy_optional_until(step.get("group", []))
        for step in steps
    )


__all__ = ["difference_of", "our_answer"]
