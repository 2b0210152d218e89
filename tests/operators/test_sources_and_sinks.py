"""The operators at both ends of a stream, and the sinks that need no files."""

from __future__ import annotations

from typing import Any

import pytest

from rayflink.common.connector_base.sink import Sink, SinkWriter, WriterContext
from rayflink.common.connector_base.source import END, PENDING, Boundedness, PendingSplits, Source, SourceReader
from rayflink.common.functions.accumulators import IntCounter, ListAccumulator
from rayflink.common.functions.function_classes import SinkFunction
from rayflink.common.records.batches import Batch, RowBatch, Watermark, WatermarkStatus
from rayflink.common.time import Duration
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.connectors.collection import CollectionSource, CollectSink
from rayflink.connectors.discard import DiscardingSink
from rayflink.connectors.generator import DataGeneratorSource, NumberSplit
from rayflink.connectors.printing import PrintSink
from rayflink.operators.base import UserCodeError
from rayflink.operators.sinks import SinkFunctionOperator, SinkOperator
from rayflink.operators.sources import ReaderSourceOperator
from tests.operators.running import FixedClock, context, opened, run, values


def _source_operator(source: Source, snapshots: tuple[Any, ...] = (), strategy: Any = None, **facts: Any) -> Any:
    requests: list[int] = []
    operator = ReaderSourceOperator(source, strategy)
    operator.setup(context(request_split=lambda: requests.append(1), **facts))
    operator.initialize_state(snapshots)
    operator.open()
    return operator, requests


@pytest.mark.spec("C35", "splits")
def test_a_source_asks_for_a_split_at_open_and_after_each_and_ends_after_the_last() -> None:
    operator, requests = _source_operator(DataGeneratorSource(None, 4))
    assert len(requests) == 1 and operator.poll(10) == () and len(requests) == 1
    operator.add_splits([NumberSplit(0, 2)])
    assert list(operator.poll(10)) == [RowBatch([0, 1])] and len(requests) == 1
    assert operator.poll(10) == () and len(requests) == 2
    operator.add_splits([NumberSplit(2, 4)])
    assert list(operator.poll(1)) == [RowBatch([2])]
    operator.no_more_splits()
    assert list(operator.poll(10)) == [RowBatch([3])]
    assert operator.poll(10) is None and len(requests) == 2
    operator.close()


def test_a_restored_source_reads_its_splits_before_it_asks_for_more() -> None:
    operator, _ = _source_operator(DataGeneratorSource(None, 9))
    operator.add_splits([NumberSplit(0, 3), NumberSplit(5, 6)])
    operator.poll(2)
    snapshot = operator.snapshot_state(1)
    assert snapshot.lists["source-splits"][0] == "split" and len(snapshot.lists["source-splits"][1]) == 2
    restored, requests = _source_operator(DataGeneratorSource(None, 9), (snapshot,))
    assert requests == []
    assert list(restored.poll(9)) == [RowBatch([2])]
    assert list(restored.poll(9)) == [RowBatch([5])]
    assert restored.poll(9) == () and len(requests) == 1


class ScriptedSource(Source):
    """Polls as the script says."""

    boundedness = Boundedness.BOUNDED

    def __init__(self, *script: Any) -> None:
        self.script = list(script)

    def create_enumerator(self, ctx: Any) -> Any:
        return PendingSplits(ctx, [])

    restore_enumerator = None  # type: ignore[assignment]

    def create_reader(self, ctx: Any) -> SourceReader:
        script = self.script

        class Reader(SourceReader):
            def add_splits(self, splits: list[Any]) -> None: ...
            def notify_no_more_splits(self) -> None: ...
            def poll(self, max_records: int) -> Any:
                answer = script.pop(0)
                if isinstance(answer, Exception):
                    raise answer
                return answer

            def snapshot_state(self) -> list[Any]:
                return []

        return Reader()


@pytest.mark.spec("E18", "E17", "declared")
def test_a_source_emits_timestamps_and_watermarks_at_any_point() -> None:
    script = [RowBatch(["a"], [1]), Watermark(1), RowBatch(["b"], [5]), WatermarkStatus(True), PENDING, END]
    operator, _ = _source_operator(ScriptedSource(*script))
    polled = [operator.poll(9) for _ in script]
    assert [list(p) for p in polled[:4]] == [[element] for element in script[:4]]
    assert polled[4] == () and polled[5] is None


def test_a_strategy_stamps_the_records_of_a_source_and_makes_its_watermarks() -> None:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(3))
    strategy = strategy.with_timestamp_assigner(lambda value, _: value * 10)
    clock = FixedClock(1000)
    operator, _ = _source_operator(ScriptedSource(RowBatch([1, 4, 2]), END), strategy=strategy, clock=clock)
    assert list(operator.poll(9)) == [RowBatch([1, 4, 2], [10, 40, 20])]
    due = operator.next_processing_time()
    assert due == 1200
    assert list(operator.on_processing_time(due)) == [Watermark(36)]
    assert operator.poll(9) is None
    operator.close()


