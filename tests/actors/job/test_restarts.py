"""Restart strategies: when a job that failed restarts, and when not any more."""

from __future__ import annotations

import doctest
from random import Random
from typing import Any

import pytest

from rayflink.actors.job.failures import restarts
from rayflink.actors.job.failures.restarts import RestartStrategy
from rayflink.common.errors import ConfigError


def strategy(kind: str | None = None, checkpointing: bool = False, seed: int = 0, **settings: Any) -> RestartStrategy:
    """Of these settings of that kind; underscores stand for hyphens."""
    given = {f"restart-strategy.{kind}.{name.replace('_', '-')}": value for name, value in settings.items()}
    return RestartStrategy.of(given if kind is None else {"restart-strategy.type": kind, **given}, checkpointing,
                              Random(seed))  # fmt: skip


def exponential(**settings: Any) -> RestartStrategy:
    """Backoff 100 ms, doubled, at most 800 ms, reset after 10 s, without jitter."""
    usual = {"initial_backoff": 100, "max_backoff": 800, "backoff_multiplier": 2.0, "reset_backoff_threshold": "10 s",
             "jitter_factor": 0.0}  # fmt: skip
    return strategy("exponential-delay", **{**usual, **settings})


@pytest.mark.spec("H70", "none", "X32", "V16", "names")
@pytest.mark.parametrize("kind", ["none", "off", "disable"])
def test_none_fails_at_once(kind):
    none = strategy(kind, checkpointing=True)
    assert none.failed(0) is None
    assert none.refusal == "Recovery is suppressed by NoRestartBackoffTimeStrategy"


@pytest.mark.spec("H70", "fixed-delay", "X32", "V16", "names", "H71")
@pytest.mark.parametrize("kind", ["fixed-delay", "fixeddelay"])
def test_fixed_delay_restarts_n_times_however_far_apart(kind):
    config = {"restart-strategy.type": kind, "restart-strategy.fixed-delay.attempts": 3,
              "restart-strategy.fixed-delay.delay": "2 s"}  # fmt: skip
    fixed = RestartStrategy.of(config, False, Random(0))
    assert [fixed.failed(now) for now in (0, 1, 10**9, 10**12)] == [2000, 2000, 2000, None]
    assert fixed.refusal == (
        "Recovery is suppressed by FixedDelayRestartBackoffTimeStrategy(maxNumberRestartAttempts=3, backoffTimeMS=2000)"
    )


def test_fixed_delay_restarts_once_after_a_second_where_nothing_else_is_said():
    fixed = strategy("fixed-delay")
    assert [fixed.failed(0), fixed.failed(5)] == [1000, None]


def test_no_attempts_are_no_restart():
    assert strategy("fixed-delay", attempts=0).failed(0) is None
    assert strategy("failure-rate", max_failures_per_interval=0).failed(0) is None
    assert exponential(attempts_before_reset_backoff=0).failed(0) is None


@pytest.mark.spec("H70", "failure-rate", "X32", "V16", "names")
@pytest.mark.parametrize("kind", ["failure-rate", "failurerate"])
def test_failure_rate_restarts_until_the_rate_is_exceeded(kind):
    config = {"restart-strategy.type": kind, "restart-strategy.failure-rate.max-failures-per-interval": 2,
              "restart-strategy.failure-rate.failure-rate-interval": "1 min",
              "restart-strategy.failure-rate.delay": 500}  # fmt: skip
    rate = RestartStrategy.of(config, False, Random(0))
    assert [rate.failed(now) for now in (0, 30_000, 60_001, 90_001)] == [500, 500, 500, 500]
    assert rate.failed(120_001) is None, "the third within a minute, of which both ends count"
    assert rate.refusal == (
        "Recovery is suppressed by FailureRateRestartBackoffTimeStrategy"
        "(failuresIntervalMS=60000,backoffTimeMS=500,maxFailuresPerInterval=2)"
    )


@pytest.mark.parametrize("kind", ["exponential-delay", "exponentialdelay", "EXPONENTIAL_DELAY"])
def test_exponential_delay_is_known_by_flinks_names(kind):
    assert str(strategy(kind)).startswith("ExponentialDelayRestartBackoffTimeStrategy(initialBackoffMS=1000, ")


def test_each_wait_is_longer_up_to_the_longest():
    waits, now, backoff = [], 0, exponential()
    for _ in range(6):
        waits.append(backoff.failed(now))
        now += waits[-1] + 1
    assert waits == [100, 200, 400, 800, 800, 800]


