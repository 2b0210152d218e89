"""The autoscaler of one job: called at each tick, it asks for other parallelisms when the load wants them. Pure.

Source: apache/flink-kubernetes-operator JobAutoScalerImpl.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rayflink.common.text_output.logs import get_logger
from rayflink.graph.job_graph import JobGraph, ScheduleMode

from ...messages.commands import AnswerRescale, RescaleRequested
from ...messages.executions import Execution
from .decisions import DecisionHistory, JobDecision
from .descriptions import describe
from .evaluation import JobEvaluation, evaluate
from .figures import VertexFacts, facts_of, sample_of
from .job_scaling import JobPlan, decisions_of, forbidden, frees_nothing, plan_job
from .metric_window import MetricWindow
from .settings import AutoscalerSettings

log = get_logger(__name__)

MOST_BACKOFF_MS = 3_600_000
"""Longest time between two requests of which the first could not be carried out."""


class Autoscaler:
    """Decides about the parallelism of a job's vertices.

    Args:
        config: of the job, option key -> value.
        new_id: gives 32 fresh hex digits a call.
        past: what `DecisionHistory.as_json` returned under an earlier coordinator.

    Raises:
        ConfigError: an option of the autoscaler does not parse.
    """

    def __init__(
        self, config: Mapping[str, object], new_id: Callable[[], str], past: Mapping[str, Any] | None = None
    ) -> None:
        self.settings = settings = AutoscalerSettings.of(config)
        self._new_id = new_id
        self.history = DecisionHistory(settings.history_count, settings.history_age_ms, past)
        self.slot_cpus = 1.0
        """CPUs of a slot whose group says nothing; a runner that knows better sets it."""
        self._window = MetricWindow(settings.window_ms, settings.stabilization_ms)
        self._looked_ms: int | None = None
        self._request_id = ""
        self._concerned: tuple[str, ...] = ()
        self.evaluation: JobEvaluation | None = None
        self.plan: JobPlan | None = None
        self.reason = "" if settings.enabled else "job.autoscaler.enabled is false"
        """What it does, or waits for, in words."""
        self.balanced = 0
        """Looks after which nothing was to be changed."""
        self.errors = 0
        """Requests that were not carried out."""
        self._refusals, self._not_before_ms, self._refusal = 0, 0, ""
        self._logged: tuple[str, int] = ("", 0)
        self._facts: tuple[JobGraph, Mapping[str, VertexFacts]] | None = None

    def resume(self, graph: JobGraph) -> None:
        """Go on after a coordinator that was lost, with the job as it starts now."""
        self.history.resume({vertex.id: vertex.parallelism for vertex in graph.vertices})

    def tick(
        self,
        graph: JobGraph,
        executions: Iterable[Execution],
        now_ms: int,
        unassigned: Callable[[], Mapping[str, int]] = dict,
    ) -> RescaleRequested | None:
        """Take a look at a running job if one is due; return the request for other parallelisms if it needs them.

        Args:
            unassigned: gives the bytes of the splits that no reader has yet, by operator.
        """
        if not self.settings.enabled or (
            self._looked_ms is not None and now_ms - self._looked_ms < self.settings.interval_ms
        ):
            return None
        self._looked_ms = now_ms
        if graph.schedule_mode is not ScheduleMode.EAGER:
            self.reason = "a job in batch mode is not rescaled while it runs"
            return None
        self._window.add(now_ms, sample_of(executions, unassigned()))
        if not self._window.has_rates:
            self.evaluation = self.plan = None
        else:
            self.evaluation = evaluate(self._facts_of(graph), self._window, self.settings.rates, self.restart_s)
        if self._request_id:
            self.reason = "waits until the job has the parallelisms that it has asked for"
            return None
        if not self._window.is_full or self.evaluation is None:
            self.reason = self._window.progress(now_ms)
            return None
        if now_ms < self._not_before_ms:
            seconds = (self._not_before_ms - now_ms) / 1000
            times = f"the {self._refusals} newest requests were" if self._refusals > 1 else "the newest request was"
            self.reason = f"{times} not carried out ({self._refusal}); it waits {seconds:.0f} s more until the next"
            return None
        return self._decide(graph, self.evaluation, now_ms)

    def _facts_of(self, graph: JobGraph) -> Mapping[str, VertexFacts]:
        if self._facts is None or self._facts[0] is not graph:
            self._facts = (graph, facts_of(graph))
        return self._facts[1]

    @property
    def restart_s(self) -> float:
        """Return the pause, in seconds, that a rescaling is expected to take: the longest that was measured lately."""
        limit_ms, pauses = self.settings.restart_limit_ms, self.history.pauses_ms
        if limit_ms is None or not pauses:
            return self.settings.restart_ms / 1000
        return min(limit_ms, max(pauses)) / 1000

    def _decide(self, graph: JobGraph, evaluation: JobEvaluation, now_ms: int) -> RescaleRequested | None:
        settings, history = self.settings, self.history
        self.plan = plan = plan_job(evaluation, history, now_ms, self.restart_s, settings)
        if not plan.wanted:
            self.reason = plan.reason
            self.balanced += 1
            return None
        decisions, changes = decisions_of(evaluation, plan, now_ms)
        if frees_nothing(graph, plan):
            self.reason = f"{', '.join(changes)}: fewer subtasks would do, but free no slot as yet"
            self.balanced += 1
            return None
        memory = self._window.mean(lambda figures: figures.memory)
        obstacle = forbidden(graph, plan, memory, self.slot_cpus, now_ms, settings)
        described = "; ".join(f"{name}: {change}" for name, change in changes.items())
        if obstacle or not settings.acts:
            outcome = "blocked" if obstacle else "advice"
            detail = obstacle or "job.autoscaler.scaling.enabled is false"
            self.reason = f"would change {described}; {detail}"
            history.add_advice(JobDecision(now_ms, changes, outcome, detail=detail))
            self._log_once(f"{'+'.join(sorted(plan.wanted))} {detail}", now_ms)
            return None
        self.reason = f"changes {described}"
        log.info("autoscaler: rescales %s", described)
        history.add(JobDecision(now_ms, changes, "under way"), decisions)
        self._request_id, self._concerned = self._new_id(), tuple(decisions)
        self._window.clear()
        return RescaleRequested(self._request_id, dict(plan.wanted))

    def _log_once(self, subject: str, now_ms: int) -> None:
        """Log the reason, unless the same was logged lately."""
        if self._logged[0] != subject or now_ms - self._logged[1] >= self.settings.event_interval_ms:
            self._logged = (subject, now_ms)
            log.info("autoscaler: %s", self.reason)

    def answered(self, answer: AnswerRescale) -> None:
        """Note the outcome of a request, if it was one of the autoscaler; after a failure, metrics start afresh."""
        if not self._request_id or answer.request_id != self._request_id:
            return
        self._request_id = ""
        self._window.clear()
        self.history.ended(answer.pause_ms, answer.failure, self._concerned)
        self._refusal = answer.failure
        if answer.failure:
            self.errors += 1
            self._back_off()
            self.reason = f"could not rescale: {answer.failure}"
            log.warning("autoscaler: %s", self.reason)
        else:
            self._refusals = self._not_before_ms = 0
            self.reason = f"has rescaled, with a pause of {answer.pause_ms} ms"
            log.info("autoscaler: %s", self.reason)

    def _back_off(self) -> None:
        """Let each request after a failed one wait twice as long: the job goes on with what it has meanwhile."""
        assert self._looked_ms is not None
        pause_ms = (self.settings.stabilization_ms + self.settings.window_ms) * 2**self._refusals
        self._refusals += 1
        self._not_before_ms = self._looked_ms + min(pause_ms, MOST_BACKOFF_MS)

    def describe(self) -> dict[str, Any] | None:
        """Return what it knows, wants and has done, as plain data; None where it is not enabled."""
        if not self.settings.enabled:
            return None
        return describe(self.reason, self.settings.acts, self.restart_s, self.evaluation, self.plan, self.history)


__all__ = ["Autoscaler"]
