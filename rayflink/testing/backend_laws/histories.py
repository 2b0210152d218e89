"""Laws that hypothesis tries: random histories of a backend against plain dicts."""

from __future__ import annotations

from .subject import Law, Subject


def a_history_gives_what_dicts_would_give(subject: Subject) -> None:
    from .model import check_histories

    check_histories(subject.make_backend, histories=50, steps=40)


def many_long_histories_give_what_dicts_would_give(subject: Subject) -> None:
    from .model import check_histories

    check_histories(subject.make_backend, histories=250, steps=60)


LAWS: tuple[Law, ...] = (a_history_gives_what_dicts_would_give,)
LONG_LAWS: tuple[Law, ...] = (many_long_histories_give_what_dicts_would_give,)
