"""Broadcast streams in programs: how they are connected, what runs in either mode, and what is refused."""

from __future__ import annotations

import doctest
import re

import pytest

from rayflink.common import JobFailed, PlanError, Time, TypeMismatch, Types, WatermarkStrategy
from rayflink.common.errors import InvalidFunction
from rayflink.datastream import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
)
from rayflink.datastream.data_stream import BroadcastConnectedStream, BroadcastStream
from rayflink.datastream.state import ListStateDescriptor, MapStateDescriptor, StateTtlConfig, ValueStateDescriptor
from rayflink.graph.explain import explain
from rayflink.graph.job_graph_builder import job_graph
from tests.datastream.programs import environment

LIMITS = MapStateDescriptor("limits", Types.STRING(), Types.INT())
BATCH = {"execution.runtime-mode": "BATCH"}
EVENTS = [("a", 9), ("b", 2), ("a", 11), ("b", 1), ("c", 5)]
RULES = [("a", 10), ("b", 1), ("c", 5)]
ABOVE = [("a", 11), ("b", 2)]


class Above(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        limit = ctx.get_broadcast_state(LIMITS).get(value[0])
        if limit is not None and value[1] > limit:
            yield value

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(LIMITS).put(*value)


class KeyedAbove(KeyedBroadcastProcessFunction):
    """(key, value, how many above their limit the key has had)."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value, ctx):
        if value[1] > ctx.get_broadcast_state(LIMITS)[ctx.get_current_key()]:
            self.count.update((self.count.value() or 0) + 1)
            yield *value, self.count.value()

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(LIMITS)[value[0]] = value[1]


def streams(env):
    return env.from_collection(EVENTS), env.from_collection(RULES).broadcast(LIMITS)


@pytest.mark.spec("G37")
@pytest.mark.parametrize("parallelism", [1, 3])
def test_in_batch_mode_every_subtask_has_all_rules_before_the_first_event(parallelism):
    events, rules = streams(environment(parallelism, **BATCH))
    assert sorted(events.rebalance().connect(rules).process(Above()).execute_and_collect()) == ABOVE


@pytest.mark.parametrize("sorts", [True, False])
def test_in_batch_mode_keyed_events_see_all_rules_with_sorted_inputs_or_without(sorts):
    events, rules = streams(environment(2, **BATCH, **{"execution.sorted-inputs.enabled": sorts}))
    found = events.key_by(lambda event: event[0]).connect(rules).process(KeyedAbove()).execute_and_collect()
    assert sorted(found) == [("a", 11, 1), ("b", 2, 1)]


@pytest.mark.parametrize("make", [Above, KeyedAbove])
def test_in_streaming_mode_the_same_program_runs(make):
    events, rules = streams(environment(2))
    if make is KeyedAbove:
        seen = events.key_by(lambda event: event[0]).connect(rules)
        pair = (lambda value, ctx: None, lambda value, ctx: [(value, ctx.timestamp())])
        found = list(seen.process(pair).execute_and_collect())
        assert sorted(found) == sorted([(rule, None) for rule in RULES] * 2), "each subtask gets every rule"
    else:
        found = list(events.connect(rules).process(make()).execute_and_collect())
        assert set(found) <= set(ABOVE)


def test_the_edge_is_broadcast_in_the_plan():
    env = environment(2)
    events, rules = streams(env)
    events.key_by(lambda event: event[0]).connect(rules).process(KeyedAbove()).name("judge").print()
    plan = env.get_stream_graph()
    judge = next(node for node in plan.nodes if node.name == "judge")
    into = {edge.input_index: str(edge.partitioner) for edge in plan.edges if edge.target == judge.id}
    assert into == {0: "HASH", 1: "BROADCAST"}
    shown = explain(job_graph(plan))
    assert re.search(r"=> \[3\] at input 2 BROADCAST, ALL_TO_ALL", shown), shown


def test_an_output_type_is_held_to():
    events, rules = streams(environment(**BATCH))
    typed = events.connect(rules).process(Above(), Types.ROW([Types.STRING(), Types.INT()]))
    assert [tuple(row) for row in typed.execute_and_collect()] == [("b", 2), ("a", 11)]
    events, rules = streams(environment(**BATCH))
    with pytest.raises(JobFailed) as caught:
        list(events.connect(rules).process(Above(), Types.STRING()).execute_and_collect())
    assert "output_type" in str(caught.value)


def test_broadcast_state_is_held_to_the_types_of_its_descriptor():
    env = environment(**BATCH)
    rules = env.from_collection([("a", "ten")]).broadcast(LIMITS)
    with pytest.raises(JobFailed) as caught:
        list(env.from_collection(EVENTS).connect(rules).process(Above()).execute_and_collect())
    assert "state 'limits'" in str(caught.value)
    assert "process_broadcast_element" in str(caught.value)
    assert TypeMismatch.__name__ in repr(caught.value.__cause__) or "'ten'" in str(caught.value)


def test_broadcast_without_descriptors_stays_a_plain_stream():
    env = environment(2)
    plain = env.from_collection([1]).broadcast()
    assert sorted(plain.map(lambda n: n).execute_and_collect()) == [1, 1]


def test_streams_know_their_environment_and_descriptors():
    env = environment()
    events, rules = streams(env)
    connected = events.connect(rules)
    assert isinstance(rules, BroadcastStream)
    assert isinstance(connected, BroadcastConnectedStream)
    assert connected.get_execution_environment() is env
    assert connected.broadcast_state_descriptors == rules.broadcast_state_descriptors == [LIMITS]
    assert connected.broadcast_stream is rules
    assert connected.non_broadcast_stream is events


def test_the_examples_of_the_page_run(repository):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    found = doctest.testfile(str(repository / "docs" / "broadcast.md"), module_relative=False, optionflags=flags)
    assert found.attempted > 25
    assert found.failed == 0


@pytest.mark.spec("G37")
@pytest.mark.parametrize("parallelism", [1, 3])
def test_amounts_are_converted_by_the_rate_of_their_own_time(parallelism):
    """A temporal look-up: rates and amounts come in any interleaving, and an amount waits for its watermark."""
    versions = MapStateDescriptor("versions")

    class Converted(KeyedBroadcastProcessFunction):
        def open(self, runtime_context):
            self.waiting = runtime_context.get_list_state(ListStateDescriptor("waiting"))

        def process_broadcast_element(self, value, ctx):
            state = ctx.get_broadcast_state(versions)
            state[value[0]] = sorted([*(state[value[0]] or ()), value[1:]])

        def process_element(self, value, ctx):
            self.waiting.add(value)
            ctx.timer_service().register_event_time_timer(value[1])

        def on_timer(self, timestamp, ctx):
            held = list(self.waiting)
            self.waiting.update([entry for entry in held if entry[1] > timestamp])
            known = ctx.get_broadcast_state(versions)[ctx.get_current_key()]
            for currency, at, amount in held:
                if at <= timestamp:
                    yield currency, at, amount * max(entry for entry in known if entry[0] <= at)[1]

    rates = [(currency, at, rate * at + 1) for at in range(0, 100, 7) for rate, currency in enumerate("ABC")]
    amounts = [(currency, at, 10) for at in range(0, 110) for currency in "ABC"]
    env = environment(parallelism)
    in_order = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event, _: event[1])
    changing = env.from_collection(rates).assign_timestamps_and_watermarks(in_order).broadcast(versions)
    keyed = env.from_collection(amounts).assign_timestamps_and_watermarks(in_order).key_by(lambda amount: amount[0])
    found = list(keyed.connect(changing).process(Converted()).execute_and_collect())
    held = {currency: rate for rate, currency in enumerate("ABC")}
    assert sorted(found) == sorted((c, at, 10 * (held[c] * min(at - at % 7, 98) + 1)) for c, at, _ in amounts)


# mistakes


def test_what_is_no_descriptor_is_refused_in_its_line():
    stream = environment().from_collection(RULES)
    with pytest.raises(TypeError, match="must be MapStateDescriptor, found str 'limits'"):
        stream.broadcast("limits")
    with pytest.raises(TypeError, match="must be MapStateDescriptor, found ValueStateDescriptor"):
        stream.broadcast(LIMITS, ValueStateDescriptor("v"))
    with pytest.raises(PlanError, match=r"two broadcast states have the name 'limits'.*test_broadcast\.py"):
        stream.broadcast(LIMITS, MapStateDescriptor("limits"))
    with pytest.raises(PlanError, match="no broadcast state is described"):
        BroadcastStream(stream, [])
    expiring = MapStateDescriptor("old")
    expiring.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
    with pytest.raises(
        PlanError, match="'old' has a time to live, which only keyed state supports; leave enable_time_to_live"
    ):
        stream.broadcast(expiring)


def test_a_keyed_stream_cannot_be_broadcast():
    keyed = environment().from_collection(RULES).key_by(lambda rule: rule[0])
    with pytest.raises(PlanError, match="Cannot override partitioning for KeyedStream"):
        keyed.broadcast(LIMITS)


def test_functions_of_the_wrong_kind_are_refused_in_their_line():
    events, rules = streams(environment())
    keyed = events.key_by(lambda event: event[0])
    wanted = r"KeyedAbove on streams without keys; call key_by\(...\) before connect.*test_broadcast\.py"
    with pytest.raises(TypeError, match=wanted):
        events.connect(rules).process(KeyedAbove())
    wanted = "the BroadcastProcessFunction Above on a keyed stream; derive it from KeyedBroadcastProcessFunction"
    with pytest.raises(TypeError, match=wanted):
        keyed.connect(rules).process(Above())
    with pytest.raises(Exception, match="BroadcastProcessFunction instance with methods process_element and"):
        events.connect(rules).process(lambda value, ctx: None)
    with pytest.raises(Exception, match="wants a function of 2 arguments, found one of 1"):
        events.connect(rules).process((lambda value: None, lambda value, ctx: None))


def test_a_broadcast_function_wants_a_broadcast_stream():
    events = environment().from_collection(EVENTS)
    wanted = r"process was given .*Above, which also wants the records of a broadcast stream; call connect\("
    with pytest.raises(InvalidFunction, match=wanted):
        events.process(Above())
    with pytest.raises(InvalidFunction, match=wanted):
        events.key_by(lambda event: event[0]).process(KeyedAbove())


def test_connect_wants_a_stream():
    with pytest.raises(TypeError, match="connect needs a DataStream, found MapStateDescriptor"):
        environment().from_collection(RULES).connect(LIMITS)


def test_errors_of_the_function_name_state_and_step():
    events, rules = streams(environment(**BATCH))

    def ask(value, ctx):
        ctx.get_broadcast_state(MapStateDescriptor("limit"))

    with pytest.raises(JobFailed) as caught:
        list(events.connect(rules).process((ask, lambda value, ctx: None)).execute_and_collect())
    assert "'limit', but the stream was broadcast with 'limits'" in str(caught.value)
    assert "Co-Process-Broadcast" in str(caught.value)
