"""Laws checked by hypothesis: random histories of a backend against plain dicts."""

from __future__ import annotations

from .subject import Law, Subject


def a_history_gives_what_dicts_would_give(subject: Subject) -> None:
    from .model import check_histories  # which imports this module

    check_histories(subject.make_backend, histories=15, steps=40)


def many_long_histories_give_what_dicts_would_give(subject: Subject) -> None:
    from .model import check_histories  # which imports this module

    check_histories(subject.make_backend, histories=120, steps=50, shrinks=False)


def a_history_of_state_that_expires_loses_nothing_fresh(subject: Subject) -> None:
    from .expiry_model import ExpiringHistory  # which imports this module
    from .model import check_histories  # which imports this module

    check_histories(subject.make_backend, histories=15, steps=30, machine_class=ExpiringHistory)


def many_long_histories_of_state_that_expires_lose_nothing_fresh(subject: Subject) -> None:
    from .expiry_model import ExpiringHistory  # which imports this module
    from .model import check_histories  # which imports this module

    check_histories(subject.make_backend, histories=120, steps=50, machine_class=ExpiringHistory, shrinks=False)


LAWS: tuple[Law, ...] = (a_history_gives_what_dicts_would_give, a_history_of_state_that_expires_loses_nothing_fresh)
LONG_LAWS: tuple[Law, ...] = (
    many_long_histories_give_what_dicts_would_give,
    many_long_histories_of_state_that_expires_lose_nothing_fresh,
)
