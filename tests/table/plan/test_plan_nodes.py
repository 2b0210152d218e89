"""The union of plan nodes is closed: it has every class of relations, and nothing else can be run."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from rayflink.table import DataTypes
from rayflink.table.errors import SqlError
from rayflink.table.plan.logical import Attribute, Relation, Values
from rayflink.table.plan.plan_nodes import NODE_CLASSES, node_of


@dataclass(frozen=True)
class Unknown(Relation):
    """A relation of a program's own."""


def subclasses(cls: type) -> set[type]:
    found = set(cls.__subclasses__())
    return found.union(*map(subclasses, found))


def test_the_union_has_every_class_of_relations():
    own = {cls for cls in subclasses(Relation) if cls.__module__.startswith("rayflink.") and cls.__name__[0] != "_"}
    assert own == set(NODE_CLASSES)


def test_a_subclass_stands_before_its_base_class():
    for index, node in enumerate(NODE_CLASSES):
        assert not any(issubclass(later, node) for later in NODE_CLASSES[index + 1 :])


def test_a_known_node_is_itself():
    values = Values((Attribute("n", DataTypes.INT()),), ((1,),))
    assert node_of(values) is values


def test_an_unknown_node_is_refused_with_the_known_ones():
    with pytest.raises(SqlError, match=r"the plan has a Unknown, .*; let rules return nodes of these classes: Broad"):
        node_of(Unknown(()))
