"""What partitions and gates of a task get of its process's network buffers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.actors.exchange.frames import PartitionId, TaskAddress
from rayflink.actors.exchange.gate import ChannelSpec
from rayflink.actors.local.in_process import InProcessCluster
from rayflink.actors.messages.messages import OutputSpec, TaskDeployment
from rayflink.actors.messages.settings import TaskSettings
from rayflink.actors.messages.states import JobStatus
from rayflink.actors.task.network_buffers import demands, shares_of_tasks
from rayflink.actors.task.wiring import assign_buffers, make_gate, make_writers
from rayflink.common.managed_memory import MemoryManager
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.graph.partitioners import Rebalance
from rayflink.state.clock import ManualClock
from tests.golden_jobs import GoldenJob, word_count

TOTAL = "taskmanager.network.numberOfBuffers"


def deployment(buffers: int, channels: list[int], outputs: list[int], blocking: bool = False) -> TaskDeployment:
    """A task with `channels[i]` channels in gate i and an output for each width."""
    inputs = tuple(
        ChannelSpec(PartitionId(f"{gate:032x}", i), 0, TaskAddress(f"p{gate}.{i}"), gate)
        for gate, width in enumerate(channels)
        for i in range(width)
    )
    specs = tuple(OutputSpec(f"{i:032x}", width, Rebalance(), blocking=blocking) for i, width in enumerate(outputs))
    config = {TOTAL: str(buffers)}
    return TaskDeployment("j", "j", TaskAddress("me"), 0, "v", "Vertex", 0, 1, 128, (), inputs, specs, config)


def assigned(
    buffers: int, channels: list[int], outputs: list[int], share: int | None = None
) -> tuple[list[int], list[int]]:
    """Buffers of each output's pool, and floating ones of each gate, of a task with `share` of those of its slot."""
    what = replace(deployment(buffers, channels, outputs), network_buffers=share)
    options = TaskSettings.of(what.config)
    writers, gate = make_writers(what, options, MemoryManager(0)), make_gate(what, options, ManualClock(0))
    assign_buffers(what, writers, gate)
    return [writer.partition.limits.total for writer in writers], list(gate.floating.values())


@pytest.mark.spec("M13", "factory", "M18", "N24", "V04", "V05", "M17", "floating")
def test_a_task_has_one_pool_for_each_output_and_one_for_each_input() -> None:
    assert assigned(2048, channels=[4, 1], outputs=[3]) == ([3 * 2 + 8], [8, 8])


@pytest.mark.spec("M13", "factory", "M05", "shared")
def test_when_buffers_are_short_each_pool_gives_up_some() -> None:
    # at least 10 + 2 x 10, at most 28 + 28; 40 leave 10 for pools that could take 18 and 8
    assert assigned(40, channels=[10], outputs=[10]) == ([10 + 6], [4])
    assert assigned(30, channels=[10], outputs=[10]) == ([10], [0])


@pytest.mark.spec("X48")
def test_four_senders_and_four_receivers_have_at_least_a_buffer_for_each_other() -> None:
    what = deployment(2048, channels=[4], outputs=[4])
    for each, least in (("1", [4, 4]), ("2", [4, 8])):
        settings = TaskSettings.of({"taskmanager.network.memory.buffers-per-channel": each})
        assert [low for low, _ in demands(what.inputs, what.outputs, settings)] == least


@pytest.mark.spec("V04", "V05")
def test_channels_and_gates_have_the_buffers_that_their_options_say() -> None:
    def pools(**options: str) -> tuple[list[int], int]:
        config = {f"taskmanager.network.memory.{key.replace('_', '-')}": value for key, value in options.items()}
        settings = TaskSettings.of(config)
        what = deployment(2048, channels=[4], outputs=[3])
        gate = make_gate(what, settings, ManualClock(0))
        wanted = [high for _, high in demands(what.inputs, what.outputs, settings)]
        return wanted, gate.channels[0].credit.statistics().exclusive

    assert pools() == ([3 * 2 + 8, 4 * 2 + 8], 2)
    assert pools(buffers_per_channel="3") == ([3 * 3 + 8, 4 * 3 + 8], 3)
    assert pools(floating_buffers_per_gate="1") == ([3 * 2 + 1, 4 * 2 + 1], 2)


