"""Strategies and predicates by which async calls are tried again, with PyFlink's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from .function_classes import AsyncRetryPredicate, AsyncRetryStrategy

OUT = TypeVar("OUT")


class RetryPredicate(AsyncRetryPredicate[OUT], Generic[OUT]):
    """The outcomes that are tried again, as two functions.

    Args:
        result_predicate: of the list of results; None: none is.
        exception_predicate: of the exception; None: none is.
    """

    def __init__(
        self,
        result_predicate: Callable[[list[OUT]], bool] | None,
        exception_predicate: Callable[[Exception], bool] | None,
    ) -> None:
        self._result_predicate = result_predicate
        self._exception_predicate = exception_predicate

    def result_predicate(self) -> Callable[[list[OUT]], bool] | None:
        return self._result_predicate

    def exception_predicate(self) -> Callable[[Exception], bool] | None:
        return self._exception_predicate


class NoRetryStrategy(AsyncRetryStrategy[OUT], Generic[OUT]):
    """Nothing is tried again."""

    def can_retry(self, current_attempts: int) -> bool:
        return False

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return -1

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        return RetryPredicate(None, None)


class FixedDelayRetryStrategy(AsyncRetryStrategy[OUT], Generic[OUT]):
    """The same pause before each further attempt.

    >>> strategy = FixedDelayRetryStrategy(2, 100, None, lambda error: isinstance(error, OSError))
    >>> [strategy.can_retry(attempts) for attempts in (1, 2, 3)]
    [True, True, False]

    Args:
        max_attempts: further attempts after the first, at least 1.
        backoff_time_millis: at least 1.
        result_predicate, exception_predicate: as of `RetryPredicate`.

    Raises:
        ValueError: a number is below 1.
    """

    def __init__(
        self,
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: Callable[[list[OUT]], bool] | None,
        exception_predicate: Callable[[Exception], bool] | None,
    ) -> None:
        _ensure_positive(max_attempts=max_attempts, backoff_time_millis=backoff_time_millis)
        self._max_attempts, self._backoff_time_millis = max_attempts, backoff_time_millis
        self._predicate = RetryPredicate(result_predicate, exception_predicate)

    def can_retry(self, current_attempts: int) -> bool:
        return current_attempts <= self._max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return self._backoff_time_millis

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        return self._predicate


class ExponentialBackoffDelayRetryStrategy(AsyncRetryStrategy[OUT], Generic[OUT]):
    """A pause before each further attempt that grows; each record begins with the first pause.

    >>> strategy = ExponentialBackoffDelayRetryStrategy(5, 100, 350, 2.0, None, lambda error: True)
    >>> [strategy.get_backoff_time_millis(attempts) for attempts in (1, 2, 3, 4)]
    [100, 200, 350, 350]

    Args:
        max_attempts: further attempts after the first, at least 1.
        initial_delay: milliseconds before the second attempt, at least 1.
        max_retry_delay: milliseconds, at least 1.
        multiplier: of one pause to the next, above 0.
        result_predicate, exception_predicate: as of `RetryPredicate`.

    Raises:
        ValueError: a number is out of its range.
    """

    def __init__(
        self,
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: Callable[[list[OUT]], bool] | None,
        exception_predicate: Callable[[Exception], bool] | None,
    ) -> None:
        _ensure_positive(max_attempts=max_attempts, initial_delay=initial_delay, max_retry_delay=max_retry_delay)
        _ensure_positive(multiplier=multiplier)
        self._max_attempts, self._multiplier = max_attempts, multiplier
        self._initial_delay, self._max_retry_delay = initial_delay, max_retry_delay
        self._predicate = RetryPredicate(result_predicate, exception_predicate)

    def can_retry(self, current_attempts: int) -> bool:
        return current_attempts <= self._max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        pause = float(self._initial_delay)
        for _ in range(1, current_attempts):
            pause *= self._multiplier
            if pause >= self._max_retry_delay:
                return self._max_retry_delay
        return int(pause)

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        return self._predicate


NO_RETRY_STRATEGY: AsyncRetryStrategy[Any] = NoRetryStrategy()
"""Nothing is tried again."""


def empty_result_predicate(result: list[Any]) -> bool:
    """Return whether there are no results."""
    return result is None or len(result) == 0


def has_exception_predicate(error: Exception) -> bool:
    """Return whether there is an exception."""
    return error is not None


def exception_type_predicate(error: Exception, expected_error_type: type[BaseException]) -> bool:
    """Return whether the exception is of a type; give that type by `functools.partial`."""
    return isinstance(error, expected_error_type)


def _ensure_positive(**parameters: float) -> None:
    for name, value in parameters.items():
        if value <= 0:
            raise ValueError(f"{name} must be above 0, found {value!r}")


__all__ = [
    "NO_RETRY_STRATEGY", "ExponentialBackoffDelayRetryStrategy", "FixedDelayRetryStrategy", "NoRetryStrategy",
    "RetryPredicate", "empty_result_predicate", "exception_type_predicate", "has_exception_predicate",
]  # fmt: skip
