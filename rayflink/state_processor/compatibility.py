"""A check of each state of a savepoint against a program that would restore it, before the old job is stopped."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rayflink.common.errors import described
from rayflink.common.functions.master_hook import HOOK_PREFIX
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.options.registry import STATE_BACKEND
from rayflink.graph.job_graph import ChainedOperator, JobGraph, JobVertex
from rayflink.operators.base import OperatorContext
from rayflink.operators.keyed.keyed_operator import KeyedOperator
from rayflink.operators.restored_state import moved_in
from rayflink.operators.user_function import FunctionOperator
from rayflink.state.clock import SystemClock
from rayflink.state.schema.evolution import Judgement, Verdict, judge_class, judge_types
from rayflink.state.schema.state_summary import StateSummary

from .savepoint import OperatorState, Savepoint, near
from .states import SavedState

COORDINATOR = "coordinator"
"""Stands for the operator of what master hooks gave."""
_ON_THEIR_WAY = "channels list"
_NO_STREAM = "the program has no such stream; start it from a savepoint, which holds no records"
LEAVE = "leave"
"""Verdict on state of an operator that the program does not have, where such state may stay behind."""


@dataclass(frozen=True, slots=True)
class StateVerdict:
    """The verdict on one state.

    Args:
        operator: uid of the operator, or its name where it has none; "coordinator" for what master hooks gave.
        state: its name, or the identifier of the hook.
        verdict: "keep", "migrate", "refuse", or "leave" where it stays behind.
        reason: why; "" where there is nothing to say.
    """

    operator: str
    state: str
    verdict: str
    reason: str = ""


def check_savepoint(
    graph: JobGraph, savepoint: Savepoint, allow_non_restored_state: bool = False, opens: bool = True
) -> tuple[StateVerdict, ...]:
    """Return the verdict on each state of a savepoint.

    Most states are declared in `open` of a program's functions. So the functions of the operators that have state in
    the savepoint are opened here, on no data and empty state, and closed again.

    Args:
        graph: of the program, as `StreamExecutionEnvironment.get_job_graph()` gives it.
        savepoint: that it would begin from.
        allow_non_restored_state: state of operators that the program does not have may stay behind.
        opens: whether functions are opened; else states are judged by their classes alone.
    """
    places: dict[str, tuple[JobVertex, ChainedOperator]] = {
        node.operator_id: (vertex, node) for vertex in graph.vertices for node in vertex.operators
    }
    moved = moved_in(graph.configuration)
    uids = [node.uid for _, node in places.values() if node.uid]
    streams = {edge.dataset_id for edge in graph.edges}
    verdicts: list[StateVerdict] = []
    for operator in savepoint.operators:
        place = places.get(operator.id)
        name = operator.uid or operator.name
        lost = {state.name for state in operator.states if _is_on_no_stream(state, streams)}
        verdicts += [StateVerdict(name, records, Verdict.REFUSE.value, _NO_STREAM) for records in sorted(lost)]
        states = [state for state in operator.states if state.name not in lost]
        if place is None:
            why = f"the program has no such operator; {near(name, uids)}"
            verdict = LEAVE if allow_non_restored_state else Verdict.REFUSE.value
            verdicts += [StateVerdict(name, state.name, verdict, why) for state in states]
            continue
        declared, failure = _declared(graph, place, opens) if states else ({}, "")
        for state in states:
            judged = _judged(state, operator, place, declared, moved)
            reason = "; ".join(part for part in (judged.reason, failure if state.is_keyed else "") if part)
            verdicts.append(StateVerdict(name, state.name, judged.verdict.value, reason))
    return (*verdicts, *_of_hooks(graph, savepoint, allow_non_restored_state))


def _of_hooks(graph: JobGraph, savepoint: Savepoint, may_stay: bool) -> Iterator[StateVerdict]:
    """Return the verdicts on the state of master hooks."""
    registered = {hook.get_identifier() for hook in graph.master_hooks}
    hook_keys = (key for key in savepoint.manifest.properties if key.startswith(HOOK_PREFIX))
    for name in sorted(key.removeprefix(HOOK_PREFIX) for key in hook_keys):
        if name in registered:
            yield StateVerdict(COORDINATOR, name, Verdict.KEEP.value)
        else:
            verdict = LEAVE if may_stay else Verdict.REFUSE.value
            yield StateVerdict(COORDINATOR, name, verdict, "the program registers no such master hook")


def _is_on_no_stream(state: SavedState, streams: Collection[str]) -> bool:
    """Return whether these are in-flight records of an unaligned checkpoint, of a stream that the job does not
    have.
    """
    return state.summary.kind == _ON_THEIR_WAY and not any(stream in state.name for stream in streams)


def _judged(
    state: SavedState,
    operator: OperatorState,
    place: tuple[JobVertex, ChainedOperator],
    declared: Mapping[tuple[bool, str], StateSummary],
    moved: Mapping[str, str],
) -> Judgement:
    vertex, node = place
    if state.is_keyed and not any(node.key_selectors):
        return Judgement(Verdict.REFUSE, f"{node.name!r}, which is in its place, has no state by key; give uids")
    if state.is_keyed and operator.max_parallelism != vertex.max_parallelism:
        groups = operator.max_parallelism
        if vertex.sets_max_parallelism:
            why = f"it is in {groups} key groups, and the program sets a max parallelism of {vertex.max_parallelism}"
            return Judgement(Verdict.REFUSE, why)
        if vertex.parallelism > groups:
            return Judgement(
                Verdict.REFUSE, f"it is in {groups} key groups, and the parallelism is {vertex.parallelism}"
            )
    changes = [judge_class(schema, moved)[0] for schema in state.summary.classes.values()]
    now = declared.get((state.is_keyed, state.name))
    if now is not None:
        if now.kind != state.summary.kind:
            return Judgement(Verdict.REFUSE, f"it was {state.summary.kind} state and is {now.kind} state")
        changes.append(judge_types(state.summary, now))
    for verdict in (Verdict.REFUSE, Verdict.MIGRATE):
        reasons = [change.reason for change in changes if change.verdict is verdict]
        if reasons:
            return Judgement(verdict, "; ".join(reasons))
    return Judgement(Verdict.KEEP)


def _declared(
    graph: JobGraph, place: tuple[JobVertex, ChainedOperator], opens: bool
) -> tuple[dict[tuple[bool, str], StateSummary], str]:
    """Return the states an operator declares, by whether they are keyed and their name; and why some may be
    missing.
    """
    vertex, node = place
    operator: Any = None if node.factory is None else node.factory()
    if not isinstance(operator, FunctionOperator):
        return {}, ""
    config = {**graph.configuration, STATE_BACKEND.key: "hashmap"}
    operator.setup(
        OperatorContext(
            node.operator_id, node.name, max_parallelism=vertex.max_parallelism, clock=SystemClock(),
            metrics=MetricGroup(), config=config, call_site=node.call_site,
        )
    )  # fmt: skip
    failure = ""
    try:
        operator.initialize_state(())
        if opens:
            operator.open()
    except Exception as error:  # a user's function may raise anything where there is no cluster
        failure = f"its functions could not be opened here ({described(error)}), so declared types were not looked at"
    states = operator.function_state.store.summaries() if hasattr(operator, "function_state") else ()
    if isinstance(operator, KeyedOperator) and hasattr(operator, "backend"):
        states = (*states, *operator.backend.summaries())
    try:
        operator.close()
    except Exception as error:  # as above
        failure = failure or f"its functions could not be closed here ({described(error)})"
    return {(state.is_keyed, state.name): state for state in states}, failure


__all__ = ["COORDINATOR", "LEAVE", "StateVerdict", "check_savepoint"]
