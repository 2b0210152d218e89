"""The split enumerators of a job's sources, run where the job is decided."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from rayflink.common.connector_base.source import SplitEnumerator
from rayflink.common.errors import described
from rayflink.common.user_code.value_bytes import from_bytes, to_bytes
from rayflink.graph.job_graph import ChainedOperator, JobGraph, JobVertex
from rayflink.user_types import SourceSplit, UserValue

from ..messages.commands import CallForEnumerator, EnumeratorAnswered
from ..messages.messages import AssignSplits, SourceEvent, TaskFailure
from ..task.failures import is_outage, is_recoverable

_NUMBERS = count(1)
"""Numbers of calls, each used once in this process: an answer to an enumerator that is closed finds no other."""


@dataclass(frozen=True, slots=True)
class _Call:
    """Work that blocks, which an enumerator has asked for."""

    work: Callable[[], object]
    then: Callable[[UserValue, Exception | None], None]
    period_ms: int | None


@dataclass(frozen=True, slots=True)
class Consequences:
    """The wishes of an enumerator, as messages and work.

    Args:
        assigned: messages for readers, in order.
        calls: work to run beside the decisions.
    """

    vertex_id: str
    assigned: Sequence[tuple[int, AssignSplits]] = ()
    calls: Sequence[CallForEnumerator] = ()


class _Context:
    """Collects the splits that an enumerator assigns, and the work that it asks for, while it answers."""

    def __init__(self, operator_id: str, parallelism: int) -> None:
        self._operator_id, self._parallelism = operator_id, parallelism
        self.assigned: list[tuple[int, AssignSplits]] = []
        self.calls: list[_Call] = []

    def assign_splits(self, assignment: Mapping[int, Sequence[SourceSplit]]) -> None:
        """Assign splits to subtasks."""
        for subtask, splits in assignment.items():
            self.assigned.append((subtask, AssignSplits(self._operator_id, tuple(splits))))

    def signal_no_more_splits(self, subtask: int) -> None:
        """Assign nothing more to a reader."""
        self.assigned.append((subtask, AssignSplits(self._operator_id, (), no_more=True)))

    def current_parallelism(self) -> int:
        """Return the number of readers."""
        return self._parallelism

    def call_async(
        self,
        work: Callable[[], object],
        then: Callable[[UserValue, Exception | None], None],
        period_ms: int | None = None,
    ) -> None:
        """Run work that blocks beside the decisions."""
        self.calls.append(_Call(work, then, period_ms))


@dataclass(slots=True)
class _Running:
    context: _Context
    enumerator: SplitEnumerator
    node: ChainedOperator
    vertex_id: str
    called: dict[int, _Call] = field(default_factory=dict)
    """Number -> work whose answer is awaited."""
    repeated: list[tuple[int, _Call]] = field(default_factory=list)
    """Work that is due again, with the epoch milliseconds."""


@dataclass(frozen=True, slots=True)
class _Assigned:
    """Splits that a subtask got after checkpoint `after`, and before the next one."""

    after: int
    subtask: int
    splits: tuple[SourceSplit, ...]


class Enumerators:
    """The split enumerators of a job, one for each source operator, created when the first reader asks.

    Splits that were assigned since the last complete checkpoint are remembered: when their reader alone starts again,
    from that checkpoint, it does not have them, and they go back to the enumerator.
    """

    def __init__(self, graph: JobGraph) -> None:
        self._graph = graph
        self._running: dict[str, _Running] = {}
        self._states: dict[str, bytes] = {}
        self._assigned: dict[str, deque[_Assigned]] = {}
        self._last_id = 0

    def request(self, vertex: JobVertex, operator_id: str, subtask: int) -> Consequences:
        """Handle a reader's request for a split; return what follows for this and other readers of the vertex."""
        running = self._opened(vertex, operator_id)
        running.enumerator.handle_split_request(subtask)
        return self._consequences(operator_id, running)

    def deliver(self, vertex: JobVertex, event: SourceEvent, subtask: int) -> Consequences:
        """Give an enumerator an event of a reader.

        Raises: whatever a user's enumerator raises.
        """
        running = self._opened(vertex, event.operator_id)
        running.enumerator.handle_source_event(subtask, from_bytes(event.event))
        return self._consequences(event.operator_id, running)

    def _opened(self, vertex: JobVertex, operator_id: str) -> _Running:
        running = self._running.get(operator_id)
        if running is None:
            running = self._running[operator_id] = self._create(vertex, operator_id)
        return running

    def source_of(self, answer: EnumeratorAnswered) -> ChainedOperator | None:
        """Return the source whose enumerator awaits an answer; None: it is closed, and nothing does."""
        return next((running.node for running in self._running.values() if answer.number in running.called), None)

    def answer(self, answer: EnumeratorAnswered, now_ms: int) -> Consequences:
        """Give an enumerator the answer to its call.

        Raises: whatever a user's enumerator raises.
        """
        operator_id, running = next(entry for entry in self._running.items() if answer.number in entry[1].called)
        call = running.called.pop(answer.number)
        if call.period_ms is not None:
            running.repeated.append((now_ms + call.period_ms, call))
        call.then(answer.answer, answer.error)
        return self._consequences(operator_id, running)

    def pending_bytes(self) -> dict[str, int]:
        """Return the size of the splits not assigned yet, by operator, of the enumerators that know it."""
        sizes = {operator_id: running.enumerator.pending_bytes() for operator_id, running in self._running.items()}
        return {operator_id: size for operator_id, size in sizes.items() if size is not None}

    @property
    def next_call_ms(self) -> int | None:
        """Return when the next work is due again, in epoch milliseconds; None: none is."""
        return min((due for running in self._running.values() for due, _ in running.repeated), default=None)

    def calls_due(self, now_ms: int) -> list[CallForEnumerator]:
        """Return the work that is due again."""
        calls = []
        for running in self._running.values():
            due = [call for due_ms, call in running.repeated if due_ms <= now_ms]
            running.repeated = [entry for entry in running.repeated if entry[0] > now_ms]
            calls += [_number(running, call) for call in due]
        return calls

    def _consequences(self, operator_id: str, running: _Running) -> Consequences:
        context = running.context
        assigned, context.assigned = context.assigned, []
        calls, context.calls = context.calls, []
        assigned_since = self._assigned.setdefault(operator_id, deque())
        for to, message in assigned:
            if message.splits:
                assigned_since.append(_Assigned(self._last_id, to, tuple(message.splits)))
        return Consequences(running.vertex_id, assigned, [_number(running, call) for call in calls])

    def snapshot(self, checkpoint_id: int) -> dict[str, bytes]:
        """Return operator id -> state of the enumerators; splits assigned from now on belong to a later checkpoint.

        Raises: whatever a user's enumerator raises.
        """
        self._last_id = checkpoint_id
        states = {name: to_bytes(running.enumerator.snapshot_state()) for name, running in self._running.items()}
        return {**self._states, **states}

    def complete(self, checkpoint_id: int) -> None:
        """Forget the splits that a durable checkpoint contains."""
        for assigned in self._assigned.values():
            while assigned and assigned[0].after < checkpoint_id:
                assigned.popleft()

    def restore(self, states: Mapping[str, bytes]) -> list[TaskFailure]:
        """Restart with the states of a checkpoint; return how closing the present enumerators failed."""
        failures = self.close()
        self._states = dict(states)
        self._assigned.clear()
        return failures

    def take_back(self, operator_id: str, subtask: int) -> None:
        """Take back the splits of a reader that restarts from the last complete checkpoint.

        Raises: whatever a user's enumerator raises.
        """
        assigned_since = self._assigned.get(operator_id, deque())
        splits = [split for assigned in assigned_since if assigned.subtask == subtask for split in assigned.splits]
        self._assigned[operator_id] = deque(assigned for assigned in assigned_since if assigned.subtask != subtask)
        if splits:
            self._running[operator_id].enumerator.add_splits_back(splits, subtask)

    def close(self) -> list[TaskFailure]:
        """Close all enumerators, also when some raise; return their failures."""
        closing, self._running = self._running, {}
        failures = []
        for running in closing.values():
            try:
                running.enumerator.close()
            except (Exception, SystemExit) as error:  # whatever a user's enumerator raises
                failures.append(enumerator_failed(running.node, error, " when it was closed"))
        return failures

    def _create(self, vertex: JobVertex, operator_id: str) -> _Running:
        node = next(node for node in vertex.operators if node.operator_id == operator_id)
        assert node.factory is not None
        source = node.factory().source.configured(self._graph.configuration)
        context = _Context(operator_id, vertex.parallelism)
        state = self._states.pop(operator_id, None)
        if state is None:
            enumerator = source.create_enumerator(context)
        else:
            enumerator = source.restore_enumerator(context, from_bytes(state))
        enumerator.start()
        return _Running(context, enumerator, node, vertex.id)


def _number(running: _Running, call: _Call) -> CallForEnumerator:
    number = next(_NUMBERS)
    running.called[number] = call
    return CallForEnumerator(number, call.work)


def enumerator_failed(source: ChainedOperator, error: BaseException, when: str = "") -> TaskFailure:
    """Return the exception of a source's enumerator as the failure of the source."""
    message = f"the enumerator of source {source.name!r} failed{when}: {described(error)}"
    where = source.name, source.call_site
    return TaskFailure(
        type(error).__name__, message, "", *where, recoverable=is_recoverable(error), is_outage=is_outage(error)
    )
