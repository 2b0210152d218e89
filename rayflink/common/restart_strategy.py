"""Strategies of restarts, with the names of PyFlink 1.20; in 2.x there are only the options."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from .configuration import Configuration
from .options import registry as options
from .time import Length, to_millis


def _length(value: Length, what: str) -> timedelta:
    try:
        return timedelta(milliseconds=to_millis(value))
    except TypeError as error:
        raise TypeError(f"{what}: {error}") from None


class RestartStrategyConfiguration:
    """A restart strategy, made by `RestartStrategies`; it stands for the options `restart-strategy.*`."""

    _type: options.RestartStrategyType | None = None

    def get_description(self) -> str:
        """Return a description of the strategy in a few words."""
        raise NotImplementedError(f"{type(self).__name__}.get_description")

    def options(self) -> dict[Any, Any]:
        """Return option -> value of what the strategy sets in addition to its type."""
        return {}

    def apply(self, configuration: Configuration) -> None:
        """Set the options the strategy stands for."""
        if self._type is not None:
            configuration.set(options.RESTART_STRATEGY, self._type)
        for option, value in self.options().items():
            configuration.set(option, value)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self).__name__, *vars(self).values()))

    def __repr__(self) -> str:
        return f"<{self.get_description()}>"


class NoRestartStrategyConfiguration(RestartStrategyConfiguration):
    """A strategy without restarts: a failed job stays failed."""

    _type = options.RestartStrategyType.NONE

    def get_description(self) -> str:
        return "Restart deactivated."


class FallbackRestartStrategyConfiguration(RestartStrategyConfiguration):
    """The strategy that the options name; it sets none."""

    def get_description(self) -> str:
        return "Cluster level default restart strategy"


class FixedDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
    """A fixed number of restarts, each after the same time.

    Args:
        restart_attempts: restarts before the job fails, at least 0.
        delay_between_attempts_interval: time before a restart: milliseconds or a duration.
    """

    _type = options.RestartStrategyType.FIXED_DELAY

    def __init__(self, restart_attempts: int, delay_between_attempts_interval: Length) -> None:
        self._attempts = restart_attempts
        self._delay = _length(delay_between_attempts_interval, "delay_between_attempts_interval")

    def get_restart_attempts(self) -> int:
        """Return the number of restarts before the job fails."""
        return self._attempts

    def get_delay_between_attempts_interval(self) -> timedelta:
        """Return the time before a restart."""
        return self._delay

    def get_description(self) -> str:
        return f"Restart with fixed delay ({to_millis(self._delay)} ms). #{self._attempts} restart attempts."

    def options(self) -> dict[Any, Any]:
        return {options.FIXED_DELAY_ATTEMPTS: self._attempts, options.FIXED_DELAY_DELAY: self._delay}


class FailureRateRestartStrategyConfiguration(RestartStrategyConfiguration):
    """Restarts as long as failures are rare.

    Args:
        max_failure_rate: failures within the interval that still restart, at least 0.
        failure_interval: time in which failures are counted: milliseconds or a duration.
        delay_between_attempts_interval: time before a restart: milliseconds or a duration.
    """

    _type = options.RestartStrategyType.FAILURE_RATE

    def __init__(
        self, max_failure_rate: int, failure_interval: Length, delay_between_attempts_interval: Length
    ) -> None:
        self._rate = max_failure_rate
        self._interval = _length(failure_interval, "failure_interval")
        self._delay = _length(delay_between_attempts_interval, "delay_between_attempts_interval")

    def get_max_failure_rate(self) -> int:
        """Return the number of failures within the interval that still restart."""
        return self._rate

    def get_failure_interval(self) -> timedelta:
        """Return the time in which failures are counted."""
        return self._interval

    def get_delay_between_attempts_interval(self) -> timedelta:
        """Return the time before a restart."""
        return self._delay

    def get_description(self) -> str:
        return (
            f"Failure rate restart with maximum of {self._rate} failures within interval "
            f"{to_millis(self._interval)} ms and fixed delay {to_millis(self._delay)} ms."
        )

    def options(self) -> dict[Any, Any]:
        return {
            options.FAILURE_RATE_MAX: self._rate,
            options.FAILURE_RATE_INTERVAL: self._interval,
            options.FAILURE_RATE_DELAY: self._delay,
        }


class RestartStrategies:
    """Makes restart strategies.

    >>> RestartStrategies.fixed_delay_restart(3, 500)
    <Restart with fixed delay (500 ms). #3 restart attempts.>
    """

    NoRestartStrategyConfiguration = NoRestartStrategyConfiguration
    FixedDelayRestartStrategyConfiguration = FixedDelayRestartStrategyConfiguration
    FailureRateRestartStrategyConfiguration = FailureRateRestartStrategyConfiguration
    FallbackRestartStrategyConfiguration = FallbackRestartStrategyConfiguration

    @staticmethod
    def no_restart() -> RestartStrategyConfiguration:
        """Return the strategy by which a failed job stays failed."""
        return NoRestartStrategyConfiguration()

    @staticmethod
    def fall_back_restart() -> RestartStrategyConfiguration:
        """Return the strategy that leaves the choice to the options."""
        return FallbackRestartStrategyConfiguration()

    @staticmethod
    def fixed_delay_restart(restart_attempts: int, delay_between_attempts: Length) -> RestartStrategyConfiguration:
        """Return a strategy with a fixed number of restarts, each after the same time: milliseconds or a duration.

        Raises:
            TypeError: the time is no length of time.
        """
        return FixedDelayRestartStrategyConfiguration(restart_attempts, delay_between_attempts)

    @staticmethod
    def failure_rate_restart(
        failure_rate: int, failure_interval: Length, delay_interval: Length
    ) -> RestartStrategyConfiguration:
        """Return a strategy that restarts while there are few enough failures within an interval.

        `failure_rate` is the largest number that still restarts; times are milliseconds or durations.

        Raises:
            TypeError: a time is no length of time.
        """
        return FailureRateRestartStrategyConfiguration(failure_rate, failure_interval, delay_interval)


def restart_strategy_of(configuration: Configuration) -> RestartStrategyConfiguration:
    """Return the strategy that the options ask for; the fallback one where they name none that PyFlink has."""
    kind = configuration.get(options.RESTART_STRATEGY)
    types = options.RestartStrategyType
    if kind in (types.NONE, types.OFF, types.DISABLE):
        return NoRestartStrategyConfiguration()
    if kind is types.FIXED_DELAY:
        attempts = configuration.get(options.FIXED_DELAY_ATTEMPTS)
        return FixedDelayRestartStrategyConfiguration(attempts, configuration.get(options.FIXED_DELAY_DELAY))
    if kind is types.FAILURE_RATE:
        rate, interval = configuration.get(options.FAILURE_RATE_MAX), configuration.get(options.FAILURE_RATE_INTERVAL)
        return FailureRateRestartStrategyConfiguration(rate, interval, configuration.get(options.FAILURE_RATE_DELAY))
    return FallbackRestartStrategyConfiguration()


__all__ = ["RestartStrategies", "RestartStrategyConfiguration", "restart_strategy_of"]
