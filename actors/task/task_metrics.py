"""The metrics of a task, under Flink's names, as one plain dictionary for each report.

The data path adds to plain attributes of chain, gate and subpartitions; a report brings them into the metric group.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from rayflink.common.configuration import Configuration
from rayflink.common.metrics import metric_names as names
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.metrics.metric_scopes import ScopeFormats
from rayflink.common.metrics.task_metric_group import TaskFacts, TaskMetricGroup, add_task_for_job
from rayflink.common.options import registry as options
from rayflink.common.records.batches import MAX_TIMESTAMP, MIN_TIMESTAMP
from rayflink.operators.base import SourceOperator
from rayflink.operators.chain import ChainLink
from rayflink.operators.event_time.watermark_valve import InputWatermarks
from rayflink.state.clock import Clock

from ..exchange.endpoint import ExchangeEndpoint
from ..exchange.gate import InputGate
from ..exchange.writer import RecordWriter
from ..messages.messages import TaskDeployment
from .buffer_usage import buffer_gauges
from .task_checkpoints import TaskCheckpoints

_TOTALS = {
    "busy": names.BUSY_TIME_TOTAL,
    "idle": names.IDLE_TIME_TOTAL,
    "back-pressured": names.BACK_PRESSURED_TIME_TOTAL,
}
_RATES = {"busy": names.BUSY_TIME, "idle": names.IDLE_TIME, "back-pressured": names.BACK_PRESSURED_TIME}


def _mark_of(valve: InputWatermarks, index: int) -> int | None:
    mark = valve.by_input[index]
    return None if mark == MIN_TIMESTAMP else mark


class TaskMetrics:
    """Counters of one attempt, and the time it spent busy, idle and back-pressured.

    `group` is the task's metric group, below its job's; operators and their functions register under it. The gauges of
    checkpoints are registered by `measures_checkpoints`, when the task is created, all others by `_bind`, at the first
    report; counts are brought up to date by `_count`, at each report.
    """

    def __init__(self, deployment: TaskDeployment, clock: Clock) -> None:
        facts = TaskFacts(
            deployment.job_id, deployment.job_name, deployment.vertex_id, deployment.attempt,
            deployment.vertex_name, deployment.subtask, deployment.attempt_number,
        )  # fmt: skip
        configuration = Configuration.from_dict(deployment.config)
        detailed = configuration.get(options.DETAILED_NETWORK_METRICS)
        self._formats = ScopeFormats.of(configuration)
        self.group: TaskMetricGroup = add_task_for_job(MetricGroup(), facts, detailed)
        self.group.identify(self._formats, "localhost", "local")
        self._clock = clock
        self._last_s = clock.monotonic()
        self._spent = dict.fromkeys(_RATES, 0.0)
        self._before = dict.fromkeys(_RATES, 0.0)
        self._rates = dict.fromkeys(_RATES, 0.0)
        self._stepped: tuple[float, str] | None = None
        self._bound = False
        self._known: set[str] = set()
        self.close_errors = 0

    def measures_checkpoints(self, checkpoints: TaskCheckpoints) -> None:
        """Register the times of the task's checkpoints; those of the newest are in nanoseconds, as in Flink."""
        gauge = self.group.group.gauge
        gauge(names.CHECKPOINT_ALIGNMENT_TIME, lambda: checkpoints.measured.alignment_ms * 1_000_000)
        gauge(names.CHECKPOINT_START_DELAY, lambda: checkpoints.measured.start_delay_ms * 1_000_000)
        gauge(names.OLDEST_BARRIER_WAITING_TIME, checkpoints.oldest_barrier_wait_ms)

    def located(self, host: str, process_id: str) -> None:
        """Set the process in which the task runs; until then it is "local" on "localhost"."""
        self.group.identify(self._formats, host, process_id)

    def closing_failed(self) -> None:
        """Count a failure to close or remove something after a failure that is reported already."""
        self.close_errors += 1

    def spent(self, what: str, seconds: float) -> None:
        """Add to the time spent "busy", "idle" or "back-pressured"."""
        self._spent[what] += seconds

    def stepped(self, started: float, ended: float, back_pressured: bool) -> None:
        """Account for the time between two steps, now that its reason is known, in a thread that runs several tasks.

        Args:
            back_pressured: whether it now waits for room in its outputs.
        """
        if self._stepped is not None:
            before, waited_for = self._stepped
            self._spent[waited_for] += max(0.0, started - before)
        self._spent["busy"] += ended - started
        self._stepped = (ended, "back-pressured" if back_pressured else "idle")

    def worked_on(self, seconds: float) -> None:
        """Count time after the last step as busy, for a runner whose steps take no time by its clock."""
        self._spent["busy"] += seconds
        if self._stepped is not None:
            ended, waited_for = self._stepped
            self._stepped = (ended + seconds, waited_for)

    def close(self) -> None:
        """Close the metric group of the task and all below it."""
        self.group.close()

    def snapshot(
        self,
        links: list[ChainLink],
        writers: list[RecordWriter],
        gate: InputGate,
        valve: InputWatermarks,
        peers: ExchangeEndpoint,
    ) -> dict[str, Any]:
        """Return all metrics now; the rates are over the time since the last call."""
        self._update_rates()
        if not self._bound:
            self._bind(writers, gate, valve, peers)
            self._bind_inputs(links[0], valve)
        self._count(links, writers, gate)
        operators = [self._operator(link, not gate.channels) for link in links if hasattr(link.operator, "ctx")]
        scope = self._formats.bound(self._formats.task, self.group.variables())
        own = self.group.group.snapshot(self._clock.now_ms())
        report = {**own, "scope": scope, "delimiter": self._formats.delimiter, "operators": operators}
        samples = [sample for writer in writers if (sample := writer.key_sample) is not None]
        return {**report, names.KEY_SAMPLES: samples} if samples else report

    def _bind(
        self, writers: list[RecordWriter], gate: InputGate, valve: InputWatermarks, peers: ExchangeEndpoint
    ) -> None:
        """Register the values that are read when they are reported."""
        self._bound = True
        subs = [sub for writer in writers for sub in writer.partition.subpartitions]
        gauge = self.group.group.gauge
        for what, name in _RATES.items():
            gauge(name, partial(self._rate, what))
        for what, name in _TOTALS.items():
            gauge(name, partial(self._total, what))
        gauge(names.IS_BACK_PRESSURED, lambda: any(writer.partition.is_full for writer in writers))
        gauge(names.BUSY_TIME_OF_VERTEX, lambda: round(self._spent["busy"] * 1000))
        gauge(names.BACK_PRESSURED_TIME_OF_VERTEX, lambda: round(self._spent["back-pressured"] * 1000))
        gauge(names.CURRENT_INPUT_WATERMARKS, lambda: list(valve.watermarks))
        gauge(names.QUEUED_BYTES, lambda: sum(sub.queued_bytes for sub in subs))
        gauge(names.RECORDS_IN_FLIGHT, lambda: sum(sub.rows_in_flight for sub in subs))
        gauge(names.RECORDS_ALLOWED_IN_FLIGHT, lambda: gate.window_rows)
        gauge(names.CALLS, lambda: peers.calls)
        gauge(names.CLOSE_ERRORS, lambda: self.close_errors)
        gauge(names.STALE_MESSAGES, lambda: peers.stale_messages)
        gauge(names.REPEATED_MESSAGES, lambda: peers.repeated)
        gauge(names.EFFECTIVE_BUFFER_TIMEOUT, lambda: max((w.effective_timeout_ms for w in writers), default=0.0))
        self.group.network_buffers(buffer_gauges(gate, writers))

    def _bind_inputs(self, head: ChainLink, valve: InputWatermarks) -> None:
        """Register the watermark of each input of an operator that has two."""
        if len(valve.by_input) < 2 or not hasattr(head.operator, "ctx"):
            return
        group = self.group.operator(head.operator.ctx.operator_name, head.operator.ctx.operator_id).group
        for index, name in enumerate(names.CURRENT_INPUT_N_WATERMARKS):
            group.gauge(name, partial(_mark_of, valve, index))

    def _rate(self, what: str) -> int:
        return round(self._rates[what] * 1000)

    def _total(self, what: str) -> int:
        return round(self._spent[what] * 1000)

    def _count(self, links: list[ChainLink], writers: list[RecordWriter], gate: InputGate) -> None:
        task = self.group
        subs = [sub for writer in writers for sub in writer.partition.subpartitions]
        task.num_records_in.count = links[0].records_in if gate.channels else 0
        task.num_records_out.count = sum(writer.rows_written for writer in writers)
        task.num_bytes_in.count = sum(channel.bytes_in for channel in gate.channels)
        task.num_buffers_in.count = sum(channel.buffers_in for channel in gate.channels)
        task.num_bytes_out.count = sum(sub.bytes_sent for sub in subs)
        task.num_buffers_out.count = sum(sub.buffers_sent for sub in subs)

    def _operator(self, link: ChainLink, in_source: bool) -> dict[str, Any]:
        """Return the metrics of one operator: the counts of its chain link, and under "metrics" all its group holds."""
        ctx = link.operator.ctx
        metrics = self.group.operator(ctx.operator_name, ctx.operator_id)
        metrics.num_records_in.count, metrics.num_records_out.count = link.records_in, link.records_out
        if ctx.operator_id not in self._known:
            self._known.add(ctx.operator_id)
            metrics.watermarks(lambda: link.input_watermark, lambda: link.output_watermark)
            if in_source and isinstance(link.operator, SourceOperator):
                metrics.group.gauge(names.WATERMARK_LAG, lambda: self._lag(link.output_watermark))
        variables = metrics.group.variable_groups()
        return {
            "id": ctx.operator_id,
            "name": ctx.operator_name,
            "scope": self._formats.bound(self._formats.operator, metrics.group.get_all_variables()),
            names.NUM_RECORDS_IN: link.records_in,
            names.NUM_RECORDS_OUT: link.records_out,
            names.CURRENT_INPUT_WATERMARK: link.input_watermark,
            names.CURRENT_OUTPUT_WATERMARK: link.output_watermark,
            "metrics": metrics.group.snapshot(self._clock.now_ms()),
            **({"variables": variables} if variables else {}),
        }

    def _lag(self, watermark: int | None) -> int | None:
        """Return the milliseconds from a watermark to now; None where there is none, or it is the last."""
        if watermark is None or not MIN_TIMESTAMP < watermark < MAX_TIMESTAMP:
            return None
        return int(self._clock.now_ms()) - watermark

    def _update_rates(self) -> None:
        now = self._clock.monotonic()
        elapsed = now - self._last_s
        if elapsed <= 0:
            return
        for what, seconds in self._spent.items():
            self._rates[what] = min(1.0, (seconds - self._before[what]) / elapsed)
            self._before[what] = seconds
        self._last_s = now
