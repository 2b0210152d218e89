"""A job as flows instead of records: an autoscaler under load curves, in milliseconds of a test."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from rayflink.actors.exchange.frames import TaskAddress
from rayflink.actors.job.autoscaling.autoscaler import Autoscaler
from rayflink.actors.job.rescaled_graph import rescaled_graph
from rayflink.actors.messages.commands import AnswerRescale
from rayflink.actors.messages.executions import Execution
from rayflink.actors.messages.states import ExecutionState
from rayflink.connectors.discard import DiscardingSink
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.graph.job_graph import JobGraph
from rayflink.state.keys.key_groups import key_group_range

OPTIONS = {
    "job.autoscaler.enabled": "true",
    "autoscaler.standalone.control-loop.interval": "5 s",
    "job.autoscaler.metrics.window": "60 s",
    "job.autoscaler.stabilization.interval": "10 s",
    "job.autoscaler.catch-up.duration": "2 min",
    "job.autoscaler.restart.time": "5 s",
    "job.autoscaler.scale-down.interval": "2 min",
    "job.autoscaler.vertex.max-parallelism": "32",
}
SOURCE, MAP, KEYED = "Source: in", "Map", "Keyed"


def three_steps(parallelism: int = 1, key_groups: int = 128, **options: str) -> JobGraph:
    """Return source -> Map -> keyed aggregation, each a vertex of its own; option names without `job.autoscaler.`."""
    changed = {f"job.autoscaler.{key.replace('__', '.').replace('_', '-')}": value for key, value in options.items()}
    env = StreamExecutionEnvironment({**OPTIONS, **changed})
    env.set_parallelism(parallelism)
    env.set_max_parallelism(key_groups)
    numbers = env.from_source(DataGeneratorSource(), source_name="in").rebalance()
    mapped = numbers.map(lambda number: (number % 7, 1)).name(MAP)
    mapped.key_by(lambda pair: pair[0]).sum(1).name(KEYED).sink_to(DiscardingSink())
    return env.get_job_graph("flow")


@dataclass
class _FluidTask:
    """A subtask with what it has taken, and how long it was busy or held up."""

    execution: Execution
    share: float
    speed: float
    taken: float = 0.0
    busy_s: float = 0.0
    blocked_s: float = 0.0

    def report(self, second: int, lag: float | None) -> None:
        """Report at a second; `lag` is the part of a source, None where it does not know."""
        execution, taken = self.execution, self.taken
        execution.metrics_ms = second * 1000
        execution.metrics = {
            "numRecordsIn": 0 if execution.vertex.is_input else taken,
            "numRecordsOut": 0 if execution.vertex.is_output else taken,
            "accumulateBusyTimeMs": self.busy_s * 1000,
            "accumulateBackPressuredTimeMs": self.blocked_s * 1000,
            "operators": [{"numRecordsOut": taken, "metrics": {} if lag is None else {"pendingRecords": lag}}],
        }


@dataclass
class FluidJob:
    """Moves records as numbers, a step at a time.

    Args:
        graph: of `three_steps`.
        load: records a second that arrive, by the second.
        speeds: first words of a vertex's name -> records a second that one subtask can take.
        hot: share of the records with one key, which one subtask of the keyed vertex takes; or that by the second.
        limit: records a second that the outside system behind the keyed vertex takes, over all subtasks.
        pause_s: of a rescaling.
        past: decisions of an earlier coordinator, as `DecisionHistory.as_json` returned them.
        lag: records that wait at the start.
        step_s: length of a step.
        slots: that the cluster has; a request for more is refused.
        reports_lag: the source says how many records wait.
    """

    graph: JobGraph
    load: Callable[[float], float]
    speeds: dict[str, float]
    hot: float | Callable[[float], float] = 0.0
    limit: float = math.inf
    pause_s: int = 5
    past: dict[str, object] = field(default_factory=dict)
    lag: float = 0.0
    step_s: int = 5
    slots: int = 1_000
    reports_lag: bool = True
    second: int = 0
    slot_seconds: int = 0
    rescales: list[tuple[int, dict[str, int]]] = field(default_factory=list)
    lags: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._numbers = count()
        self.autoscaler = Autoscaler(self.graph.configuration, self.new_id, self.past)
        self._paused, self._request = 0, ""
        self._deploy()

    def new_id(self) -> str:
        """Return 32 fresh hex digits."""
        return f"{next(self._numbers):032x}"

    def _deploy(self) -> None:
        self.executions = [
            Execution(TaskAddress(self.new_id()), vertex, subtask, 0, ExecutionState.RUNNING)
            for vertex in self.graph.vertices
            for subtask in range(vertex.parallelism)
        ]
        self._tasks = [_FluidTask(each, self._share(each), self._speed(each)) for each in self.executions]
        self._sources = sum(each.vertex.is_input for each in self.executions)

    @property
    def parallelism(self) -> dict[str, int]:
        """Return the subtasks of each vertex, by the first operator of its name."""
        return {vertex.name.split(" ->")[0]: vertex.parallelism for vertex in self.graph.vertices}

    @staticmethod
    def _share(execution: Execution) -> float:
        vertex = execution.vertex
        if not vertex.name.startswith(KEYED):
            return 1 / vertex.parallelism
        groups = key_group_range(execution.subtask, vertex.parallelism, vertex.max_parallelism)
        return len(groups) / vertex.max_parallelism

    def _speed(self, execution: Execution) -> float:
        speeds = (speed for name, speed in self.speeds.items() if execution.vertex.name.startswith(name))
        speed = next(speeds, 1e6)
        return min(speed, self.limit / execution.vertex.parallelism) if execution.vertex.is_output else speed

    def _shares(self) -> list[float]:
        """Return the share of the records that each subtask takes: that of its key groups, and the hot key."""
        hot = self.hot(self.second) if callable(self.hot) else self.hot
        if not hot:
            return [task.share for task in self._tasks]
        return [
            hot * (task.execution.subtask == 0) + (1 - hot) * task.share
            if task.execution.vertex.name.startswith(KEYED) else task.share
            for task in self._tasks
        ]  # fmt: skip

    @property
    def capacity(self) -> float:
        """Return the records a second that the job can take with its present parallelisms."""
        return min(task.speed / share for task, share in zip(self._tasks, self._shares(), strict=True) if share)

    def become(self, parallelism: int) -> None:
        """Give all vertices another parallelism, at once and without a pause."""
        if parallelism != max(vertex.parallelism for vertex in self.graph.vertices):
            self.graph = rescaled_graph(self.graph, {vertex.id: parallelism for vertex in self.graph.vertices})
            self._deploy()

    def run(self, seconds: int) -> FluidJob:
        """Go on for some seconds; return the job."""
        for _ in range(seconds // self.step_s):
            self._step()
        return self

    def _step(self) -> None:
        self.second += self.step_s
        self.lag += self.step_s * max(0.0, self.load(self.second))
        self.slot_seconds += self.step_s * max(vertex.parallelism for vertex in self.graph.vertices)
        if self._paused:
            self._pause()
        else:
            self._flow()
        self.lags.append(self.lag)

    def _pause(self) -> None:
        self._paused -= self.step_s
        if self._paused <= 0:
            self._paused = 0
            self._deploy()
            self.autoscaler.answered(AnswerRescale(self._request, self.pause_s * 1000))

    def _flow(self) -> None:
        flow = min(self.lag, self.capacity * self.step_s)
        is_held_up = flow < self.lag
        self.lag -= flow
        if not self.autoscaler.settings.enabled:
            return
        for task, share in zip(self._tasks, self._shares(), strict=True):
            taken = flow * share
            busy = min(self.step_s, taken / task.speed)
            task.taken += taken
            task.busy_s += busy
            task.blocked_s += (self.step_s - busy) if is_held_up and task.execution.vertex.is_input else 0.0
            task.report(self.second, self.lag / self._sources if self.reports_lag else None)
        request = self.autoscaler.tick(self.graph, self.executions, self.second * 1000)
        if request is not None and max(request.parallelism.values()) > self.slots:
            self.autoscaler.answered(AnswerRescale(request.request_id, failure="there are not enough free slots"))
        elif request is not None:
            self._request, self._paused = request.request_id, self.pause_s
            self.graph = rescaled_graph(self.graph, request.parallelism)
            self.rescales.append((self.second, self.parallelism))

    @property
    def turns(self) -> int:
        """Return how often the widest parallelism has gone down after it went up, or the other way round."""
        widths = [max(widths.values()) for _, widths in self.rescales]
        steps = [after - before for before, after in zip(widths, widths[1:], strict=False) if after != before]
        signs = [step > 0 for step in steps]
        return sum(a != b for a, b in zip(signs, signs[1:], strict=False))
