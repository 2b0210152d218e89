"""State whose classes change from one version of a program to the next, on both backends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import pytest

from rayflink.common.errors import RayflinkError
from rayflink.connectors.collection import CollectSink
from rayflink.state_processor import read_savepoint
from rayflink.testing import ScriptedSource
from tests.state_processor.savepoints import BACKENDS, NEVER, environment, savepoint_after, wait_until, worked
from tests.state_processor.versions import Versions

pytestmark = pytest.mark.slow
ORDERS = [("ann", 3), ("bob", 5), ("ann", 4)]
LATER = [("ann", 1), ("cid", 2)]

PROGRAM = """
from dataclasses import dataclass, field
from typing import NamedTuple, Optional

from rayflink.common.functions.checkpointed_function import CheckpointedFunction
from rayflink.common.typeinfo import Types
from rayflink.common.types import Row
from rayflink.datastream.functions import KeyedProcessFunction
from rayflink.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor

{classes}


class Orders(KeyedProcessFunction, CheckpointedFunction):
    def open(self, context):
        self.last = context.get_state(ValueStateDescriptor("last"{declared}))
        self.all = context.get_list_state(ListStateDescriptor("all"))
        self.by_amount = context.get_map_state(MapStateDescriptor("by amount"))

    def initialize_state(self, context):
        self.seen = context.get_operator_state_store().get_list_state(ListStateDescriptor("seen"))

    def snapshot_state(self, context):
        pass

    def process_element(self, order, context):
        yield order[0], self.last.value(), list(self.all.get()), dict(self.by_amount.items())
        made = make(*order)
        self.last.update(made)
        self.all.add([made])
        self.by_amount.put(order[1], made)
        self.seen.add(made)
"""


@pytest.fixture
def versions(tmp_path: Path) -> Iterator[Versions]:
    made = Versions(tmp_path, "evolving_orders")
    yield made
    made.forget()


def program(versions: Versions, classes: str, declared: str = "") -> ModuleType:
    return versions.load(PROGRAM.format(classes=dedent(classes), declared=declared))


def taken(folder: Path, backend: str, module: ModuleType, **options: str) -> str:
    env = environment(folder, backend, **options)
    stream = env.from_source(ScriptedSource([*ORDERS, NEVER]), None, "orders").uid("orders")
    stream.key_by(lambda order: order[0]).process(module.Orders()).uid("book").add_sink(lambda row: None)
    return savepoint_after(env, worked("Sink", len(ORDERS)))


def restored(folder: Path, backend: str, module: ModuleType, path: str, **options: str) -> dict[str, tuple[Any, ...]]:
    """Return, for each key, its state when its first later record came."""
    env = environment(folder, backend, execution__state_recovery__path=path, **options)
    stream = env.from_source(ScriptedSource([*ORDERS, NEVER, *LATER]), None, "orders").uid("orders")
    stream.key_by(lambda order: order[0]).process(module.Orders()).uid("book").sink_to(CollectSink())
    rows = env.execute("restored").get_accumulator_result("collect")
    return {row[0]: row[1:] for row in rows}


DATACLASS = """
@dataclass
class Order:
    user: str
    amount: int

def make(user, amount):
    return Order(user, amount)
"""
ADDED = """
@dataclass
class Order:
    user: str
    note: Optional[str] = None
    tags: list = field(default_factory=list)

def make(user, amount):
    return Order(user)
"""
SLOTS = """
@dataclass(frozen=True, slots=True)
class Order:
    user: str
    amount: int

def make(user, amount):
    return Order(user, amount)
"""
SLOTS_ADDED = """
@dataclass(frozen=True, slots=True)
class Order:
    currency: str = "EUR"
    amount: float = 0.0

def make(user, amount):
    return Order("USD", amount)
"""
TUPLE = """
class Order(NamedTuple):
    user: str
    amount: int

def make(user, amount):
    return Order(user, amount)
"""
TUPLE_CHANGED = """
class Order(NamedTuple):
    amount: int
    currency: str = "EUR"

def make(user, amount):
    return Order(amount)
"""
RENAMED = """
@dataclass
class Order:
    customer: str
    cents: int

    @classmethod
    def migrate_state(cls, fields):
        return cls(fields["user"], fields["amount"] * 100)

def make(user, amount):
    return Order(user, amount * 100)
