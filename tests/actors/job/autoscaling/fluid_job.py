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
STEP_S = 5
SOURCE, MAP, KEYED = "Source: in", "Map", "Keyed"


def three_steps(parallelism: int = 1, **options: str) -> JobGraph:
    """Source -> Map -> keyed aggregation, each a vertex of its own; option names without `job.autoscaler.`."""
    changed = {f"job.autoscaler.{key.replace('__', '.').replace('_', '-')}": value for key, value in options.items()}
    env = StreamExecutionEnvironment({**OPTIONS, **changed})
    env.set_parallelism(parallelism)
    numbers = env.from_source(DataGeneratorSource(), source_name="in").rebalance()
    mapped = numbers.map(lambda number: (number % 7, 1)).name(MAP)
    mapped.key_by(lambda pair: pair[0]).sum(1).name(KEYED).sink_to(DiscardingSink())
    return env.get_job_graph("flow")


@dataclass
class FluidJob:
    """Moves records as numbers, five seconds at a time.

    Args:
        graph: of `three_steps`.
        load: records a second that arrive, by the second.
        speeds: first words of a vertex's name -> records a second that one subtask can take.
        hot: share of the records with one key, which one subtask of the keyed vertex takes.
        limit: records a second that the outside system behind the keyed vertex takes, over all subtasks.
        pause_s: of a rescaling.
    """

    graph: JobGraph
    load: Callable[[float], float]
    speeds: dict[str, float]
    hot: float = 0.0
    limit: float = math.inf
    pause_s: int = 5
    past: dict[str, object] = field(default_factory=dict)
    lag: float = 0.0
    second: int = 0
    slot_seconds: int = 0
    rescales: list[tuple[int, dict[str, int]]] = field(default_factory=list)
    lags: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        numbers = count()
        self.new_id = lambda: f"{next(numbers):032x}"
        self.autoscaler = Autoscaler(self.graph.configuration, self.new_id, self.past)
        self._paused, self._request = 0, ""
        self._deploy()

    def _deploy(self) -> None:
        self.executions = [
            Execution(TaskAddress(self.new_id()), vertex, subtask, 0, ExecutionState.RUNNING)
            for vertex in self.graph.vertices
            for subtask in range(vertex.parallelism)
        ]
        self._totals = {e.attempt: [0.0, 0.0, 0.0] for e in self.executions}

    @property
    def parallelism(self) -> dict[str, int]:
        return {vertex.name.split(" ->")[0]: vertex.parallelism for vertex in self.graph.vertices}

    def shares(self, execution: Execution) -> float:
        """The share of the records that a subtask takes."""
        even = 1 / execution.vertex.parallelism
        if not execution.vertex.name.startswith(KEYED):
            return even
        return self.hot * (execution.subtask == 0) + (1 - self.hot) * even

    def speed(self, execution: Execution) -> float:
        speeds = (speed for name, speed in self.speeds.items() if execution.vertex.name.startswith(name))
        speed = next(speeds, 1e6)
        return min(speed, self.limit / execution.vertex.parallelism) if execution.vertex.is_output else speed

    @property
    def capacity(self) -> float:
        """Records a second that the job can take with its present parallelisms."""
        return min(self.speed(e) / share for e in self.executions if (share := self.shares(e)))

    def run(self, seconds: int) -> FluidJob:
        for _ in range(seconds // STEP_S):
            self._step()
        return self

    def _step(self) -> None:
        self.second += STEP_S
        self.lag += STEP_S * max(0.0, self.load(self.second))
        self.lags.append(self.lag)
        self.slot_seconds += STEP_S * max(vertex.parallelism for vertex in self.graph.vertices)
        if self._paused:
            self._paused -= STEP_S
            if self._paused <= 0:
                self._paused = 0
                self._deploy()
                self.autoscaler.answered(AnswerRescale(self._request, self.pause_s * 1000))
            return
        flow = min(self.lag, self.capacity * STEP_S)
        is_held_up = flow < self.lag
        self.lag -= flow
        for execution in self.executions:
            totals = self._totals[execution.attempt]
            taken = flow * self.shares(execution)
            busy = min(STEP_S, taken / self.speed(execution))
            totals[0] += taken
            totals[1] += busy
            totals[2] += (STEP_S - busy) if is_held_up and execution.vertex.is_input else 0.0
            self._report(execution, *totals)
        request = self.autoscaler.tick(self.graph, self.executions, self.second * 1000)
        if request is not None:
            self._request, self._paused = request.request_id, self.pause_s
            self.graph = rescaled_graph(self.graph, request.parallelism)
            self.rescales.append((self.second, self.parallelism))

    def _report(self, execution: Execution, taken: float, busy_s: float, blocked_s: float) -> None:
        sources = [e for e in self.executions if e.vertex.is_input]
        head = {"numRecordsOut": taken, "metrics": {"pendingRecords": self.lag / len(sources)}}
        execution.metrics_ms = self.second * 1000
        execution.metrics = {
            "numRecordsIn": 0 if execution.vertex.is_input else taken,
            "numRecordsOut": 0 if execution.vertex.is_output else taken,
            "accumulateBusyTimeMs": busy_s * 1000,
            "accumulateBackPressuredTimeMs": blocked_s * 1000,
            "operators": [head],
        }

    @property
    def turns(self) -> int:
        """How often the widest parallelism has gone down after it went up, or the other way round."""
        widths = [max(widths.values()) for _, widths in self.rescales]
        steps = [after - before for before, after in zip(widths, widths[1:], strict=False) if after != before]
        signs = [step > 0 for step in steps]
        return sum(a != b for a, b in zip(signs, signs[1:], strict=False))
