"""A pool of processes of its own, in which a function on batches is hosted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..output_tag import OutputTag


@dataclass(frozen=True)
class ActorPool:
    """Processes that hold a function, often a model, and process batches: Ray actors, or threads of a local run.

    >>> ActorPool(4, num_gpus=0.5, batch_size=32).num_gpus
    0.5

    Args:
        size: processes in all; those of a step are shared out to its subtasks.
        num_cpus, num_gpus, resources: what each takes of the cluster.
        batch_size: records a batch, at least 1, or "adaptive": it grows while that makes a record cheaper and a batch
            takes less than `target_latency_ms`.
        largest_batch: records, for "adaptive".
        target_latency_ms: what a batch may take, for "adaptive".
        max_wait_ms: how long a record waits for a batch to be full.
        in_flight: batches under way for each process, at least 1; more wait, and so does the input.
        ordered: results in the order of the records; else as they come, never across a watermark.
        timeout_ms: of one call; then the process is replaced. 0: for ever.
        start_timeout_ms: within which a process must be there, with its function.
        max_retries: further calls after one that failed or whose process died.
        retry_delay_ms: before the first of them; it doubles up to `max_retry_delay_ms`.
        open_after: failures in a row after which nothing is called but a probe now and then.
        probe_after_ms: between a failure and the next probe.
        open_deadline_ms: the job fails when no probe has succeeded for so long.
        side_output: where records go that have no result; then neither they nor failures in a row fail the job.

    Raises:
        ValueError: a number is out of its range.
    """

    size: int = 1
    num_cpus: float = 1
    num_gpus: float = 0
    resources: dict[str, float] = field(default_factory=dict)
    batch_size: int | str = "adaptive"
    largest_batch: int = 4096
    target_latency_ms: int = 200
    max_wait_ms: int = 20
    in_flight: int = 2
    ordered: bool = True
    timeout_ms: int = 60_000
    start_timeout_ms: int = 300_000
    max_retries: int = 3
    retry_delay_ms: int = 100
    max_retry_delay_ms: int = 5_000
    open_after: int = 5
    probe_after_ms: int = 1_000
    open_deadline_ms: int = 60_000
    side_output: OutputTag | None = None

    def __post_init__(self) -> None:
        for name in ("size", "largest_batch", "target_latency_ms", "in_flight", "open_after", "start_timeout_ms"):
            self._ensure(name, 1)
        for name in ("num_cpus", "num_gpus", "max_wait_ms", "timeout_ms", "max_retries", "retry_delay_ms"):
            self._ensure(name, 0)
        for name in ("max_retry_delay_ms", "probe_after_ms", "open_deadline_ms"):
            self._ensure(name, 0)
        if self.batch_size != "adaptive":
            self._ensure("batch_size", 1)
        if self.side_output is not None and not isinstance(self.side_output, OutputTag):
            raise ValueError(f"side_output must be an OutputTag, found {self.side_output!r}")

    def _ensure(self, name: str, least: int) -> None:
        value: Any = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < least:
            raise ValueError(f"{name} must be a number of at least {least}, found {value!r}")

    def retry_delay(self, attempts: int) -> int:
        """Return the milliseconds before the next call, from the number of calls before it.

        >>> [ActorPool().retry_delay(attempts) for attempts in (1, 2, 3, 9)]
        [100, 200, 400, 5000]
        """
        return min(self.max_retry_delay_ms, self.retry_delay_ms << min(attempts - 1, 30))

    def share(self, subtask: int, parallelism: int) -> int:
        """Return the number of the processes that are those of a subtask.

        >>> [ActorPool(5).share(subtask, 3) for subtask in range(3)]
        [2, 2, 1]
        """
        return self.size // parallelism + (subtask < self.size % parallelism)


def as_pool(concurrency: int | ActorPool) -> ActorPool:
    """Return the pool that was passed as `concurrency`, or a pool of that number of processes.

    Raises:
        ValueError: it is neither, or below 1.
    """
    if isinstance(concurrency, ActorPool):
        return concurrency
    if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
        raise ValueError(f"concurrency must be a number of at least 1, or an ActorPool, found {concurrency!r}")
    return ActorPool(concurrency)


__all__ = ["ActorPool", "as_pool"]
