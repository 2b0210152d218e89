"""Schemas of classes: which fields classes have, which types fit which, and the examples of these modules."""

from __future__ import annotations

import doctest
import importlib
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

from rayflink.state.classes.class_schemas import ClassSchema, classes_in, schema_of, takes
from rayflink.state.descriptors import ValueStateDescriptor
from rayflink.state.schema.evolution import Evolution, Verdict, judge_type
from rayflink.state.schema.state_summary import StateSummary, merge_summaries, summary_of


@pytest.mark.parametrize("name", ["classes.class_schemas", "schema.evolution", "classes.unknown_objects"])
def test_the_examples_run(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"rayflink.state.{name}"))
    assert found.attempted >= 1 and found.failed == 0


class Leaf(NamedTuple):
    size: int


@dataclass
class Tree:
    leaves: list[Leaf]
    above: Tree | None = None


def test_the_classes_of_a_value_are_found_in_what_it_holds_and_in_what_it_may_hold() -> None:
    found: dict[str, ClassSchema] = {}
    classes_in({"a": [Tree([])]}, found)
    here = __name__
    assert set(found) == {f"{here}:Tree", f"{here}:Leaf"}
    tree = found[f"{here}:Tree"].fields
    assert tree == (("leaves", f"list[{here}:Leaf]"), ("above", f"None | {here}:Tree"))
    assert schema_of(int) is None and schema_of(dict) is None


def test_a_schema_survives_its_json() -> None:
    summary = summary_of(ValueStateDescriptor("tree"), "value", [Tree([Leaf(1)])])
    assert summary.classes[f"{__name__}:Leaf"] == schema_of(Leaf)
    assert summary.value_type == f"{__name__}:Tree"
    assert merge_summaries([summary, StateSummary("tree", "value", ""), summary]) == (summary,)


@pytest.mark.parametrize(
    ("new", "old", "fits"),
    [("int", "bool", True), ("None | int", "int", True), ("int", "None | int", False), ("Any", "str", True),
     ("str", "Any", True), ("list[int]", "list[str]", False), ("float", "int", True), ("int", "float", False)],
)  # fmt: skip
def test_a_field_takes_what_its_type_includes(new: str, old: str, fits: bool) -> None:
    assert takes(new, old) is fits


@pytest.mark.parametrize(
    ("written", "declared", "verdict"),
    [(None, "Integer", Verdict.KEEP), ("Integer", None, Verdict.KEEP), ("Integer", "Long", Verdict.KEEP),
     ("Long", "Integer", Verdict.REFUSE), ([["a", "Integer"]], [["a", "Long"], ["b", "String"]], Verdict.MIGRATE),
     ([["a", "Integer"]], [["a", "String"]], Verdict.REFUSE), ([["a", "Integer"]], "String", Verdict.REFUSE),
     ([["a", "Integer"]], [["b", "Integer"]], Verdict.REFUSE), ([["a", None]], [["a", "INT"]], Verdict.MIGRATE),
     ("INT", "DOUBLE", Verdict.KEEP), ("BIGINT", "INT", Verdict.REFUSE)],
)  # fmt: skip
def test_declared_types_are_judged(written: Any, declared: Any, verdict: Verdict) -> None:
    assert judge_type(written, declared).verdict is verdict


def test_a_value_that_holds_itself_is_walked_once() -> None:
    evolution = Evolution((), {}, "op")
    value: list[Any] = [1, {"b": 2}]
    value.append(value)
    assert evolution.renewed(value) is value and not evolution.is_needed
