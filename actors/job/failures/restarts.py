"""Restart strategies: whether and after which delay a failed job restarts. No clock, no randomness of its own.

Source: apache/flink 2.x FixedDelay-, FailureRate- and ExponentialDelayRestartBackoffTimeStrategy.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from random import Random
from typing import Any

from rayflink.common.configuration import Configuration
from rayflink.common.errors import ConfigError
from rayflink.common.options import registry as options
from rayflink.common.options.registry import RestartStrategyType


class RestartStrategy(ABC):
    """A restart strategy, asked at each failure; `str` is Flink's name of it with its settings, in milliseconds."""

    @staticmethod
    def of(config: Mapping[str, Any], checkpointing: bool, chance: Random) -> RestartStrategy:
        """Create the restart strategy of a job.

        Where `restart-strategy.type` is absent, a job with checkpoints restarts with exponential delay and one without
        never does. Other than in Flink the settings of exponential delay hold then too.

        Args:
            config: option key -> value.
            checkpointing: whether the job takes checkpoints.
            chance: for the jitter of exponential delay.

        Raises:
            ConfigError: a value does not parse, or the initial backoff exceeds the longest.
        """
        get = Configuration.from_dict(config).get
        kind = get(options.RESTART_STRATEGY)
        if kind is None:
            kind = RestartStrategyType.EXPONENTIAL_DELAY if checkpointing else RestartStrategyType.NONE
        if kind is RestartStrategyType.FIXED_DELAY:
            return FixedDelay(get(options.FIXED_DELAY_ATTEMPTS), get(options.FIXED_DELAY_DELAY).to_millis())
        if kind is RestartStrategyType.FAILURE_RATE:
            interval, delay = get(options.FAILURE_RATE_INTERVAL), get(options.FAILURE_RATE_DELAY)
            return FailureRate(get(options.FAILURE_RATE_MAX), interval.to_millis(), delay.to_millis())
        if kind is RestartStrategyType.EXPONENTIAL_DELAY:
            return ExponentialDelay(Configuration.from_dict(config), chance)
        return NoRestart()

    @abstractmethod
    def failed(self, now_ms: int) -> int | None:
        """Record a failure; return the milliseconds until the restart, None where there is none any more."""

    @property
    def refusal(self) -> str:
        """Return the job's message when it does not restart."""
        return f"Recovery is suppressed by {self}"


class NoRestart(RestartStrategy):
    """Ends the job with the first failure."""

    def failed(self, now_ms: int) -> int | None:
        return None

    def __str__(self) -> str:
        return "NoRestartBackoffTimeStrategy"


class FixedDelay(RestartStrategy):
    """Allows a number of restarts in the life of the job, each after the same time.

    >>> strategy = FixedDelay(2, 500)
    >>> [strategy.failed(now) for now in (0, 10, 20)]
    [500, 500, None]
    """

    def __init__(self, attempts: int, delay_ms: int) -> None:
        self._attempts, self._delay_ms = attempts, delay_ms
        self._failures = 0

    def failed(self, now_ms: int) -> int | None:
        self._failures += 1
        return self._delay_ms if self._failures <= self._attempts else None

    def __str__(self) -> str:
        settings = f"maxNumberRestartAttempts={self._attempts}, backoffTimeMS={self._delay_ms}"
        return f"FixedDelayRestartBackoffTimeStrategy({settings})"


class FailureRate(RestartStrategy):
    """Restarts until more than `most` failures lie within an interval, whose end belongs to it.

    >>> strategy = FailureRate(1, 100, 5)
    >>> [strategy.failed(now) for now in (0, 101, 201)]
    [5, 5, None]
    """

    def __init__(self, most: int, interval_ms: int, delay_ms: int) -> None:
        self._most, self._interval_ms, self._delay_ms = most, interval_ms, delay_ms
        self._failures: deque[int] = deque(maxlen=most + 1)

    def failed(self, now_ms: int) -> int | None:
        self._failures.append(now_ms)
        if len(self._failures) > self._most and now_ms - self._failures[0] <= self._interval_ms:
            return None
        return self._delay_ms

    def __str__(self) -> str:
        times = f"failuresIntervalMS={self._interval_ms},backoffTimeMS={self._delay_ms}"
        return f"FailureRateRestartBackoffTimeStrategy({times},maxFailuresPerInterval={self._most})"


class ExponentialDelay(RestartStrategy):
    """Waits longer before each restart than before the previous one; a long time without failure resets the delay.

    Failures that come while a restart is waited for, up to its moment, belong to that restart: they neither count nor
    lengthen the wait. The time without failure is measured from the last restart.

    Raises:
        ConfigError: the initial backoff exceeds the longest.
    """

    def __init__(self, config: Configuration, chance: Random) -> None:
        self._initial_ms = config.get(options.BACKOFF_INITIAL).to_millis()
        self._max_ms = config.get(options.BACKOFF_MAX).to_millis()
        self._multiplier = config.get(options.BACKOFF_MULTIPLIER)
        self._reset_ms = config.get(options.BACKOFF_RESET).to_millis()
        self._jitter = config.get(options.BACKOFF_JITTER)
        self._attempts = config.get(options.BACKOFF_ATTEMPTS)
        if self._initial_ms > self._max_ms:
            key, wanted = options.BACKOFF_MAX.key, f"at most {self._max_ms} ms, which is {options.BACKOFF_MAX.key}"
            raise ConfigError(options.BACKOFF_INITIAL.key, f"{self._initial_ms} ms", wanted, f"lower it or raise {key}")
        self._chance = chance
        self._attempt = 0
        self._restart_at_ms: int | None = None

    def failed(self, now_ms: int) -> int | None:
        if self._restart_at_ms is None or now_ms > self._restart_at_ms:
            if self._restart_at_ms is not None and now_ms - self._restart_at_ms >= self._reset_ms:
                self._attempt = 0
            self._restart_at_ms = now_ms + self._backoff_ms()
            self._attempt += 1
        return self._restart_at_ms - now_ms if self._attempt <= self._attempts else None

    def _backoff_ms(self) -> int:
        if math.log(self._initial_ms) + self._attempt * math.log(self._multiplier) > math.log(2**62):
            return self._max_ms
        backoff = int(self._initial_ms * self._multiplier**self._attempt)
        spread = int(backoff * self._jitter)
        jitter = self._chance.randint(-spread, spread) if spread else 0
        return max(self._initial_ms, min(backoff + jitter, self._max_ms))

    def __str__(self) -> str:
        settings = {
            "initialBackoffMS": self._initial_ms, "maxBackoffMS": self._max_ms, "backoffMultiplier": self._multiplier,
            "resetBackoffThresholdMS": self._reset_ms, "jitterFactor": self._jitter,
            "attemptsBeforeResetBackoff": self._attempts, "currentRestartAttempt": self._attempt,
            "nextRestartTimestamp": self._restart_at_ms,
        }  # fmt: skip
        shown = ", ".join(f"{name}={value}" for name, value in settings.items())
        return f"ExponentialDelayRestartBackoffTimeStrategy({shown})"