"""


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("before", "after", "of"),
    [
        (DATACLASS, ADDED, lambda order: ("ann", None, [])),
        (SLOTS, SLOTS_ADDED, lambda order: ("EUR", 4)),
        (TUPLE, TUPLE_CHANGED, lambda order: (4, "EUR")),
        (DATACLASS, RENAMED, lambda order: ("ann", 400)),
        (TUPLE, RENAMED, lambda order: ("ann", 400)),
        (DATACLASS, DATACLASS, lambda order: ("ann", 4)),
    ],
    ids=["fields with defaults", "slots", "named tuple", "renamed by its method", "another form", "unchanged"],
)
def test_state_is_restored_into_the_classes_of_now(
    versions: Versions, tmp_path: Path, backend: str, before: str, after: str, of: Any
) -> None:
    path = taken(tmp_path, backend, program(versions, before))
    module = program(versions, after)
    last, every, by_amount = restored(tmp_path, backend, module, path)["ann"]
    fields = of(last)
    names = getattr(module.Order, "_fields", None) or list(module.Order.__dataclass_fields__)
    for order in (last, every[1][0], by_amount[4]):
        assert type(order) is module.Order
        assert tuple(getattr(order, name) for name in names) == fields
    assert len(every) == 2 and sorted(by_amount) == [3, 4]


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_was_migrated_is_written_in_its_new_form_and_is_migrated_once(
    versions: Versions, tmp_path: Path, backend: str
) -> None:
    path = taken(tmp_path, backend, program(versions, DATACLASS))
    module = program(versions, RENAMED)
    env = environment(tmp_path, backend, execution__state_recovery__path=path)
    stream = env.from_source(ScriptedSource([*ORDERS, NEVER, *LATER, NEVER]), None, "orders").uid("orders")
    stream.key_by(lambda order: order[0]).process(module.Orders()).uid("book").add_sink(lambda row: None)
    second = savepoint_after(env, worked("Sink", len(LATER)))
    rows = read_savepoint(second).state("book", "last").to_arrow().to_pylist()
    assert {row["key"]: row["value"] for row in rows} == {
        "ann": {"customer": "ann", "cents": 100}, "bob": {"customer": "bob", "cents": 500},
        "cid": {"customer": "cid", "cents": 200},
    }  # fmt: skip
    seen = read_savepoint(second).state("book", "seen").rows()
    assert {type(row.value) for row in seen} == {module.Order}
    env = environment(tmp_path, backend, execution__state_recovery__path=second)
    stream = env.from_source(ScriptedSource([*ORDERS, NEVER, *LATER, NEVER, ("bob", 1)]), None, "orders").uid("orders")
    stream.key_by(lambda order: order[0]).process(module.Orders()).uid("book").sink_to(CollectSink())
    (row,) = env.execute("third").get_accumulator_result("collect")
    assert row[1] == module.Order("bob", 500)


@pytest.mark.parametrize("backend", BACKENDS)
def test_incremental_files_of_a_checkpoint_are_migrated(versions: Versions, tmp_path: Path, backend: str) -> None:
    module = program(versions, DATACLASS)
    tiny = {"state__backend__rocksdb__memory__fixed-per-slot": "1 kb"}
    kept = {"execution__checkpointing__externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION"}
    env = environment(tmp_path, "rocksdb", execution__checkpointing__interval="20 ms", **tiny, **kept)
    stream = env.from_source(ScriptedSource([*ORDERS, NEVER]), None, "orders").uid("orders")
    stream.key_by(lambda order: order[0]).process(module.Orders()).uid("book").add_sink(lambda row: None)
    client = env.execute_async("first")
    wait_until(client, worked("Sink", len(ORDERS)))
    done = client.checkpoints()["counts"]["completed"]
    wait_until(client, lambda _: client.checkpoints()["counts"]["completed"] >= done + 2)
    client.cancel().result()
    client.get_job_execution_result().exception()
    complete = (tmp_path / "checkpoints" / client.get_job_id()).glob("chk-*/_metadata")
    path = max(complete, key=lambda file: int(file.parent.name[4:])).parent
    parts = read_savepoint(str(path)).operator("book").manifest.subtasks
    assert any(part is not None and part.databases for part in parts)
    module = program(versions, RENAMED)
    last, every, by_amount = restored(tmp_path, backend, module, str(path))["ann"]
    assert (last, by_amount[4], every[1]) == (module.Order("ann", 400), module.Order("ann", 400), [last])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_class_that_moved_is_found_by_its_new_name(versions: Versions, tmp_path: Path, backend: str) -> None:
    path = taken(tmp_path, backend, program(versions, DATACLASS))
    module = program(versions, DATACLASS.replace("Order", "Purchase"))
    with pytest.raises(RayflinkError, match=r"class evolving_orders:Order is not there; name .*moved-classes"):
        restored(tmp_path, backend, module, path)
    moved = {"rayflink__state__moved-classes": "evolving_orders.Order:evolving_orders.Purchase"}
    last, every, _ = restored(tmp_path, backend, module, path, **moved)["ann"]
    assert last == module.Purchase("ann", 4) and every[0] == [module.Purchase("ann", 3)]


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        (DATACLASS.replace("amount: int", "amount: str"), "field 'amount' was int and is str"),
        (
            DATACLASS.replace("amount: int", "amount: int\n    paid: bool"),
            "field 'paid' was added, which needs a default",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(
    versions: Versions, tmp_path: Path, after: str, reason: str
) -> None:
    path = taken(tmp_path, "hashmap", program(versions, DATACLASS))
    with pytest.raises(RayflinkError, match=f"evolving_orders:Order: {reason}"):
        restored(tmp_path, "hashmap", program(versions, after), path)


ROW = """
def make(user, amount):
    return Row(user=user, amount=amount)
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_rows_get_the_fields_of_the_type_that_is_declared(versions: Versions, tmp_path: Path, backend: str) -> None:
    before = ', Types.ROW_NAMED(["user", "amount"], [Types.STRING(), Types.INT()])'
    after = ', Types.ROW_NAMED(["amount", "note"], [Types.LONG(), Types.STRING()])'
    path = taken(tmp_path, backend, program(versions, ROW, before))
    module = program(versions, ROW.replace("user=user, amount=amount", "amount=amount, note=None"), after)
    last, _, _ = restored(tmp_path, backend, module, path)["ann"]
    assert last == module.Row(amount=4, note=None) and last._fields == ["amount", "note"]
    refused = ', Types.ROW_NAMED(["user", "amount"], [Types.STRING(), Types.STRING()])'
    with pytest.raises(RayflinkError, match="field 'amount': its type was Integer and is String"):
        restored(tmp_path, backend, program(versions, ROW, refused), path)


