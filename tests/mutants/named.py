"""Changes written by hand: each takes away what a row or a clause names, so that a test it cites must fail."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from tests.mutants.tracing import ROOT
from tests.mutants.trial import Change


@dataclass(frozen=True)
class Named:
    """One change of one place.

    Args:
        row: a row, or row and clause, as in "M05 shared".
        what: how the product behaves after it.
        path: of the module, relative to the repository.
        before: text that stands in the module once, within a function.
        after: what replaces it, with as many lines.
    """

    row: str
    what: str
    path: str
    before: str
    after: str

    def change(self) -> Change:
        """The module with the change.

        Raises: ValueError: the text does not stand there once, or the lines would move.
        """
        source = (ROOT / self.path).read_text(encoding="utf-8")
        if source.count(self.before) != 1 or self.before.count("\n") != self.after.count("\n"):
            raise ValueError(f"{self.path}: {self.before!r} must stand there once, and keep its lines; mend the list")
        return Change(self.path, ast.parse(source.replace(self.before, self.after)))


GATE = "actors/exchange/gate.py"
SETTINGS = "actors/messages/settings.py"
RESTARTS = "actors/job/failures/restarts.py"
TASK_CHECKPOINTS = "actors/task/task_checkpoints.py"
TRACKER_OR_ALIGNER = "alignment.BarrierTracker(width) if at_least_once else alignment.BarrierAligner(width, in_order)"

NAMED = (
    Named("B12", "lengths of strings count code points", "state/binary.py",
          "_write_units(out, len(units))", "_write_units(out, len(value))"),
    Named("B16 appended", "a type that cannot be determined passes unnoticed until the graph is made",
          "rayflink/datastream/streams/recording.py", "type_before = before.declared_type()",
          "type_before = before.output_type"),
    Named("C05", "a key of several names is None", "rayflink/datastream/streams/selectors.py",
          "return tuple(field(record) for field in self._fields)", "return None"),
    Named("C16 by-name", "every selection gets all records", "rayflink/operators/selection.py",
          "if not selection.names.isdisjoint(names)", "if True"),
    Named("C20 fold", "every fold begins with nothing", "rayflink/operators/windows/folding.py",
          "return isolated(self._initial)\n", "return None\n"),
    Named("C25 endless", "-1 retries are none", "rayflink/connectors/socket_text.py",
          "self._source.max_retries == -1 or self._retries", "self._retries"),
    Named("D04", "each batch begins at the first receiver", "actors/exchange/selectors.py",
          "self._next = (first + count) % width", "self._next = 0"),
    Named("D12 selectors", "outputs ignore their selectors", "rayflink/operators/selection.py",
          "if selection is None:", "if True:"),
    Named("E13 everywhere", "a watermark goes to the first channel alone", "actors/exchange/writer.py",
          "for sub in self.partition.subpartitions:\n            sub.add(event)",
          "for sub in self.partition.subpartitions[:1]:\n            sub.add(event)"),
    Named("E13 least", "the clock follows the fastest channel", "rayflink/operators/event_time/watermark_valve.py",
          "self._rise_to(min(aligned))", "self._rise_to(max(aligned))"),
    Named("E14 least", "the clock follows the fastest channel", "rayflink/operators/event_time/watermark_valve.py",
          "self._rise_to(min(aligned))", "self._rise_to(max(aligned))"),
    Named("F05 own", "the windows of a key share one trigger", "rayflink/operators/windows/triggered_windows.py",
          "            self.context.namespace = window\n", "            self.context.namespace = None\n"),
    Named("F31 on-merge", "triggers of sessions that merge begin anew", "rayflink/operators/windows/merging_windows.py",
          "self._trigger.on_merge(result, trigger_context)", "pass"),
    Named("F34", "no window is ever over", "rayflink/operators/windows/window_operator.py",
          "return self._event_time and self.cleanup_time(window) <= self.watermark", "return False"),
    Named("F35", "a timer of a session that was merged is an error", "rayflink/operators/windows/triggered_windows.py",
          "if state_window is None:  # a timer", "if False:  # a timer"),
    Named("F36 clear", "a window of the wall clock is never cleared", "rayflink/operators/windows/triggered_windows.py",
          "if ends_windows and timestamp == self.cleanup_time(window):", "if False:"),
    Named("F37", "windows ignore the allowed lateness", "rayflink/operators/windows/window_operator.py",
          "self._lateness_ms = allowed_lateness_ms if self._event_time else 0", "self._lateness_ms = 0"),
    Named("G24", "key groups are those of a hash that is not mixed", "state/keys/key_groups.py",
          "return h % max_parallelism", "return key_hash % max_parallelism"),
    Named("H10", "only one source is triggered", "actors/checkpoints/coordinator.py",
          "for attempt in plan.trigger]",
          "for attempt in plan.trigger[:1]]"),
    Named("H11 broadcast", "the barrier goes to the first output alone", "actors/task/in_flight_capture.py",
          "for writer in writers:",
          "for writer in writers[:1]:"),
    Named("H13", "no channel is held back", TASK_CHECKPOINTS,
          "self._gate.block(action.channel)",
          "pass"),
    Named("H25", "no checkpoint ever goes", "actors/checkpoints/completed.py",
          "dropped, self._checkpoints = self._checkpoints[: -self._retained], self._checkpoints[-self._retained :]",
          "dropped = []"),
    Named("H34", "a checkpoint begins before the task runs", "actors/task/task.py",
          "if self.state is not ExecutionState.RUNNING:\n            self._checkpoints.decline",
          "if False:\n            self._checkpoints.decline"),
    Named("H70 fixed-delay", "one restart less than configured", RESTARTS,
          "if self._failures <= self._attempts else", "if self._failures < self._attempts else"),
    Named("H70 failure-rate", "the end of the interval is outside", RESTARTS,
          "now_ms - self._failures[0] <= self._interval_ms", "now_ms - self._failures[0] < self._interval_ms"),
    Named("I17", "an operator that two edges reach stands in its chain twice", "rayflink/graph/job_graph_builder.py",
          "if start in self._exits:", "if False:"),
    Named("K03", "what was never deployed is asked to end", "actors/job/attempts.py",
          "if execution.state in (ExecutionState.CREATED, ExecutionState.SCHEDULED):",
          "if False:"),
    Named("L16", "data behind the end of a channel are lost", TASK_CHECKPOINTS,
          "if trailing:",
          "if False:"),
    Named("L22 timeout", "a task that does not stop is never killed", "actors/job/attempts.py",
          "if now_ms - since > cancellation_timeout_ms:", "if False:"),
    Named("M05 number", "4096 buffers, whatever is configured", SETTINGS,
          "network_buffers=get(options.NUMBER_OF_BUFFERS),", "network_buffers=4096,"),
    Named("M15", "the first pools take all that is left", "actors/exchange/partition.py",
          "to_give * used // capacity - extra_total", "min(high - low, to_give - extra_total)"),
    Named("N05 waits", "a mail wakes nobody", "actors/on_ray/slots/ray_task.py",
          "self._mailbox.append(message)\n        self._wake.set()",
          "self._mailbox.append(message)\n        pass"),
    Named("N14", "an event goes out before the consumer asks", "actors/exchange/subpartition.py",
          "if self.state is not SubpartitionState.READING or not len(self._entries):",
          "if not len(self._entries):"),
    Named("N28 released", "a channel that has ended keeps its floating buffers", GATE,
          "channel.credit.release()\n                self._unfinished -= 1",
          "pass\n                self._unfinished -= 1"),
    Named("O06 bound", "calls under way have no bound", "actors/exchange/links.py",
          "if self.in_flight >= self._max_in_flight or not (", "if not ("),
    Named("O14 required", "at most one floating buffer is asked for", "actors/exchange/credits.py",
          "self._required = backlog + self.initial", "self._required = min(backlog, 1) + self.initial"),
    Named("O15", "a channel that needs more waits no longer", "actors/exchange/credits.py",
          "            self._add_unannounced()\n        if self.free < self._required:\n",
          "            self._add_unannounced()\n        if False:\n"),
    Named("O16 released", "a released channel goes on asking", "actors/exchange/credits.py",
          "        self._released = True\n", "        pass\n"),
    Named("O18 again", "the first reader is always the next", "actors/exchange/links.py",
          "self._turn = turn + 1", "self._turn = turn"),
    Named("O23", "the backlog of events is ignored", GATE,
          "channel.credit.backlog(frame.backlog)",
          "channel.credit.backlog(frame.backlog if frame.body is not None else 0)"),
    Named("O24", "a buffer that comes too early is taken", GATE,
          "if frame.sequence != channel.next_sequence:", "if frame.sequence < channel.next_sequence:"),
    Named("S13 rejected", "a task of any coordinator is taken", "actors/on_ray/slots/deployment_check.py",
          "elif leader_id != mine.leader_id:", "elif False:"),
    Named("V01 key", "the size of a buffer is 1 MB, whatever is configured", SETTINGS,
          "max_bytes=get(options.BATCH_MAX_BYTES).bytes,", "max_bytes=1 << 20,"),
    Named("V02", "4096 buffers, whatever is configured", SETTINGS,
          "network_buffers=get(options.NUMBER_OF_BUFFERS),", "network_buffers=4096,"),
    Named("V04", "the settings of tasks ignore every option", SETTINGS,
          "get = Configuration.from_dict(config).get\n        when_idle",
          "get = Configuration().get\n        when_idle"),
    Named("V05", "eight floating buffers, whatever is configured", SETTINGS,
          "floating_buffers=get(options.FLOATING_BUFFERS_PER_GATE),", "floating_buffers=8,"),
    Named("V20", "a socket is read 7 bytes at a time", "rayflink/connectors/socket_text.py",
          "self._socket.recv(_CHUNK_BYTES)", "self._socket.recv(7)"),
    Named("V21 timeout", "3 minutes, whatever is configured", SETTINGS,
          "cancellation_timeout_ms=get(options.CANCELLATION_TIMEOUT).to_millis(),", "cancellation_timeout_ms=180_000,"),
    Named("V22", "detailed metrics are on", "actors/task/task_metrics.py",
          "detailed = configuration.get(options.DETAILED_NETWORK_METRICS)", "detailed = True"),
    Named("X11", "session windows raise", "rayflink/operators/windows/session_operator.py",
          "return [stamp + gap_ms for stamp in stamps]", "raise ValueError(gap_ms)"),
    Named("X14", "the last timestamp of a window is its end", "rayflink/operators/windows/window.py",
          "return self.end - 1", "return self.end"),
    Named("X17", "a record at the watermark is not late", "rayflink/operators/windows/window_operator.py",
          "return self._event_time and self.cleanup_time(window) <= self.watermark",
          "return self._event_time and self.cleanup_time(window) < self.watermark"),
    Named("X21", "barriers are counted and not aligned", TASK_CHECKPOINTS,
          TRACKER_OR_ALIGNER, "alignment.BarrierTracker(width)"),
    Named("X22", "barriers are aligned in every mode", TASK_CHECKPOINTS,
          TRACKER_OR_ALIGNER, "alignment.BarrierAligner(width, in_order)"),
    Named("X47", "every partition has one subpartition", "actors/job/deployment.py",
          "subpartitions=max(len(result.subpartitions), 1)", "subpartitions=1"),
    Named("X50 cost", "a buffer costs no credit", "actors/exchange/subpartition.py", "self.credit -= 1", "pass"),
    Named("X53 fills", "buffers may be a byte larger", "actors/exchange/writer.py",
          "most = self._limits.max_arrow_bytes if arrow else self._limits.max_bytes",
          "most = self._limits.max_arrow_bytes if arrow else self._limits.max_bytes + 1"),
)  # fmt: skip
"""In the order of their rows."""