def test_a_reader_that_fails_is_reported_with_operator_and_method() -> None:
    operator, _ = _source_operator(ScriptedSource(OSError("gone")), operator_name="in", call_site="job.py:3")
    with pytest.raises(UserCodeError, match=r"operator 'in' \(created at job.py:3\) failed in poll: OSError: gone"):
        operator.poll(1)


def test_a_source_without_coordinator_says_so() -> None:
    with pytest.raises(RuntimeError, match="has no coordinator to ask for splits"):
        opened(ReaderSourceOperator(CollectionSource([1])))


@pytest.mark.spec("C26", "custom")
def test_a_sink_function_or_callable_is_called_for_each_record() -> None:
    class Keeping(SinkFunction):
        def __init__(self) -> None:
            self.kept: list[Any] = []

        def invoke(self, value: Any) -> None:
            self.kept.append(value)

    function, plain = Keeping(), []
    assert run(SinkFunctionOperator(function), [RowBatch([1, 2]), RowBatch([3])]) == []
    run(SinkFunctionOperator(plain.append), [RowBatch([1])])
    assert (function.kept, plain) == ([1, 2, 3], [1])
    with pytest.raises(UserCodeError) as failure:
        run(SinkFunctionOperator(lambda value: 1 // value), [RowBatch([1, 0])])
    assert (failure.value.where, failure.value.record) == ("invoke", "0")


@pytest.mark.spec("C26", "print")
@pytest.mark.parametrize(
    ("identifier", "facts", "prefix"),
    [
        ("", {}, ""),
        ("", {"subtask": 1, "parallelism": 2}, "2> "),
        ("id", {}, "id> "),
        ("id", {"parallelism": 3}, "id:1> "),
    ],
)
def test_print_has_flink_s_form(capsys: Any, identifier: str, facts: dict[str, Any], prefix: str) -> None:
    sink = PrintSink(identifier)
    assert sink.name == "Sink: Print to Std. Out"
    run(SinkOperator(sink), [RowBatch([("a", 1), "b"])], **facts)
    assert capsys.readouterr().out == f"{prefix}('a', 1)\n{prefix}b\n"


def test_print_to_standard_error_in_a_given_form(capsys: Any) -> None:
    sink = PrintSink(stderr=True, to_text=repr)
    assert sink.name == "Sink: Print to Std. Err"
    run(SinkOperator(sink), [RowBatch(["b"])])
    assert capsys.readouterr().err == "'b'\n"


def test_collected_records_are_in_an_accumulator_and_survive_a_restore() -> None:
    accumulators: dict[str, Any] = {}
    operator = opened(SinkOperator(CollectSink("out")), accumulators=accumulators)
    list(operator.process(RowBatch([1, 2]), 0))
    snapshot = operator.snapshot_state(1)
    list(operator.process(RowBatch([3]), 0))
    assert accumulators["out"].get_local_value() == [1, 2, 3]
    again: dict[str, Any] = {}
    restored = SinkOperator(CollectSink("out"))
    restored.setup(context(accumulators=again))
    assert snapshot is not None
    restored.initialize_state((snapshot,))
    restored.open()
    list(restored.process(RowBatch([3]), 0))
    assert isinstance(again["out"], ListAccumulator) and again["out"].get_local_value() == [1, 2, 3]
    with pytest.raises(UserCodeError, match="accumulator 'out' is a IntCounter"):
        opened(SinkOperator(CollectSink("out")), accumulators={"out": IntCounter()})


def test_a_discarding_sink_takes_everything() -> None:
    assert values(run(SinkOperator(DiscardingSink()), [RowBatch([1])])) == []


def test_a_writer_is_flushed_at_checkpoints_and_at_the_end_and_closed_once() -> None:
    calls: list[Any] = []

    class Writer(SinkWriter):
        def write(self, batch: Batch) -> None:
            calls.append(len(batch))

        def flush(self, end_of_input: bool) -> None:
            calls.append(end_of_input)

        def close(self) -> None:
            calls.append("close")

    class Noting(Sink):
        def create_writer(self, ctx: WriterContext) -> SinkWriter:
            calls.append((ctx.subtask, ctx.attempt))
            return Writer()

    operator = opened(SinkOperator(Noting()), subtask=2, attempt=1)
    list(operator.process(RowBatch([1, 2]), 0))
    list(operator.prepare_snapshot(1))
    assert operator.snapshot_state(1) is None
    list(operator.finish())
    operator.close()
    operator.close()
    assert calls == [(2, 1), 2, False, True, "close"]