def test_a_savepoint_says_what_its_states_are(versions: Versions, tmp_path: Path) -> None:
    book = read_savepoint(taken(tmp_path, "hashmap", program(versions, DATACLASS))).operator("book")
    said = {summary.name: summary for summary in book.manifest.states}
    assert {name: (one.kind, one.value_type) for name, one in said.items()} == {
        "last": ("value", "evolving_orders:Order"),
        "all": ("list", "list"),
        "by amount": ("map", "evolving_orders:Order"),
        "seen": ("split list", "evolving_orders:Order"),
        "user-timers/event": ("timers", ""),
        "user-timers/processing": ("timers", ""),
    }
    assert said["all"].classes["evolving_orders:Order"].fields == (("user", "str"), ("amount", "int"))


@pytest.mark.parametrize("classes", [DATACLASS, SLOTS, TUPLE], ids=["dataclass", "slots", "named tuple"])
def test_a_savepoint_is_read_without_its_classes(versions: Versions, tmp_path: Path, classes: str) -> None:
    path = taken(tmp_path, "rocksdb", program(versions, classes))
    versions.forget()
    state = read_savepoint(path).state("book", "last")
    assert {row["key"]: row["value"] for row in state.to_arrow().to_pylist()} == {
        "ann": {"user": "ann", "amount": 4}, "bob": {"user": "bob", "amount": 5}}  # fmt: skip
    with pytest.raises(RayflinkError, match="evolving_orders:Order cannot be found in this process"):
        read_savepoint(path).with_state("book", "last", lambda row: row).write(str(tmp_path / "anew"))


NESTED = """
@dataclass
class Line:
    amount: int

@dataclass(frozen=True, slots=True)
class Order:
    user: str
    line: Line

def make(user, amount):
    return Order(user, Line(amount))
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_object_in_an_unchanged_one_is_migrated(versions: Versions, tmp_path: Path, backend: str) -> None:
    path = taken(tmp_path, backend, program(versions, NESTED))
    module = program(versions, NESTED.replace("    amount: int\n", "    amount: int\n    tax: float = 0.5\n"))
    last, _, _ = restored(tmp_path, backend, module, path)["ann"]
    assert last == module.Order("ann", module.Line(4, 0.5)) and type(last.line) is module.Line
