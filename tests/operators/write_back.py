"""A backend that keeps bytes and hands out decoded copies: what an operator does not announce as changed is lost."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from typing import Any

from rayflink.operators.base import OperatorContext
from rayflink.state.errors import SerializationError
from rayflink.state.keys import canonical_key
from rayflink.state.keys.key_groups import key_group_range
from rayflink.state.memory import HashMapBackend, HashMapTable


class WriteBackTable(HashMapTable):
    """Stores pickled values; a loaded dict is a copy."""

    __slots__ = ("_loaded", "name")

    tracks_changes = True

    def __init__(self, groups_of: Any) -> None:
        super().__init__(groups_of)
        self._loaded: dict[Any, dict[Any, Any]] = {}
        self.name = ""

    def load(self, keys: Iterable[Any], namespace: Any = None) -> dict[Any, Any]:
        space = self._spaces.get(namespace, {})
        wanted = [canonical_key(key) for key in keys]
        self._loaded[namespace] = {key: pickle.loads(space[key]) for key in wanted if key in space}
        return self._loaded[namespace]

    def changed(self, keys: Iterable[Any], namespace: Any = None) -> None:
        space = self._spaces.setdefault(namespace, {})
        for key in map(canonical_key, keys):
            if key in self._loaded[namespace]:
                space[key] = self._pickled(self._loaded[namespace][key])

    def get(self, key: Any, namespace: Any = None, default: Any = None) -> Any:
        data = super().get(key, namespace)
        return default if data is None else pickle.loads(data)

    def put(self, key: Any, value: Any, namespace: Any = None) -> None:
        self._spaces.setdefault(namespace, {})[key] = self._pickled(value)

    def append(self, key: Any, value: Any, namespace: Any = None) -> None:
        self.put(key, [*self.get(key, namespace, ()), value], namespace)

    def _pickled(self, value: Any) -> bytes:
        try:
            return pickle.dumps(value)
        except Exception as error:
            raise SerializationError("the backend", f"a value of state {self.name!r}", "keep others") from error

    def rows(self) -> Any:
        for key, namespace, data in super().rows():
            yield key, namespace, pickle.loads(data)

    def copy_entries(self) -> Any:
        return list(self.rows())


class WriteBackMapTable:
    """A map table that reads and writes whole maps."""

    def __init__(self, table: WriteBackTable) -> None:
        self._table = table

    def get(self, key: Any, map_key: Any, namespace: Any = None, default: Any = None) -> Any:
        return self._table.get(key, namespace, {}).get(map_key, default)

    def put(self, key: Any, map_key: Any, value: Any, namespace: Any = None) -> None:
        self._table.put(key, {**self._table.get(key, namespace, {}), map_key: value}, namespace)

    def remove(self, key: Any, map_key: Any, namespace: Any = None) -> None:
        kept = {k: v for k, v in self._table.get(key, namespace, {}).items() if k != map_key}
        self._table.put(key, kept, namespace) if kept else self._table.remove(key, namespace)

    def contains(self, key: Any, map_key: Any, namespace: Any = None) -> bool:
        return map_key in self._table.get(key, namespace, {})

    def items(self, key: Any, namespace: Any = None) -> list[tuple[Any, Any]]:
        return list(self._table.get(key, namespace, {}).items())

    def clear(self, key: Any, namespace: Any = None) -> None:
        self._table.remove(key, namespace)

    def walk(self) -> Any:
        return self._table.walk()


class WriteBackBackend(HashMapBackend):
    """The hashmap backend with tables that write back."""

    create_table = WriteBackTable

    def _table(self, name: str, kind: str) -> WriteBackTable:
        table = super()._table(name, kind)
        assert isinstance(table, WriteBackTable)
        table.name = name
        return table

    def map_table(self, descriptor: Any) -> Any:
        return WriteBackMapTable(self._table(descriptor.name, descriptor.stored_kind))


def write_back_backend(ctx: OperatorContext) -> WriteBackBackend:
    """The backend of one subtask."""
    return WriteBackBackend(key_group_range(ctx.subtask, ctx.parallelism, ctx.max_parallelism), ctx.max_parallelism)
