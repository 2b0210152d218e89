"""Bad inputs of keyed state on RocksDB; `tests/errors/bad_inputs.py` gathers them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rayflink.common import Types
from rayflink.datastream import KeyedProcessFunction
from rayflink.datastream.state import ListStateDescriptor, ValueStateDescriptor
from tests.errors.bad_input import RUNNING, bad


class _Opening(KeyedProcessFunction):
    """Asks for its states as it is told."""

    def __init__(self, ask: Callable[[Any], Any]) -> None:
        self.ask = ask

    def open(self, context: Any) -> None:
        self.ask(context)

    def process_element(self, value: Any, ctx: Any) -> None:
        pass


def _asking(env: Any, ask: Callable[[Any], Any]) -> None:
    env.from_collection([1]).key_by(lambda v: v).process(_Opening(ask)).print()


@bad("one name for states of two kinds", RUNNING, "have the name 's': value state, and list state; give each a name")
def _(env: Any, folder: Path) -> None:
    _asking(env, lambda c: (c.get_state(ValueStateDescriptor("s")), c.get_list_state(ListStateDescriptor("s"))))


@bad("one name for states of two types", RUNNING, "'s': value state of Integer, and value state of String; give each")
def _(env: Any, folder: Path) -> None:
    types = Types.INT(), Types.STRING()
    _asking(env, lambda c: [c.get_state(ValueStateDescriptor("s", one)) for one in types])


class Secretive:
    """Can be copied, not pickled."""

    def __deepcopy__(self, memo: Any) -> Secretive:
        return self

    def __reduce__(self) -> Any:
        raise ValueError("not for others")


class _Keeping(KeyedProcessFunction):
    def open(self, context: Any) -> None:
        self.state = context.get_state(ValueStateDescriptor("held"))

    def process_element(self, value: Any, ctx: Any) -> None:
        self.state.update(Secretive() if value == 7 else str(value))


@bad(
    "state that cannot be pickled, more than the cache holds", RUNNING,
    "cannot serialize a value of state 'held' of key 7 (ValueError: not for others); keep in state only values",
)  # fmt: skip
def _(env: Any, folder: Path) -> None:
    env.get_configuration().set_string("state.backend.rocksdb.memory.fixed-per-slot", "16 kb")
    env.from_collection(range(500)).key_by(lambda v: v).process(_Keeping()).print()


@bad(
    "a folder for RocksDB that cannot be made", RUNNING,
    "'state.backend.rocksdb.localdir': found '/proc/state' (", "wanted a folder in which a folder can be made; set it",
)  # fmt: skip
def _(env: Any, folder: Path) -> None:
    env.get_configuration().set_string("state.backend.rocksdb.localdir", "/proc/state")
    env.from_collection([1]).key_by(lambda v: v).sum().print()
