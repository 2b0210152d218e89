"""back_pressure.svg: how full the buffers of a job are while its sink is slow, as its tasks report it.

The job runs in the simulator: the same tasks, exchange and credit as on Ray, in virtual time and from a fixed seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from drawing import Frame, label, picture

from rayflink.actors.messages.messages import TaskReport
from rayflink.common import WatermarkStrategy
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors import DataGeneratorSource, DiscardingSink
from rayflink.testing import SimulatedCluster
from rayflink.testing.faults import StepDelay

SEED = 1
SECONDS, RECORDS_PER_SECOND = 40, 100
SLOW_FROM_S, SLOW_TO_S, SLOW_RECORD_MS = 10, 25, 20
OUTPUT, INPUT = "Shuffle.Netty.Output.Buffers.outPoolUsage", "Shuffle.Netty.Input.Buffers.inPoolUsage"
TASKS = ("Source: readings", "enrich", "Sink: store")


@dataclass
class SlowForAWhile(StepDelay):
    """Each record of the sink takes longer, from one second of the job to another."""

    now_s: float = 0.0

    def step_delay_ms(self, task: str, records: int, draw: Any) -> int:
        return SLOW_RECORD_MS * records if "Sink" in task and SLOW_FROM_S <= self.now_s < SLOW_TO_S else 0


class ObservedRun:
    """A run, and (second, output pool usage, input pool usage) of each task's reports."""

    def __init__(self, graph: Any, slow: SlowForAWhile) -> None:
        self.slow = slow
        self.cluster = SimulatedCluster(graph, SEED, [slow], on_report=self.report)
        self.start_ms = self.cluster.clock.now_ms()
        self.usage: dict[str, list[tuple[float, float, float]]] = {name: [] for name in TASKS}

    def second(self) -> float:
        """Return the seconds since the start."""
        return (self.cluster.clock.now_ms() - self.start_ms) / 1000

    def observe(self) -> None:
        """Let the fault know what time it is."""
        self.slow.now_s = self.second()

    def report(self, event: Any) -> None:
        """Keep what a task reports."""
        if isinstance(event, TaskReport) and event.attempt in self.cluster.tasks:
            title = self.cluster.tasks[event.attempt].deployment.name
            name = next(name for name in TASKS if name in title)
            self.usage[name].append((self.second(), event.metrics[OUTPUT], event.metrics[INPUT]))


def run() -> dict[str, list[tuple[float, float, float]]]:
    """The reports of each task."""
    small = {"rayflink.batch.max-rows": 100, "rayflink.batch.max-bytes": "400 bytes"}  # few records fill a buffer
    by_credit_alone = {"taskmanager.network.memory.buffer-debloat.enabled": "false"}
    env = StreamExecutionEnvironment({**small, **by_credit_alone, "execution.buffer-timeout.interval": "20 ms"})
    source = DataGeneratorSource(lambda n: n, SECONDS * RECORDS_PER_SECOND, RECORDS_PER_SECOND)
    readings = env.from_source(source, WatermarkStrategy.no_watermarks(), "readings")
    readings.rebalance().map(lambda n: n).name("enrich").rebalance().sink_to(DiscardingSink()).name("store")
    run = ObservedRun(env.get_job_graph("back-pressure"), SlowForAWhile())
    run.cluster.run(run.observe)
    return run.usage


def back_pressure_picture() -> str:
    """Draw the run: for each task how full its input and its output buffers are."""
    rows: list[str] = []
    usage = run()
    last = max(sample[0] for samples in usage.values() for sample in samples)
    charts = [(name, place, index) for name in TASKS for place, index in (("input", 2), ("output", 1))]
    charts = [chart for chart in charts if chart[:2] not in {(TASKS[0], "input"), (TASKS[-1], "output")}]
    for position, (name, place, index) in enumerate(charts):
        frame = Frame(190, 52 + position * 84, 570, 60, (0, last), (0, 1.15))
        frame.box("slow", (SLOW_FROM_S, SLOW_TO_S), (0, 1))
        frame.line("grid", [(0, 1), (last, 1)])
        points = [(sample[0], sample[index]) for sample in usage[name]]
        frame.line("area", [(points[0][0], 0), *points, (points[-1][0], 0)], closed=True)
        frame.axes()
        frame.text("100 %", -0.3, 0.94, anchor="end")
        frame.text("0", -0.3, 0, anchor="end")
        rows += frame.drawn
        rows += [label(name, 16, frame.top + 26, "title"), label(f"{place} buffers", 16, frame.top + 44)]
    bottom = 52 + len(charts) * 84
    frame = Frame(190, bottom, 570, 1, (0, last), (0, 1))
    for second in range(0, int(last) + 1, 10):
        frame.text(f"{second} s", second, -12, anchor="middle")
    frame.text("the sink is slow", (SLOW_FROM_S + SLOW_TO_S) / 2, -30, anchor="middle")
    return picture("A slow sink stops its source: how full buffers are", 790, bottom + 48, [*rows, *frame.drawn])
