"""The answer to a question about a running job, which may come later."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_PENDING: Any = object()


class CompletableFuture(Generic[T]):
    """An answer that is there, or that can be waited for.

    Args:
        ask: waits at most the seconds that it is passed, None for as long as it takes; returns the answer, or
            `PENDING` where it is not there by then. What it raises is the future's exception.

    >>> future = CompletableFuture.completed(42)
    >>> future.done(), future.result(), future.exception(), future.cancel()
    (True, 42, None, False)
    """

    PENDING = _PENDING

    def __init__(self, ask: Callable[[float | None], T]) -> None:
        self._ask = ask
        self._value: Any = _PENDING
        self._error: Exception | None = None
        self._cancelled = False

    @staticmethod
    def completed(value: T) -> CompletableFuture[T]:
        """Return a future whose answer is there."""
        future: CompletableFuture[T] = CompletableFuture(lambda _: value)
        future._value = value
        return future

    def cancel(self) -> bool:
        """Give up waiting, unless it is done, and return whether it was given up now. The job itself goes on."""
        if not self.done():
            self._cancelled = True
        return self._cancelled

    def cancelled(self) -> bool:
        """Return whether `cancel` came before the answer."""
        return self._cancelled

    def done(self) -> bool:
        """Return whether there is an answer or an exception, or the future was cancelled; does not wait."""
        self._try(0)
        return self._is_complete

    def done_within(self, timeout_s: float) -> bool:
        """Return whether it is done, after waiting for it for a limited time."""
        self._try(timeout_s)
        return self._is_complete

    def result(self) -> T:
        """Wait for the answer and return it.

        Raises:
            CancelledError: the future was cancelled.
            Exception: what kept the answer from coming: for the result of a job, `JobFailed` and the like.
        """
        while not self._is_complete:
            self._try(None)
        if self._cancelled:
            raise CancelledError("the future was cancelled; ask the job's client for another one")
        if self._error is not None:
            raise self._error
        answer: T = self._value
        return answer

    def exception(self) -> Exception | None:
        """Return the exception that took the answer's place; None where there is an answer, or none yet."""
        self._try(0)
        return CancelledError() if self._cancelled else self._error

    @property
    def _is_complete(self) -> bool:
        return self._cancelled or self._error is not None or self._value is not _PENDING

    def _try(self, timeout_s: float | None) -> None:
        if self._is_complete:
            return
        try:
            self._value = self._ask(timeout_s)
        except Exception as error:  # whatever ended the job is what the future raises
            self._error = error

    def __str__(self) -> str:
        state = "Cancelled" if self._cancelled else "Completed exceptionally" if self._error is not None else ""
        state = state or ("Not completed" if self._value is _PENDING else "Completed normally")
        return f"CompletableFuture[{state}]"


__all__ = ["CompletableFuture"]