def test_waits_stay_the_longest_however_often_a_job_fails():
    backoff, now = exponential(jitter_factor=1.0, attempts_before_reset_backoff=2**31 - 1), 0
    for _ in range(5000):
        wait = backoff.failed(now)
        now += wait + 1
    assert wait == 800


def test_a_multiplier_of_one_keeps_the_wait():
    backoff, now = exponential(backoff_multiplier=1.0), 0
    for _ in range(5):
        assert backoff.failed(now) == 100
        now += 101


def test_failures_while_a_restart_is_waited_for_belong_to_it():
    backoff = exponential(attempts_before_reset_backoff=2)
    assert [backoff.failed(now) for now in (0, 0, 40, 100)] == [100, 100, 60, 0]
    assert backoff.failed(101) == 200, "the second restart: the four before were one"
    assert [backoff.failed(301), backoff.failed(302)] == [0, None], "the third"


def test_time_without_failure_since_the_last_restart_begins_anew():
    backoff = exponential()
    assert [backoff.failed(0), backoff.failed(200), backoff.failed(10_399)] == [100, 200, 400], "9,999 ms since 400"
    assert backoff.failed(10_799 + 10_000) == 100


def test_attempts_are_counted_since_the_waits_began_anew():
    backoff = exponential(attempts_before_reset_backoff=1)
    assert [backoff.failed(0), backoff.failed(10_100), backoff.failed(20_200)] == [100, 100, 100]
    assert backoff.failed(20_301) is None
    assert backoff.refusal == (
        "Recovery is suppressed by ExponentialDelayRestartBackoffTimeStrategy(initialBackoffMS=100, maxBackoffMS=800, "
        "backoffMultiplier=2.0, resetBackoffThresholdMS=10000, jitterFactor=0.0, attemptsBeforeResetBackoff=1, "
        "currentRestartAttempt=2, nextRestartTimestamp=20501)"
    )


def test_jitter_spreads_the_waits_evenly_between_the_first_and_the_longest():
    def second_wait(seed: int) -> int | None:
        backoff = exponential(seed=seed, jitter_factor=0.25)
        backoff.failed(0)
        return backoff.failed(1_000)

    seconds = [second_wait(seed) for seed in range(2_000)]
    assert set(seconds) == set(range(150, 251))
    firsts = {exponential(seed=seed, jitter_factor=0.25).failed(0) for seed in range(500)}
    assert firsts == set(range(100, 126)), "never below the initial backoff"
    assert {exponential(seed=seed, jitter_factor=0.25, max_backoff=110).failed(0) for seed in range(500)} == set(
        range(100, 111)
    )


def test_one_seed_gives_one_row_of_waits():
    def waits(seed: int) -> list[int | None]:
        backoff = exponential(seed=seed, jitter_factor=0.5)
        return [backoff.failed(now) for now in (0, 2_000, 4_000)]

    assert waits(7) == waits(7)
    assert len({tuple(waits(seed)) for seed in range(10)}) > 1


def test_checkpoints_decide_where_nothing_is_said():
    assert strategy(None, checkpointing=False).failed(0) is None
    first = strategy(None, checkpointing=True)
    assert 1000 <= first.failed(0) <= 1100
    assert str(first).startswith(
        "ExponentialDelayRestartBackoffTimeStrategy(initialBackoffMS=1000, maxBackoffMS=60000, backoffMultiplier=1.5, "
        "resetBackoffThresholdMS=3600000, jitterFactor=0.1, attemptsBeforeResetBackoff=2147483647, "
    )


def test_the_settings_of_exponential_delay_hold_where_the_type_is_absent():
    config = {"restart-strategy.exponential-delay.initial-backoff": "5 ms",
              "restart-strategy.exponential-delay.jitter-factor": 0.0}  # fmt: skip
    assert RestartStrategy.of(config, True, Random(0)).failed(0) == 5


def test_a_first_backoff_above_the_longest_is_refused():
    with pytest.raises(ConfigError) as refused:
        exponential(initial_backoff="2 s", max_backoff="1 s")
    assert str(refused.value) == (
        "option 'restart-strategy.exponential-delay.initial-backoff': found 2000 ms, wanted at most 1000 ms, which is "
        "restart-strategy.exponential-delay.max-backoff; lower it or raise "
        "restart-strategy.exponential-delay.max-backoff"
    )


def test_the_examples_of_the_docstrings_run():
    assert doctest.testmod(restarts).failed == 0
