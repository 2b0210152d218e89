"""The conformance suite finds what is wrong with a backend, and names it."""

import pytest

from rayflink.state.memory import HashMapBackend, HashMapTable
from rayflink.state.timers import TimerQueue
from rayflink.testing import BACKEND_LAWS, check_backend
from rayflink.testing.backend_laws.model import check_histories
from tests.operators.write_back import WriteBackBackend, WriteBackTable


class LosesChanges(WriteBackTable):
    def changed(self, keys, namespace=None):
        super().changed(list(keys)[:2], namespace)


class KeepsRemoved(HashMapTable):
    def remove_all(self, keys, namespace=None):
        super().remove_all(list(keys)[:3], namespace)


class OneNamespace(HashMapTable):
    def append(self, key, value, namespace=None):
        super().append(key, value)


class WalksOnce(HashMapTable):
    def walk(self):
        return iter(list(super().walk())[:2_000])


class FiresByKey(TimerQueue):
    def due(self, until):
        yield from sorted(super().due(until), key=repr)


def backend(table, of=HashMapBackend):
    return type("Broken", (of,), {"create_table": table})


class BrokenTimers(HashMapBackend):
    def timers(self, name):
        return self._timers.setdefault(name, FiresByKey())


def broken_laws(make, laws):
    found = []
    for law in laws:
        try:
            check_backend(make, [law])
        except AssertionError as failure:
            assert str(failure).startswith(law.__name__)
            found.append(law.__name__)
    return found


@pytest.mark.parametrize(
    ("make", "law"),
    [
        (backend(LosesChanges, WriteBackBackend), "loaded_dicts_are_read_and_written"),
        (backend(KeepsRemoved), "keys_of_all_kinds_are_kept_apart"),
        (backend(OneNamespace), "lists_grow_at_the_end"),
        (backend(WalksOnce), "a_walk_misses_nothing_while_the_table_changes"),
        (BrokenTimers, "timers_are_set_and_deleted_while_others_fire"),
    ],
)
def test_what_is_broken_is_named(make, law):
    laws = [one for one in BACKEND_LAWS if one.__name__ == law]
    with pytest.raises(AssertionError, match=f"^{law}: "):
        check_backend(make, laws)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make", [backend(LosesChanges, WriteBackBackend), backend(KeepsRemoved), backend(OneNamespace), BrokenTimers]
)
def test_a_history_finds_it_too(make):
    with pytest.raises(AssertionError):
        check_histories(make, histories=600, steps=40, shrinks=False)
