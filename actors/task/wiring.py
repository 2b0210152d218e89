"""Builds the moving parts of a task from its deployment: selectors, writers, gate, chain."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rayflink.common.errors import ConfigError
from rayflink.common.managed_memory import Allowance, MemoryManager
from rayflink.common.metrics.task_metric_group import TaskMetricGroup
from rayflink.common.options import registry as options
from rayflink.common.text_output.logs import get_logger
from rayflink.common.user_code.isolated_copy import own_copy
from rayflink.common.user_code.value_bytes import to_bytes
from rayflink.common.watermarks import WatermarkAlignment
from rayflink.graph.attributes import NodeKind
from rayflink.graph.job_graph import ChainedOperator, ChainedOutput, NetworkOutput
from rayflink.graph.partitioners import (
    Broadcast,
    Custom,
    Forward,
    Global,
    KeyGroup,
    Rebalance,
    Rescale,
    Shuffle,
)
from rayflink.operators.base import Operator, OperatorContext
from rayflink.operators.chain import ChainEdge, ChainLink, ChainOutput, ElementWriter, OperatorChain
from rayflink.operators.feedback import IterationHead, IterationTail, feedback_queue
from rayflink.operators.selection import Selection
from rayflink.state.clock import Clock
from rayflink.state.private_folders import make_private

from ..exchange import selectors
from ..exchange.debloating import FIRST_WINDOW, BufferDebloater, Monotonic
from ..exchange.frames import PartitionId
from ..exchange.gate import InputGate
from ..exchange.key_sample import KeySample
from ..exchange.marker_writer import MarkerWriter
from ..exchange.partition import ResultPartition, output_pool, share_out
from ..exchange.writer import BatchLimits, RecordWriter
from ..messages.messages import (
    OutputSpec,
    SourceEvent,
    SplitRequest,
    TaskDeployment,
    ToCoordinator,
    WatermarkReported,
)
from ..messages.settings import TaskSettings
from .network_buffers import demands
from .services import TaskServices
from .task_folders import spill_folder

log = get_logger(__name__)


def make_selector(
    spec: OutputSpec, deployment: TaskDeployment, settings: TaskSettings
) -> selectors.ChannelSelector:
    """Return the channel selector of a partitioner, for this producer."""
    width, strategy = spec.subpartitions, own_copy(spec.partitioner)
    if isinstance(strategy, Forward | Global):
        return selectors.SingleChannel(width)
    if isinstance(strategy, Rebalance | Rescale):
        return selectors.RoundRobin(width, start=deployment.subtask)
    if isinstance(strategy, Broadcast):
        return selectors.Broadcast(width)
    if isinstance(strategy, Shuffle):
        seed = zlib.crc32(f"{spec.dataset}/{deployment.subtask}".encode())
        return selectors.RandomChannel(width, seed)
    if isinstance(strategy, KeyGroup):
        groups = strategy.max_parallelism or deployment.max_parallelism
        sample = KeySample(groups, spec.consumer, settings.names_keys) if settings.samples_keys else None
        return selectors.ByKeyGroup(width, strategy.key_selector, groups, settings.memo_entries, sample)
    if isinstance(strategy, Custom):
        return selectors.ByFunction(width, strategy.partitioner, strategy.key_selector)
    raise TypeError(f"found a partitioner of type {type(strategy).__name__}, which no selector is known for")


def make_writers(deployment: TaskDeployment, settings: TaskSettings, managed: MemoryManager) -> list[RecordWriter]:
    """Make one writer for each output, in order, and the folder for the files of blocking ones.

    Raises:
        ConfigError: that folder cannot be made.
    """
    writers = []
    folder = spill_folder(deployment)
    if any(spec.blocking for spec in deployment.outputs):
        _make(folder)
    for spec in deployment.outputs:
        pool = output_pool(
            spec.subpartitions,
            settings.buffers_per_channel,
            settings.floating_buffers,
            settings.max_buffers_per_channel,
        )
        identity = PartitionId(spec.dataset, deployment.subtask)
        memory = None
        if spec.blocking:
            memory = Allowance(managed, deployment.attempt, settings.blocking_memory_bytes)
        if settings.debloating is not None:
            pool = replace(pool, window=FIRST_WINDOW)
        partition = ResultPartition(identity, spec.subpartitions, pool, spec.blocking, folder, memory)
        partition.overdraft = settings.overdraft_buffers
        limits = BatchLimits(settings.max_rows, settings.max_bytes, spec.buffer_timeout_ms, settings.max_arrow_bytes)
        selector = make_selector(spec, deployment, settings)
        writers.append(RecordWriter(partition, selector, limits, spec.iteration, spec.in_order))
    return writers


def _make(folder: Path) -> None:
    try:
        make_private(folder)
    except OSError as error:
        value = f"{str(folder.parent)!r} ({error.strerror or error})"
        remedy = "set it to folders that tasks may write to on every node, or leave it out"
        raise ConfigError(options.TMP_DIRS.key, value, "a folder in which a folder can be made", remedy) from error


def make_gate(deployment: TaskDeployment, settings: TaskSettings, clock: Monotonic) -> InputGate:
    """Make the input gate; without inputs it is finished from the start."""
    buffers = (settings.buffers_per_channel, settings.floating_buffers)
    debloater = None
    if settings.debloating is not None and deployment.inputs:
        inputs = [spec.input_index for spec in deployment.inputs]
        debloater = BufferDebloater(inputs, settings.debloating, clock)
    return InputGate(deployment.inputs, *buffers, settings.request_backoff_ms, debloater)


def assign_buffers(deployment: TaskDeployment, writers: list[RecordWriter], gate: InputGate) -> None:
    """Give the task's partitions and gates their shares of the process's network buffers.

    Raises:
        ValueError: there are not enough for the least that each needs.
    """
    log.info("Registering task at network: %s.", deployment.title)
    settings = TaskSettings.of(deployment.config)
    partitions = [writer.partition for writer in writers if not writer.partition.blocking]
    floating = gate.floating
    total = settings.network_buffers if deployment.network_buffers is None else deployment.network_buffers
    wanted = demands(deployment.inputs, deployment.outputs, settings)
    shares = share_out(total, wanted)
    for partition, share in zip(partitions, shares, strict=False):
        partition.limits = replace(partition.limits, total=share, per_channel=min(partition.limits.per_channel, share))
    for index, name in enumerate(floating, start=len(partitions)):
        gate.lend(name, shares[index] - wanted[index][0])


def make_chain(
    deployment: TaskDeployment, writers: list[RecordWriter], is_full: Callable[[], bool], settings: TaskSettings
) -> OperatorChain:
    """Make the operators by their factories, joined as the job vertex says; not set up yet."""
    log.info("Loading the operators of task %s.", deployment.title)
    links = []
    ways_out: list[ElementWriter] = list(writers)
    if settings.latency_interval_ms > 0:
        ways_out = [MarkerWriter(writer, deployment.subtask) for writer in writers]
    for node in deployment.operators:
        operator = _end_of_iteration(node) if node.factory is None else node.factory()
        edges = tuple(ChainEdge(e.target, e.tag_id, e.input_index, _selection(e)) for e in node.chained_outputs)
        outputs = tuple(ChainOutput(ways_out[o.dataset], o.tag_id, _selection(o)) for o in node.network_outputs)
        selectors = tuple(replace(split, call=own_copy(split.call)) for split in node.output_selectors)
        links.append(ChainLink(operator, edges, outputs, selectors))
    return OperatorChain(links, is_full, settings.copy_values)


def _selection(way_out: ChainedOutput | NetworkOutput) -> Selection | None:
    names = way_out.selected_names
    return Selection(way_out.selector, frozenset(names)) if names else None


def _end_of_iteration(node: ChainedOperator) -> Operator:
    assert node.iteration is not None, f"operator {node.name!r} has no factory"
    is_head = node.kind is NodeKind.ITERATION_HEAD
    return IterationHead(node.iteration, node.is_endless) if is_head else IterationTail(node.iteration)


def wake_at_feedback(deployment: TaskDeployment, wake: Callable[[], None]) -> None:
    """Have `wake` called whenever the head of an iteration in this task has something to give."""
    for node in deployment.operators:
        if node.kind is NodeKind.ITERATION_HEAD and node.iteration is not None:
            attempt = deployment.epoch, deployment.attempt_number
            place = (deployment.job_id, node.iteration, deployment.subtask, attempt)
            feedback_queue(*place, deployment.config).on_put = wake


@dataclass(frozen=True, slots=True)
class TaskResources:
    """The resources that all operators of one task share.

    Args:
        clock: `now_ms()` and `monotonic()`.
        metrics: the metric group of the task.
        accumulators: of the task's functions, by name.
        managed: the managed memory of the task's slot.
        services: the services of the process.
    """

    clock: Clock
    metrics: TaskMetricGroup
    accumulators: dict[str, Any]
    managed: MemoryManager
    services: TaskServices


def operator_context(
    deployment: TaskDeployment, index: int, resources: TaskResources, report: Callable[[ToCoordinator], None]
) -> OperatorContext:
    """Return the context that operator `index` of the chain gets at setup; `report` sends to the coordinator."""
    node, attempt = deployment.operators[index], deployment.attempt
    request = SplitRequest(attempt, node.operator_id)
    cached = resources.services.cached_files

    def report_watermark(alignment: WatermarkAlignment, watermark: int | None) -> None:
        report(WatermarkReported(attempt, node.operator_id, alignment, watermark))

    return OperatorContext(
        operator_id=node.operator_id,
        operator_name=node.name,
        uid=node.uid or "",
        task_name=deployment.vertex_name,
        job_id=deployment.job_id,
        subtask=deployment.subtask,
        parallelism=deployment.parallelism,
        max_parallelism=deployment.max_parallelism,
        attempt=deployment.attempt_number,
        epoch=deployment.epoch,
        clock=resources.clock,
        metrics=resources.metrics.operator(node.name, node.operator_id).group,
        config=deployment.config,
        accumulators=resources.accumulators,
        cached_files=deployment.cached_files if cached is None else cached(deployment),
        call_site=node.call_site,
        request_split=lambda: report(request),
        send_source_event=lambda event: report(SourceEvent(attempt, node.operator_id, to_bytes(event))),
        report_watermark=report_watermark,
        wake=resources.services.wake,
        open_worker=resources.services.open_worker,
        checkpointing=deployment.checkpointing,
        finished=deployment.finished,
        spill_folder=str(spill_folder(deployment)),
        managed_memory=Allowance(resources.managed, deployment.attempt, resources.managed.total),
    )
