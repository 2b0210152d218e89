"""Contents of an operator in which the rows of one state are replaced."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from rayflink.state.errors import StateError
from rayflink.state.group_content import Content
from rayflink.state.keys import canonical_key
from rayflink.state.keys.key_columns import hash_keys
from rayflink.state.keys.key_groups import key_groups_of

from .contents import ENTRY_IN_USE, Lists, OperatorContents
from .rows import StateRow, replaced
from .states import RAW_KEYED, USER

RowChange = Callable[[StateRow], StateRow | None]


class NoContents:
    """The contents of a new operator."""

    def groups(self) -> Iterator[tuple[int, Content]]:
        """Return no key groups."""
        return iter(())

    def lists(self) -> Lists:
        """Return no lists."""
        return {}

    def raw_groups(self) -> Iterator[tuple[int, bytes]]:
        """Return no raw state."""
        return iter(())


class _Edited:
    """The contents of another operator, a part of which is changed by a subclass."""

    def __init__(self, base: OperatorContents) -> None:
        self._base = base

    def groups(self) -> Iterator[tuple[int, Content]]:
        return self._base.groups()

    def lists(self) -> Lists:
        return self._base.lists()

    def raw_groups(self) -> Iterator[tuple[int, bytes]]:
        return self._base.raw_groups()


class ChangedRows(_Edited):
    """The rows of a keyed state, each changed by a function.

    Args:
        base: the other contents.
        state: name and kind of the state, and whether it expires.
        change: a row -> the row in its place, of the same key; None for none.
    """

    def __init__(self, base: OperatorContents, state: tuple[str, str, bool], change: RowChange) -> None:
        super().__init__(base)
        (self._name, self._kind, self._expires), self._change = state, change

    def groups(self) -> Iterator[tuple[int, Content]]:
        for group, content in self._base.groups():
            yield group, replaced(content, self._name, self._kind, self._changed, self._expires)

    def _changed(self, rows: Iterator[StateRow]) -> Iterator[StateRow]:
        for row in rows:
            new = self._change(row)
            if new is None:
                continue
            if not isinstance(new, StateRow) or canonical_key(new.key) != canonical_key(row.key):
                problem = f"a function changed a row of {self._name!r} into {new!r:.100} for {row!r:.100}"
                remedy = "give a StateRow of the same key, as row._replace(value=...), or None"
                raise StateError(f"{problem}; {remedy}; rows of other keys are given as a table")
            yield new._replace(last_access=row.last_access) if new.last_access is None else new


class GivenRows(_Edited):
    """New rows that replace all rows of a keyed state; they are in memory.

    Args:
        base: the other contents.
        state: name and kind of the state, and whether it expires.
        rows: of the state.
        max_parallelism: key groups of the operator.
    """

    def __init__(
        self, base: OperatorContents, state: tuple[str, str, bool], rows: Iterable[StateRow], max_parallelism: int
    ) -> None:
        super().__init__(base)
        self._name, self._kind, self._expires = state
        self._by_group: dict[int, list[StateRow]] = {}
        rows = list(rows)
        keys = [canonical_key(row.key) for row in rows]
        groups = key_groups_of(hash_keys(keys), max_parallelism).tolist() if keys else []
        for group, row in zip(groups, rows, strict=True):
            self._by_group.setdefault(group, []).append(row)

    def groups(self) -> Iterator[tuple[int, Content]]:
        waiting = sorted(self._by_group, reverse=True)
        for group, content in self._base.groups():
            while waiting and waiting[-1] < group:
                yield self._with(waiting.pop(), {"tables": {}, "timers": {}})
            if waiting and waiting[-1] == group:
                waiting.pop()
            yield self._with(group, content)
        while waiting:
            yield self._with(waiting.pop(), {"tables": {}, "timers": {}})

    def _with(self, group: int, content: Content) -> tuple[int, Content]:
        new_rows = self._by_group.get(group, [])
        return group, replaced(content, self._name, self._kind, lambda rows: new_rows, self._expires)


class GivenEntries(_Edited):
    """New entries that replace all entries of an operator state.

    Args:
        base: the other contents.
        name: of the state.
        mode: "split", "union" or "broadcast".
        rows: its rows; the key is the subtask whose entry it is, None for the first.
        parallelism: of the operator.
    """

    def __init__(
        self, base: OperatorContents, name: str, mode: str, rows: Iterable[StateRow], parallelism: int
    ) -> None:
        super().__init__(base)
        self._name = USER + name
        shares: list[list[bytes]] = [[] for _ in range(parallelism)]
        for row in rows:
            entry = (row.part, row.value) if mode == "broadcast" else row.value
            data = ENTRY_IN_USE + pickle.dumps(entry, protocol=5)
            if mode == "broadcast":
                for share in shares:
                    share.append(data)
            else:
                shares[min(row.key or 0, parallelism - 1)].append(data)
        self._entries = mode, tuple(map(tuple, shares))

    def lists(self) -> Lists:
        return {**self._base.lists(), self._name: self._entries}


class WithoutState(_Edited):
    """The contents of another operator without one of its states.

    Args:
        base: the other contents.
        name: of the state.
        is_keyed: whether it is state by key, or timers.
    """

    def __init__(self, base: OperatorContents, name: str, is_keyed: bool) -> None:
        super().__init__(base)
        self._name, self._is_keyed = name, is_keyed

    def raw_groups(self) -> Iterator[tuple[int, bytes]]:
        return iter(()) if not self._is_keyed and self._name == RAW_KEYED else self._base.raw_groups()

    def groups(self) -> Iterator[tuple[int, Content]]:
        for group, content in self._base.groups():
            if self._is_keyed:
                content = {
                    part: {name: rows for name, rows in content[part].items() if name != self._name}
                    for part in ("tables", "timers")
                }
            if content["tables"] or content["timers"]:
                yield group, content

    def lists(self) -> Lists:
        gone: Sequence[str] = () if self._is_keyed else (self._name, USER + self._name)
        base_lists: Mapping[str, tuple[str, tuple[tuple[bytes, ...], ...]]] = self._base.lists()
        return {name: entries for name, entries in base_lists.items() if name not in gone}


__all__ = ["ChangedRows", "GivenEntries", "GivenRows", "NoContents", "RowChange", "WithoutState"]