@pytest.mark.spec("M05", "number", "V02")
def test_where_nothing_is_configured_a_task_has_no_more_than_2048_buffers() -> None:
    what = replace(deployment(1, channels=[], outputs=[100] * 10), config={})
    options = TaskSettings.of({})
    writers = make_writers(what, options, MemoryManager(0))
    assign_buffers(what, writers, make_gate(what, options, ManualClock(0)))
    assert sum(writer.partition.limits.total for writer in writers) == 2048  # they could take 10 * 208


@pytest.mark.spec("M05", "shared", "O32", "buffers", "M13", "one", "L19", "network")
def test_the_tasks_of_a_process_share_its_buffers_by_what_each_could_take() -> None:
    assert assigned(40, channels=[10], outputs=[10]) == assigned(120, [10], [10], share=40) == ([16], [4])
    small, wide = [(1, 10)], [(40, 88), (80, 88)]
    assert shares_of_tasks(2048, {"small": small, "wide": wide}) == {"small": 10, "wide": 176}
    assert shares_of_tasks(186, {"small": small, "wide": wide}) == {"small": 10, "wide": 176}
    assert shares_of_tasks(153, {"small": small, "wide": wide}) == {"small": 1 + 4, "wide": 120 + 28}
    short = shares_of_tasks(120, {"small": small, "wide": wide})
    assert sum(short.values()) <= 120 and short["wide"] < 120


@pytest.mark.spec("M05", "shared")
def test_many_channels_of_one_vertex_need_no_more_than_the_slot_has() -> None:
    def write(env: StreamExecutionEnvironment) -> None:
        env.set_parallelism(2)
        first, *others = (env.from_collection([n]) for n in range(20))
        first.union(*others).key_by(lambda n: n).sum().sink_to(CollectSink("out"))

    clock = ManualClock(1_000)
    graph = GoldenJob("union", write).graph({TOTAL: "300"})
    result = InProcessCluster(graph, clock, lambda ms: clock.advance(max(1, int(ms)))).run()
    assert result.status is JobStatus.FINISHED and sorted(result.accumulators["out"]) == list(range(20))


@pytest.mark.spec("M05", "shared", "N24")
def test_when_not_even_the_least_is_there_the_error_says_how_many_are_wanted() -> None:
    wanted = (
        "insufficient network buffers: 30 wanted as a minimum, 29 there; "
        "raise taskmanager.network.numberOfBuffers or lower the parallelism"
    )
    with pytest.raises(ValueError) as caught:
        assigned(29, channels=[10], outputs=[10])
    assert str(caught.value) == wanted


@pytest.mark.spec("M13", "one", "M19")
@settings(deadline=None)
@given(
    st.lists(st.integers(1, 6), max_size=3),
    st.lists(st.integers(1, 6), max_size=3),
    st.integers(0, 200),
)
def test_pools_never_hold_more_than_there_is(channels: list[int], outputs: list[int], spare: int) -> None:
    least = sum(outputs) + 2 * sum(channels)
    pools, floating = assigned(max(1, least + spare), channels, outputs)
    assert sum(pools) + sum(floating) + 2 * sum(channels) <= max(1, least + spare)
    assert all(pool >= width for pool, width in zip(pools, outputs, strict=True))


@pytest.mark.spec("M05", "shared", "O32", "buffers", "configuration", "N24")
def test_a_job_without_enough_buffers_fails_with_the_remedy_and_runs_with_them() -> None:
    job = GoldenJob("word count", word_count)

    def run(buffers: int) -> tuple[JobStatus, str]:
        clock = ManualClock(1_000)
        graph = job.graph({TOTAL: str(buffers)})
        result = InProcessCluster(graph, clock, lambda ms: clock.advance(max(1, int(ms)))).run()
        return result.status, "" if result.failure is None else result.failure.message

    assert run(12) == (JobStatus.FINISHED, "")
    status, message = run(9)  # three tasks in the process
    assert status is JobStatus.FAILED
    assert "insufficient network buffers: 2 wanted as a minimum, 1 there; raise taskmanager.network" in message
