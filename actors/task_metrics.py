"""What a task counts, under Flink's names, as one plain dictionary a report."""

from __future__ import annotations

from typing import Any

from rayflink.common.metrics import MetricGroup

from rayflink.operators.chain import ChainLink

from .conversations import Conversations
from .exchange.gate import InputGate
from .exchange.writer import RecordWriter
from .messages import TaskDeployment


class TaskMetrics:
    """Counters of one attempt, and the time it spent busy, idle and back-pressured."""

    def __init__(self, deployment: TaskDeployment, clock: Any) -> None:
        self.group = MetricGroup().add_group("task", deployment.vertex_name)
        self._clock = clock
        self._last_s = clock.monotonic()
        self._spent = {"busy": 0.0, "idle": 0.0, "back-pressured": 0.0}
        self._rates = {"busy": 0.0, "idle": 0.0, "back-pressured": 0.0}
        self.close_errors = 0

    def closing_failed(self) -> None:
        """Something could not be closed or removed after a failure that is reported already; it is counted."""
        self.close_errors += 1

    def spent(self, what: str, seconds: float) -> None:
        """Add to the time spent "busy", "idle" or "back-pressured"."""
        self._spent[what] += seconds

    def snapshot(
        self,
        links: list[ChainLink],
        writers: list[RecordWriter],
        gate: InputGate,
        valve: Any,
        peers: Conversations,
    ) -> dict[str, Any]:
        """All counters now; the rates are over the time since the last call."""
        self._update_rates()
        subs = [sub for writer in writers for sub in writer.partition.subpartitions]
        records_in = links[0].records_in if gate.channels else 0
        records_out = sum(writer.rows_written for writer in writers)
        return {
            "numRecordsIn": records_in,
            "numRecordsOut": records_out if writers else 0,
            "numBytesIn": sum(channel.bytes_in for channel in gate.channels),
            "numBuffersIn": sum(channel.buffers_in for channel in gate.channels),
            "numBytesOut": sum(sub.bytes_sent for sub in subs),
            "numBuffersOut": sum(sub.buffers_sent for sub in subs),
            "busyTimeMsPerSecond": round(self._rates["busy"] * 1000),
            "idleTimeMsPerSecond": round(self._rates["idle"] * 1000),
            "backPressuredTimeMsPerSecond": round(self._rates["back-pressured"] * 1000),
            "busyTimeMs": round(self._spent["busy"] * 1000),
            "backPressuredTimeMs": round(self._spent["back-pressured"] * 1000),
            "currentInputWatermarks": list(valve.watermarks),
            "queuedBytes": sum(sub.queued_bytes for sub in subs),
            "calls": peers.calls,
            "closeErrors": self.close_errors,
            "staleMessages": peers.stale_messages,
            "repeatedMessages": peers.repeated,
            "effectiveBufferTimeoutMs": max((w.effective_timeout_ms for w in writers), default=0.0),
            "operators": [
                {
                    "id": link.operator.ctx.operator_id,
                    "name": link.operator.ctx.operator_name,
                    "numRecordsIn": link.records_in,
                    "numRecordsOut": link.records_out,
                    "currentInputWatermark": link.input_watermark,
                    "metrics": link.operator.ctx.metrics.snapshot(),
                }
                for link in links
                if hasattr(link.operator, "ctx")
            ],
        }

    def _update_rates(self) -> None:
        now = self._clock.monotonic()
        elapsed = now - self._last_s
        if elapsed <= 0:
            return
        for what, seconds in self._spent.items():
            before = self._rates.get(f"{what} before", 0.0)
            self._rates[what] = min(1.0, (seconds - before) / elapsed)
            self._rates[f"{what} before"] = seconds
        self._last_s = now
