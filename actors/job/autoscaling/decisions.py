"""The past decisions of an autoscaler: what it wanted, what came of it, and what the pauses were. Pure.

Source: apache/flink-kubernetes-operator ScalingSummary, ScalingTracking, DelayedScaleDown.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

MOST_JOB_DECISIONS = 100
"""Decisions of a job that its status shows at most."""
MOST_PAUSES = 5
"""Measured pauses that count."""


@dataclass(frozen=True, slots=True)
class VertexDecision:
    """A decision about one vertex.

    Args:
        decided_ms: when.
        before, after: subtasks.
        true_rate: records a second that it could take before.
        expected_rate: those that it should be able to take after.
        reason: for people.
        is_revert: it took back subtasks that had not made the vertex faster.
    """

    decided_ms: int
    before: int
    after: int
    true_rate: float
    expected_rate: float
    reason: str = ""
    is_revert: bool = False

    @property
    def is_up(self) -> bool:
        """Return whether it got more subtasks."""
        return self.after > self.before


@dataclass(frozen=True, slots=True)
class JobDecision:
    """A decision about a job, with what came of it.

    Args:
        decided_ms: when.
        changes: for people: name of a vertex -> "2 -> 4: reason".
        outcome: "under way", "done", "failed", "advice", or "blocked".
        pause_ms: of the rescaling.
        detail: why it failed, or what forbids it.
    """

    decided_ms: int
    changes: Mapping[str, str]
    outcome: str
    pause_ms: int = 0
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Need:
    """The subtasks that were needed at a moment.

    Args:
        is_outside: the utilization was outside the bounds then, so that a rescaling pays.
    """

    at_ms: int
    subtasks: int
    is_outside: bool


@dataclass(frozen=True, slots=True)
class ScaleDownWish:
    """The smaller parallelisms that a vertex has needed lately.

    Args:
        first_ms: since when it has needed fewer subtasks without a break.
        needs: falling: what a later time needed more of has gone.
    """

    first_ms: int
    needs: tuple[Need, ...] = ()

    def with_need(self, need: Need, interval_ms: int) -> ScaleDownWish:
        """Return it with what is needed now, without what is older than the interval."""
        begun_ms = need.at_ms - interval_ms
        larger = [each for each in self.needs if each.subtasks > need.subtasks and each.at_ms >= begun_ms]
        return replace(self, needs=(*larger, need))

    @property
    def most(self) -> Need:
        """Return the highest need."""
        return self.needs[0]

    def waited_ms(self, now_ms: int) -> int:
        """Return for how long fewer subtasks have been enough."""
        return now_ms - self.first_ms

    def as_json(self) -> dict[str, Any]:
        """Return what the next coordinator has to know: how long it has waited, and for how many subtasks."""
        newest = self.needs[-1].at_ms if self.needs else self.first_ms
        return {"waited_ms": self.waited_ms(newest), "most": self.most.subtasks, "is_outside": self.most.is_outside}

    @classmethod
    def resumed(cls, past: Mapping[str, Any], now_ms: int) -> ScaleDownWish:
        """Return the wish of an earlier coordinator at the first look of the next one.

        The time without a coordinator does not count, and the highest need is as new as can be: so a vertex loses its
        subtasks rather too late than too soon.
        """
        need = Need(now_ms, int(past["most"]), bool(past["is_outside"]))
        return cls(now_ms - int(past["waited_ms"]), (need,))


class DecisionHistory:
    """The decisions that an autoscaler remembers, which outlive its coordinator.

    Args:
        count, age_ms: how many of each vertex are remembered, and for how long.
        past: what `as_json` returned under an earlier coordinator.
    """

    def __init__(self, count: int, age_ms: int, past: Mapping[str, Any] | None = None) -> None:
        self._count, self._age_ms = count, age_ms
        past = past or {}
        self.decisions: deque[JobDecision] = deque(
            (_ended_decision(JobDecision(**each)) for each in past.get("decisions", ())), MOST_JOB_DECISIONS
        )
        """Those of the job, oldest first."""
        self._was_under_way = [each["outcome"] for each in past.get("decisions", ())][-1:] == ["under way"]
        self.pauses_ms: deque[int] = deque(past.get("pauses_ms", ()), MOST_PAUSES)
        """The newest measured pauses."""
        self._wishes: dict[str, ScaleDownWish] = {}
        self._past_wishes: dict[str, Mapping[str, Any]] = dict(past.get("wishes", {}))
        self.scalings = int(past.get("scalings", 0))
        """Rescalings that were carried out."""
        self._vertices: dict[str, list[VertexDecision]] = {
            key: [VertexDecision(**each) for each in mine] for key, mine in past.get("vertices", {}).items()
        }
        self.revision = 0
        """A number that changes with what has to outlive the coordinator."""

    def of_vertex(self, vertex_id: str, now_ms: int) -> list[VertexDecision]:
        """Return what was decided about a vertex, oldest first."""
        return [each for each in self._vertices.get(vertex_id, ()) if now_ms - each.decided_ms <= self._age_ms]

    def wish(self, vertex_id: str, now_ms: int) -> ScaleDownWish | None:
        """Return the smaller parallelism that a vertex has needed for a time; None where it has not."""
        if (past := self._past_wishes.pop(vertex_id, None)) is not None:
            self._wishes[vertex_id] = ScaleDownWish.resumed(past, now_ms)
        return self._wishes.get(vertex_id)

    def set_wish(self, vertex_id: str, wish: ScaleDownWish | None, interval_ms: int) -> None:
        """Remember the smaller parallelism that a vertex needs; None: it needs all that it has.

        Args:
            interval_ms: time for which it has to need fewer; a tenth of it more, and the wish is worth storing.
        """
        before = self._wishes.pop(vertex_id, None)
        if wish is not None:
            self._wishes[vertex_id] = wish
        if _worth_storing(before, interval_ms) != _worth_storing(wish, interval_ms):
            self.revision += 1

    def add(self, job: JobDecision, vertices: Mapping[str, VertexDecision]) -> None:
        """Add a decision that is carried out.

        Wishes for fewer subtasks are over with one that gives a vertex more. With one that takes some away they stay,
        where the vertices still have more than they need.
        """
        for vertex_id, decision in vertices.items():
            past = [*self._vertices.get(vertex_id, ()), decision]
            reverts = [each for each in past[: -self._count] if each.is_revert]  # they hold until they are too old
            self._vertices[vertex_id] = [*reverts[-1:], *past[-self._count :]]
        self.decisions.append(job)
        if any(decision.is_up or decision.is_revert for decision in vertices.values()):
            self._wishes.clear()
        for vertex_id, decision in vertices.items():
            if vertex_id in self._wishes and self._wishes[vertex_id].most.subtasks >= decision.after:
                del self._wishes[vertex_id]
        self.revision += 1

    def add_advice(self, job: JobDecision) -> None:
        """Add a decision that is not carried out, unless it is the one before."""
        newest = self.decisions[-1] if self.decisions else None
        if newest is None or (newest.outcome, newest.changes, newest.detail) != (job.outcome, job.changes, job.detail):
            self.decisions.append(job)
            self.revision += 1

    def ended(self, pause_ms: int, failure: str, concerned: Iterable[str] = ()) -> None:
        """Note what came of the newest decision.

        Args:
            failure: why it was not carried out; "" where it was.
            concerned: ids of its vertices, about which nothing was decided then.
        """
        if not failure:
            self.pauses_ms.append(pause_ms)
            self.scalings += 1
        else:
            for vertex_id in concerned:
                self._vertices[vertex_id] = self._vertices.get(vertex_id, [])[:-1]
        for index in range(len(self.decisions) - 1, -1, -1):
            if self.decisions[index].outcome == "under way":
                outcome = "failed" if failure else "done"
                self.decisions[index] = replace(
                    self.decisions[index], outcome=outcome, pause_ms=pause_ms, detail=failure
                )
                break
        self.revision += 1

    def resume(self, parallelism: Mapping[str, int]) -> None:
        """Note what came of a decision whose coordinator was lost while it was carried out.

        Args:
            parallelism: vertex id -> subtasks with which the job goes on.
        """
        if not self._was_under_way:
            return
        newest = self.decisions[-1]
        concerned = {
            key: mine[-1] for key, mine in self._vertices.items() if mine and mine[-1].decided_ms == newest.decided_ms
        }
        if concerned and all(parallelism.get(key) == decision.after for key, decision in concerned.items()):
            self.scalings += 1
            self.decisions[-1] = replace(newest, outcome="done", detail="its coordinator was lost before it said so")
        else:
            for vertex_id in concerned:
                self._vertices[vertex_id] = self._vertices[vertex_id][:-1]
        self._was_under_way = False
        self.revision += 1

    def as_json(self) -> dict[str, Any]:
        """Return what the next coordinator has to know, as plain data."""
        return {
            "decisions": [asdict(each) for each in self.decisions],
            "pauses_ms": list(self.pauses_ms),
            "scalings": self.scalings,
            "vertices": {key: [asdict(each) for each in mine] for key, mine in self._vertices.items()},
            "wishes": {**self._past_wishes, **{key: wish.as_json() for key, wish in self._wishes.items()}},
        }


def _worth_storing(wish: ScaleDownWish | None, interval_ms: int) -> tuple[int, int] | None:
    if wish is None:
        return None
    waited_ms = wish.waited_ms(wish.needs[-1].at_ms)
    return 10 * min(waited_ms, interval_ms) // max(1, interval_ms), wish.most.subtasks


def _ended_decision(decision: JobDecision) -> JobDecision:
    """Return a decision of an earlier coordinator; a request that was under way was lost with it."""
    if decision.outcome != "under way":
        return decision
    return replace(decision, outcome="failed", detail="its coordinator was lost before it was done")


__all__ = ["DecisionHistory", "JobDecision", "Need", "ScaleDownWish", "VertexDecision"]
