"""Ctrl-C and SIGTERM while a Spark of this process runs, also while the program waits for what Spark computes."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext

CANCELS_S = 5.0
"""Time that Spark may take to end its jobs at Ctrl-C."""


@contextmanager
def own_interrupts() -> Iterator[None]:
    """Restore the earlier handling of Ctrl-C when the block ends: the handlers for Spark fail once Spark has ended."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        now = signal.getsignal(signal.SIGINT)
        is_sparks = now is interrupted or _is_pysparks(now)
        if is_sparks and before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def heed_interrupts() -> None:
    """End Spark's jobs on Ctrl-C and raise `KeyboardInterrupt`, whatever this thread waits for.

    The handler of PySpark 3.5 calls the JVM by the very connection on which the thread waits. That fails, and so does
    what was called, with an error of py4j's in place of the interrupt.
    """
    if _is_pysparks(signal.getsignal(signal.SIGINT)):
        signal.signal(signal.SIGINT, interrupted)


def interrupted(number: int, frame: object) -> None:
    """Handle Ctrl-C."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is not None:  # another thread has a connection of its own
        thread = threading.Thread(target=_cancel, args=(context,), name="end of Spark's jobs", daemon=True)
        thread.start()
        thread.join(CANCELS_S)
    raise KeyboardInterrupt


def _cancel(context: SparkContext) -> None:
    with suppress(Exception):  # of py4j's, where Spark itself has ended
        context.cancelAllJobs()


def _is_pysparks(handler: object) -> bool:
    return getattr(handler, "__module__", "") == "pyspark.context"


@contextmanager
def orderly_end() -> Iterator[None]:
    """End the block, and with it the program, by a `SystemExit` on SIGTERM: Ray's own handler ends the process at
    once.
    """
    before = signal.getsignal(signal.SIGTERM)
    is_rays = getattr(before, "__module__", "").startswith("ray.")
    in_main = threading.current_thread() is threading.main_thread()
    if before is None or not in_main or not (is_rays or before == signal.SIG_DFL):
        yield
        return

    def end(number: int, frame: object) -> None:
        forget_connection()
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is end:
            signal.signal(signal.SIGTERM, before)


def forget_connection() -> None:
    """Call the JVM by a new connection from this thread: a reply still outstanding is not the answer to its next call.

    By itself py4j does so after a `KeyboardInterrupt` alone.
    """
    from pyspark import SparkContext

    client = getattr(SparkContext._gateway, "_gateway_client", None)
    connection = client.get_thread_connection() if client is not None else None
    if connection is not None:
        connection.close()


__all__ = ["CANCELS_S", "forget_connection", "heed_interrupts", "interrupted", "orderly_end", "own_interrupts"]
