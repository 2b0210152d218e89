"""What a pool decides: how large a batch is, whether a failing function is called, and after which pause."""

from __future__ import annotations

import pytest

from rayflink.common.user_code.actor_pool import ActorPool, as_pool
from rayflink.operators.async_io.circuit_breaker import CircuitBreaker
from rayflink.operators.async_io.pooled_batches import AdaptiveBatchSize, FixedBatchSize


def sizes(cost, batches, **how):
    size = AdaptiveBatchSize(**{"target_ms": 100, "largest": 1000, **how})
    found = []
    for _ in range(batches):
        found.append(size.records)
        size.observe(size.records, cost(size.records) / 1000)
    return found


def test_batches_grow_while_that_makes_a_record_cheaper():
    assert sizes(lambda n: 20 + n, 9) == [1, 2, 4, 8, 16, 32, 64, 128, 64]
    assert sizes(lambda n: 10 * n, 4) == [1, 2, 2, 2]


def test_batches_shrink_when_they_take_too_long_and_do_not_come_back_to_that_size():
    assert sizes(lambda n: 1 + n if n < 8 else 500, 8) == [1, 2, 4, 8, 4, 4, 4, 4]
    assert sizes(lambda n: 500, 3) == [1, 1, 1]


def test_batches_are_never_larger_than_allowed_and_others_say_nothing():
    assert sizes(lambda n: 20, 7, largest=24) == [1, 2, 4, 8, 16, 24, 24]
    size = AdaptiveBatchSize(100, 1000)
    size.observe(7, 99)
    assert size.records == 1
    fixed = FixedBatchSize(7)
    fixed.observe(7, 99)
    assert fixed.records == 7


def test_the_breaker_opens_after_failures_in_a_row_alone():
    breaker = CircuitBreaker(failures=3, probe_after_ms=100)
    for outcome in (breaker.failed, breaker.failed, lambda now_ms: breaker.succeeded(), breaker.failed, breaker.failed):
        outcome(now_ms=10)
    assert breaker.state == "closed" and breaker.may_call(10)
    breaker.failed(now_ms=20)
    assert breaker.state == "open" and breaker.open_since_ms == 20 and breaker.times_opened == 1


def test_one_probe_at_a_time_says_whether_it_closes():
    breaker = CircuitBreaker(failures=1, probe_after_ms=100)
    breaker.failed(now_ms=0)
    assert not breaker.may_call(99) and breaker.wait_ms(60) == 40
    assert breaker.may_call(100) and breaker.state == "half-open" and not breaker.may_call(100)
    breaker.failed(now_ms=130)
    assert breaker.state == "open" and breaker.open_since_ms == 0 and breaker.times_opened == 1
    assert not breaker.may_call(229) and breaker.may_call(230)
    breaker.succeeded()
    assert breaker.state == "closed" and breaker.may_call(231)


def test_every_process_belongs_to_one_subtask():
    for size in range(1, 9):
        for parallelism in range(1, size + 1):
            shares = [ActorPool(size).share(subtask, parallelism) for subtask in range(parallelism)]
            assert sum(shares) == size and min(shares) >= 1 and max(shares) - min(shares) <= 1


def test_numbers_out_of_their_range_are_refused():
    assert as_pool(3) == ActorPool(3)
    for given, found in [
        ({"size": 0}, "size must be a number of at least 1, found 0"),
        ({"batch_size": "big"}, "batch_size must be a number of at least 1, found 'big'"),
        ({"timeout_ms": -1}, "timeout_ms must be a number of at least 0, found -1"),
        ({"side_output": "late"}, "side_output must be an OutputTag, found 'late'"),
    ]:
        with pytest.raises(ValueError, match=found):
            ActorPool(**given)
    with pytest.raises(ValueError, match="concurrency must be a number of at least 1, or an ActorPool, found 'two'"):
        as_pool("two")
