"""The chain asks only the operators that have a capability, and no operator has half of one."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from rayflink.common.records.batches import Batch, Element, RowBatch, WatermarkStatus
from rayflink.operators import capabilities
from rayflink.operators.base import Operator, OperatorContext
from rayflink.operators.capabilities import EventHandler, ProcessingTimers, Upkeep, methods_of
from rayflink.operators.chain import ChainEdge, ChainLink, ChainOutput, OperatorChain


class PassOn(Operator):
    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        return (batch,)


class Alarm(PassOn, ProcessingTimers, Upkeep):
    """Rings at 5, and does upkeep at 3."""

    upkeep_at: list[int]

    def next_processing_time(self) -> int | None:
        return 5

    def on_processing_time(self, now_ms: int) -> Iterable[Element]:
        return (RowBatch([f"rings at {now_ms}"]),)

    def next_upkeep_ms(self) -> int | None:
        return 3

    def upkeep(self, now_ms: int) -> None:
        self.upkeep_at = [now_ms]


class Swallows(PassOn, EventHandler):
    def process_status(self, status: WatermarkStatus) -> Iterable[Element]:
        return ()


class Exit:
    def __init__(self) -> None:
        self.elements: list[Element] = []

    def write(self, element: Element) -> None:
        self.elements.append(element)


def chained(*operators: Operator) -> tuple[OperatorChain, Exit]:
    end, last = Exit(), len(operators) - 1
    links = []
    for index, operator in enumerate(operators):
        operator.setup(OperatorContext(f"{index:032x}", type(operator).__name__))
        edges = (ChainEdge(index + 1),) if index < last else ()
        links.append(ChainLink(operator, edges, (ChainOutput(end),) if index == last else ()))
    return OperatorChain(links, lambda: False), end


def test_a_method_of_a_capability_that_is_not_inherited_is_refused():
    wanted = r"operator Sink defines notify_checkpoint_complete\(\).* CheckpointListener.* never be called; inherit"
    with pytest.raises(TypeError, match=wanted):

        class Sink(PassOn):
            def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
                pass


def test_no_two_capabilities_share_the_name_of_a_method():
    names = [name for capability in capabilities.CAPABILITIES for name in methods_of(capability)]
    assert len(names) == len(set(names)) and not {*names} & {*dir(Operator)}


def test_only_operators_with_timers_and_upkeep_are_asked_for_them():
    alarm = Alarm()
    chain, end = chained(PassOn(), alarm, PassOn())
    assert chain.next_processing_ms() == 3
    assert not chain.fire_processing_time(4) and alarm.upkeep_at == [4]
    assert chain.fire_processing_time(6) and chain.run(lambda: True)
    assert end.elements == [RowBatch(["rings at 6"])]
    assert chained(PassOn())[0].next_processing_ms() is None


def test_an_event_passes_by_operators_that_do_not_handle_it():
    for operators, expected in (((PassOn(), PassOn()), [WatermarkStatus(True)]), ((PassOn(), Swallows()), [])):
        chain, end = chained(*operators)
        chain.feed(WatermarkStatus(True))
        assert chain.run(lambda: True) and end.elements == expected
