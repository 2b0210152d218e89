import copy
import pickle
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest

from rayflink.state.errors import SerializationError
from rayflink.state.group_content import encode_group
from rayflink.state.snapshot_copies import all_immutable, copy_values, read_copy


class Box:
    def __init__(self, held: Any) -> None:
        self.held = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Box) and other.held == self.held


def change(value: Any) -> None:
    """Change it, and what is in it, in every way there is."""
    if isinstance(value, (list, tuple)):
        for part in value:
            change(part)
    if isinstance(value, list):
        value.append("changed")
    elif isinstance(value, dict):
        for part in value.values():
            change(part)
        value["changed"] = 1
    elif isinstance(value, set):
        value.add("changed")
    elif isinstance(value, Box):
        change(value.held)
        value.held = "changed"


KINDS: dict[str, Callable[[int], Any]] = {
    "numbers": lambda n: n,
    "lists": lambda n: [n, "a"],
    "lists in lists": lambda n: [[n], []],
    "lists of pairs": lambda n: [(n, 1.5), (n, None)],
    "lists in pairs": lambda n: (n, [n]),
    "dicts": lambda n: {n: "a"},
    "dicts of lists": lambda n: {"a": [n]},
    "sets": lambda n: {n, "a"},
    "boxes": lambda n: Box([n]),
    "lists of boxes": lambda n: [Box(n)],
    "subclasses": lambda n: OrderedDict({n: [n]}),
    "all kinds": lambda n: [n, [n], (n, "a"), {n: [n]}, {n}, Box(n), frozenset({n})][n % 7],
}


@pytest.mark.parametrize("count", [1, 3, 1000])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_frozen_stays_as_it_was(kind: str, count: int) -> None:
    values = [KINDS[kind](number) for number in range(count)]
    expected = copy.deepcopy(values)
    kept = copy_values(values)
    for value in values:
        change(value)
    assert [read_copy(value) for value in kept] == expected
    assert (values == expected) == all_immutable(values), "what cannot be changed is known as such"
    assert (kept is values) == all_immutable(values), "and then nothing is copied"


def test_a_value_that_cannot_be_pickled_is_named_when_it_is_written() -> None:
    values = [[Box(1)], [Box(lambda: 0)], [Box(3)]]
    rows = [(at, None, f"key{at}", read_copy(value)) for at, value in enumerate(copy_values(values))]
    assert [row[3] for row in rows if row[2] != "key1"] == [values[0], values[2]]
    with pytest.raises(SerializationError, match=r"state 'boxes' of key 'key1'.*that can be pickled"):
        encode_group({"tables": {"boxes": ("value", rows)}, "timers": {}}, "the backend")


def test_a_group_is_written_in_many_pieces_and_read_as_one() -> None:
    content = {"tables": {"v": ("value", [(n, None, n, "x" * 100) for n in range(5_000)])}, "timers": {}}
    data = encode_group(content, "the backend")
    assert pickle.loads(data[1:]) == content
