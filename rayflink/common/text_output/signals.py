"""Ctrl-C and SIGTERM while a program waits for its job."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def heeding_signals(on_signal: Callable[[str], Any]) -> Iterator[None]:
    """Turn Ctrl-C and SIGTERM into a call of `on_signal`; a second one acts as usual."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = {number: handler for number, handler in handlers.items() if handler is not None}  # None: not set by Python

    def handle(number: int, frame: object) -> None:
        signal.signal(number, before[signal.Signals(number)])
        on_signal(signal.Signals(number).name)

    for number in before:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


__all__ = ["heeding_signals"]
