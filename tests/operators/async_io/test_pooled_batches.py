"""Batches worked in a pool: order, filling, replay, lost workers, time, and the circuit breaker."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pyarrow
import pytest

from rayflink.common.errors import InvalidFunction
from rayflink.common.functions.function_classes import MapFunction
from rayflink.common.output_tag import OutputTag
from rayflink.common.records.batches import RowBatch
from rayflink.common.user_code.actor_pool import ActorPool
from rayflink.operators.async_io.pooled_batches import PooledBatchesOperator
from rayflink.operators.async_io.workers import InlineWorker, WorkerLost
from rayflink.operators.base import UserCodeError
from rayflink.testing import MAX_WATERMARK, OperatorHarness, at, columns, end, rec, side, verify, wm

NAME = "operator.PooledBatchesOperator-0."


class Doubling:
    def __call__(self, numbers):
        return [2 * n for n in numbers]


def pooled(function=Doubling, form="rows", open_worker=None, **how):
    class Hosted(PooledBatchesOperator):
        def setup(self, ctx):
            super().setup(ctx if open_worker is None else replace(ctx, open_worker=open_worker))

    Hosted.__name__ = PooledBatchesOperator.__name__
    return lambda: Hosted(function, ActorPool(**how), form)


@pytest.mark.parametrize(
    "how", [{"batch_size": 3}, {}, {"size": 2, "batch_size": 2}, {"ordered": False, "batch_size": 1}]
)
def test_results_come_in_order_with_their_timestamps_under_every_hardship(how):
    given = [rec(1, 5), rec(2, 6), rec(3, 7), wm(7), rec(4, 8), at(30), rec(5, 9), rec(6, 9), wm(9), end()]
    then = [rec(2, 5), rec(4, 6), rec(6, 7), wm(7), rec(8, 8), rec(10, 9), rec(12, 9), wm(9), MAX_WATERMARK]
    verify(pooled(**how), given, then)


def test_columns_stay_columns():
    def plus_one(batch):
        return pyarrow.table({"n": pyarrow.compute.add(batch.column("n"), 1)})

    data = pyarrow.record_batch({"n": [1, 2, 3]})
    with OperatorHarness(pooled(plus_one, None, batch_size=2)) as harness:
        harness.give(columns(data, [5, 6, 7]))
        harness.end_input()
        assert [(row.value.n, row.timestamp) for row in harness.output[:-1]] == [(2, 5), (3, 6), (4, 7)]


class Recorder(InlineWorker):
    """Notes the batches of all workers, and takes a while for each."""

    batches: list = []

    async def call(self, data):
        self.batches.append(list(data))
        await asyncio.sleep(0.1)
        return await super().call(data)


def recording():
    class Mine(Recorder):
        batches = []

    return Mine


def test_a_batch_waits_to_be_full_but_not_for_long_and_ends_at_a_watermark():
    worker = recording()
    with OperatorHarness(pooled(open_worker=worker, batch_size=3, max_wait_ms=20, in_flight=9)) as harness:
        for n in (1, 2, 3, 4):
            harness.process(n)
        assert worker.batches == [[1, 2, 3]]
        harness.set_processing_time(19)
        assert worker.batches == [[1, 2, 3]]
        harness.set_processing_time(20)
        harness.process(5)
        harness.advance_watermark(9)
        harness.process(6)
        harness.end_input()
    assert worker.batches[0] == [1, 2, 3] and sorted(worker.batches[1:]) == [[4], [5], [6]]


def test_as_many_batches_are_under_way_as_the_pool_may_have_and_no_more():
    worker = recording()
    operator = pooled(open_worker=worker, size=2, in_flight=2, batch_size=1)()
    with OperatorHarness(lambda: operator) as harness:
        for n in range(3):
            harness.process(n)
        assert operator.accepts(RowBatch([]))
        harness.process(3)
        assert not operator.accepts(RowBatch([])) and len(worker.batches) == 2
        assert harness.metrics.snapshot()[NAME + "inFlightRequests"] == 4
        harness.end_input()
        assert harness.output_values() == [0, 2, 4, 6] and harness.clock.now_ms() == 200


def test_what_is_under_way_is_asked_again_after_a_restore():
    make = pooled(open_worker=recording(), batch_size=2)
    harness = OperatorHarness(make)
    for n in range(5):
        harness.process(n, n)
    harness.advance_watermark(9)
    assert harness.take() == []
    with harness.restore(make, harness.snapshot()) as restored:
        restored.end_input()
        assert restored.output == [*(rec(2 * n, n) for n in range(5)), wm(9), MAX_WATERMARK]


def breaking(*failures, and_then=None):
    """A worker class: each call of any of its workers fails with the next of `failures`, then with `and_then`."""
    left, made = list(failures), []

    class Breaking(InlineWorker):
        def __init__(self, spec):
            made.append(self)
            super().__init__(spec)

        async def call(self, data):
            error = left.pop(0) if left else and_then
            if error is not None:
                raise error
            return await super().call(data)

    Breaking.made = made
    return Breaking


def test_a_lost_worker_is_replaced_and_its_batch_worked_by_another():
    worker = breaking(WorkerLost("killed"), WorkerLost("killed"))
    with OperatorHarness(pooled(open_worker=worker, retry_delay_ms=100)) as harness:
        harness.process(1)
        harness.end_input()
        found = harness.metrics.snapshot()
        assert harness.output_values() == [2] and len(worker.made) == 3
        assert (found[NAME + "numWorkersLost"], found[NAME + "numRetries"]) == (2, 2)
        assert harness.clock.now_ms() == 100 + 200


def test_the_job_fails_with_the_batch_when_no_retry_is_left():
    worker = breaking(and_then=KeyError("model"))
    with OperatorHarness(pooled(open_worker=worker, max_retries=2, batch_size=2)) as harness:
        harness.process("a")
        harness.process("b")
        with pytest.raises(UserCodeError, match="map_batches on record 'a', the first of 2: KeyError: 'model'"):
            harness.end_input()
        assert harness.metrics.snapshot()[NAME + "numFailures"] == 3


def test_a_call_that_hangs_is_given_up_with_its_worker():
    class Hanging(InlineWorker):
        made = 0

        def __init__(self, spec):
            Hanging.made += 1
            self.hangs = Hanging.made == 1
            super().__init__(spec)

        async def call(self, data):
            await asyncio.sleep(3600 if self.hangs else 0)
            return await super().call(data)

    with OperatorHarness(pooled(open_worker=Hanging, timeout_ms=500)) as harness:
        harness.process(1)
        harness.end_input()
        assert harness.output_values() == [2] and Hanging.made == 2
        assert harness.metrics.snapshot()[NAME + "numTimeouts"] == 1


class Absent(InlineWorker):
    """Is never there."""

    async def ready(self):
        await asyncio.Event().wait()

    async def awaited(self):
        return "the cluster has 2 CPUs, 0 of them free"


def test_a_worker_that_never_comes_fails_the_job_with_the_request_and_the_resources():
    with OperatorHarness(pooled(open_worker=Absent, num_gpus=8)) as harness:
        harness.process(1)
        said = "num_gpus=8 was not there.* within 300000 ms: the cluster has 2 CPUs, 0 of them free; give the cluster"
        with pytest.raises(UserCodeError, match=said):
            harness.end_input()


def test_the_log_says_soon_and_then_repeatedly_which_workers_are_awaited(caplog):
    class Late(Absent):
        async def ready(self):
            await asyncio.sleep(70)

    how = {"size": 3, "batch_size": 1, "open_worker": Late, "resources": {"tpu": 1}}
    with OperatorHarness(pooled(**how)) as harness:
        for number in range(3):
            harness.process(number)
        harness.set_processing_time(4_999)
        assert caplog.messages == []
        harness.set_processing_time(5_000)
        said = "3 of its 3 processes, each with num_cpus=1, num_gpus=0, resources={'tpu': 1}: the cluster has 2 CPUs, 0"
        assert len(caplog.messages) == 1 and said in caplog.messages[0]
        harness.set_processing_time(69_999)
        assert len(caplog.messages) == 3
        harness.end_input()
        assert harness.output_values() == [0, 2, 4] and len(caplog.messages) == 3


def test_an_open_circuit_waits_for_its_probe_and_then_goes_on():
    worker = breaking(*[OSError("down")] * 3)
    how = {"max_retries": 9, "retry_delay_ms": 1, "open_after": 3, "probe_after_ms": 5_000}
    with OperatorHarness(pooled(open_worker=worker, **how)) as harness:
        harness.process(1)
        harness.set_processing_time(1_000)
        assert harness.metrics.snapshot()[NAME + "circuitBreaker"] == "open"
        harness.end_input()
        assert harness.output_values() == [2] and harness.clock.now_ms() >= 5_000
        found = harness.metrics.snapshot()
        assert (found[NAME + "circuitBreaker"], found[NAME + "numTimesOpened"]) == ("closed", 1)


def test_a_circuit_that_stays_open_fails_the_job_after_its_deadline():
    how = {"max_retries": 10**6, "retry_delay_ms": 1, "open_after": 3, "open_deadline_ms": 8_000}
    with OperatorHarness(pooled(open_worker=breaking(and_then=OSError("down")), **how)) as harness:
        harness.process(1)
        with pytest.raises(UserCodeError, match="3 calls in a row failed.*for 8[0-9]{3} ms.*OSError: down"):
            harness.end_input()
        assert 8_000 <= harness.clock.now_ms() < 10_000


def test_with_a_side_output_no_record_waits_for_an_open_circuit_or_fails_the_job():
    tag = OutputTag("no answer")
    worker = breaking(*[OSError("down")] * 3)
    how = {"max_retries": 1, "retry_delay_ms": 1, "open_after": 2, "probe_after_ms": 1_000, "batch_size": 1}
    with OperatorHarness(pooled(open_worker=worker, side_output=tag, **how)) as harness:
        for ms, value in ((10, "a"), (20, "b"), (5_000, "c"), (9_000, 4)):
            harness.set_processing_time(ms)
            harness.process(value, ms)
        harness.end_input()
        assert harness.entries[:2] == [side(tag, "a", 10), side(tag, "b", 20)]
        assert harness.output_values() == [8] and "c" in [r.value for r in harness.side_output(tag)]
        assert harness.metrics.snapshot()[NAME + "numRecordsRejected"] == 3


def test_each_worker_has_an_instance_of_its_own_and_a_loading_error_is_the_functions():
    class Broken:
        def __init__(self):
            raise FileNotFoundError("weights.bin")

        def __call__(self, rows):
            return rows

    class Counting:
        def __init__(self):
            self.calls = 0

        def __call__(self, rows):
            self.calls += 1
            return [self.calls for _ in rows]

    with OperatorHarness(pooled(Counting, size=2, batch_size=1)) as harness:
        for n in range(4):
            harness.process(n)
        harness.end_input()
        assert harness.output_values() == [1, 1, 2, 2]
    with OperatorHarness(pooled(Broken, max_retries=0)) as harness:
        with pytest.raises(UserCodeError, match=r"FileNotFoundError: weights\.bin"):
            harness.process(1)


def exits(rows):
    raise SystemExit("bye")


@pytest.mark.parametrize(
    "function, found",
    [
        (lambda rows: 5, "with form='rows' a list of results is wanted, found int"),
        (exits, "the function raised SystemExit: bye"),
        (lambda rows: [1], "2 rows with timestamps became 1 rows.*give a result for each row"),
    ],
)
def test_what_a_function_must_not_do_fails_the_job(function, found):
    with OperatorHarness(pooled(function, max_retries=0, batch_size=2)) as harness:
        harness.process("a", 1)
        with pytest.raises(UserCodeError, match=found):
            harness.process("b", 2)


class Mapping(MapFunction):
    def map(self, value):
        return value


async def coroutine(rows):
    return rows


def test_what_cannot_be_hosted_is_refused():
    for function, found in [
        (object, "give the class a method __call__"),
        (Mapping(), "open.. of the Mapping would not be called"),
        (coroutine, "use AsyncDataStream"),
        (5, "a callable is wanted"),
    ]:
        with pytest.raises(InvalidFunction, match=found):
            PooledBatchesOperator(function, ActorPool())
    with pytest.raises(ValueError, match="form must be one of"):
        PooledBatchesOperator(Doubling, ActorPool(), "csv")
    with pytest.raises(ValueError, match="leave timestamp_column out"):
        PooledBatchesOperator(Doubling, ActorPool(), "rows", "time")


def test_a_function_may_change_the_list_it_is_given():
    def emptied(rows):
        return [rows.pop(0) for _ in range(len(rows))]

    verify(
        pooled(emptied, batch_size=2),
        [rec(1, 1), rec(2, 2), rec(3, 3), wm(3), end()],
        [rec(1, 1), rec(2, 2), rec(3, 3), wm(3), MAX_WATERMARK],
    )


def test_a_worker_is_asked_once_whether_it_is_there():
    class Asked(InlineWorker):
        times = 0

        async def ready(self):
            Asked.times += 1
            await super().ready()

    with OperatorHarness(pooled(open_worker=Asked, batch_size=1)) as harness:
        for n in range(4):
            harness.process(n)
        harness.end_input()
        assert harness.output_values() == [0, 2, 4, 6] and Asked.times == 1
