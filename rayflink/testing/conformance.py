"""The one conformance suite of keyed state backends: laws that hold on every backend alike."""

from __future__ import annotations

from collections.abc import Iterable

from .backend_laws import captures, checkpoints, expiry, handles, histories, snapshots, tables, timers
from .backend_laws.subject import Law, MakeBackend, Subject

LONG_BACKEND_LAWS: tuple[Law, ...] = (*tables.LONG_LAWS, *timers.LONG_LAWS, *histories.LONG_LAWS)
"""The laws about much state; they take seconds."""
BACKEND_LAWS: tuple[Law, ...] = (
    *tables.LAWS,
    *handles.LAWS,
    *snapshots.LAWS,
    *timers.LAWS,
    *captures.LAWS,
    *checkpoints.LAWS,
    *expiry.LAWS,
    *histories.LAWS,
    *LONG_BACKEND_LAWS,
)
"""All laws; the name of each says what it holds. The histories need hypothesis."""


def check_backend(make_backend: MakeBackend, laws: Iterable[Law] = BACKEND_LAWS) -> None:
    """Check that a keyed state backend obeys the laws.

    Order is compared where it means something: elements of a list, timers of different times. The items of a map and
    timers of equal time may come in any order, but each once.

    Args:
        make_backend: ``make_backend(key_groups, max_parallelism, operator_uid)`` makes a new, empty `KeyedBackend`
            that shares nothing with others; it is closed after the law.
        laws: some of `BACKEND_LAWS`.

    Raises:
        AssertionError: a law is broken; its name comes first.

    >>> from rayflink.state.memory import HashMapBackend
    >>> check_backend(HashMapBackend, BACKEND_LAWS[:3])
    """
    for law in laws:
        try:
            with Subject(make_backend) as subject:
                law(subject)
        except Exception as error:
            raise AssertionError(f"{law.__name__}: {error or type(error).__name__}") from error


__all__ = ["BACKEND_LAWS", "LONG_BACKEND_LAWS", "check_backend"]
