"""Joins three and more streams in one step where their joins have a key in common: no result between is stored.

It applies where `table.optimizer.multi-join.enabled` is set, or the hint MULTI_JOIN names the tables. The joins must be
inner or left ones, one on the result of the other; a right join is the left join of its sides in the other order. Each
must compare a column of the key with one of an input before it, and its condition must be deterministic. Between the
joins columns may be left out or moved, and no step may stand that computes or filters.

Source: apache/flink JoinToMultiJoinRule, AttributeBasedJoinKeyExtractor.

Example, with `table.optimizer.multi-join.enabled` = `true`:

    SELECT name, page, amount FROM customers JOIN visits ON customers.id = visits.id
    LEFT JOIN payments ON visits.id = payments.id AND amount > 10

Without the rule:

    Calc(select=[name, page, amount])
    +- Join(joinType=[LeftOuterJoin], where=[id0 = id], select=[name, id0, page, id, amount],
         leftInputSpec=[NoUniqueKey], rightInputSpec=[NoUniqueKey])
       :- Exchange(distribution=[hash[id0]])
       :  +- Calc(select=[name, id0, page])
       :     +- Join(joinType=[InnerJoin], where=[id = id], select=[id, name, id0, page],
       :          leftInputSpec=[NoUniqueKey], rightInputSpec=[NoUniqueKey])
       :        :- Exchange(distribution=[hash[id]])
       :        :  +- TableSourceScan(table=[[customers]], fields=[id, name])
       :        +- Exchange(distribution=[hash[id]])
       :           +- TableSourceScan(table=[[visits]], fields=[id, page])
       +- Exchange(distribution=[hash[id]])
          +- Calc(select=[id, amount], where=[amount > 10])
             +- TableSourceScan(table=[[payments, filter=[amount > 10], project=[id, amount]]], fields=[id, amount])

With the rule:

    Calc(select=[name, page, amount])
    +- MultiJoin(commonJoinKey=[id], joinTypes=[INNER, LEFT], inputUniqueKeys=[noUniqueKey, noUniqueKey,
         noUniqueKey], joinConditions=[id = id0, id0 = id1], select=[id, name, id0, page, id1, amount])
       :- Exchange(distribution=[hash[id]])
       :  +- TableSourceScan(table=[[customers]], fields=[id, name])
       :- Exchange(distribution=[hash[id]])
       :  +- TableSourceScan(table=[[visits]], fields=[id, page])
       +- Exchange(distribution=[hash[id]])
          +- Calc(select=[id, amount], where=[amount > 10])
             +- TableSourceScan(table=[[payments, filter=[amount > 10], project=[id, amount]]], fields=[id, amount])
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, pairwise
from typing import TypeAlias

from ....plan.joins import JoinKind, StreamJoin
from ....plan.logical import Project, Relation, Schema
from ....plan.multi_joins import JoinStep, Links, MultiJoin, multi_joined_schema
from ....plan.typed import Call, Column, Expr, named
from ....types import DataTypes, Root
from ...conditions import all_of, parts_of
from ..push_projection_into_scan import moved

_LEAST_INPUTS = 3
_KINDS = (JoinKind.INNER, JoinKind.LEFT, JoinKind.RIGHT)
_KeyColumns: TypeAlias = list[list[int]]
"""For each column of a common key the number of the column of each input, as far as these are known."""


@dataclass(frozen=True)
class _Equality:
    """A column of earlier inputs, by its number among all of them, that is equal to one of a further input."""

    left: int
    right: int
    nulls_match: bool


@dataclass(frozen=True)
class _Part:
    """A join of a chain; its condition is over the columns of all inputs up to its own."""

    kind: JoinKind
    equalities: tuple[_Equality, ...]
    condition: Expr | None


@dataclass(frozen=True)
class _Chain:
    """Joins, each on the result of the one before.

    Args:
        columns: for each column of the relation that it stands for, its number among those of all inputs.
    """

    inputs: tuple[Relation, ...]
    parts: tuple[_Part, ...]
    ttls: tuple[tuple[str, str] | None, ...]
    columns: tuple[int, ...]

    @property
    def starts(self) -> tuple[int, ...]:
        return tuple(accumulate((len(relation.schema) for relation in self.inputs), initial=0))

    def place_of(self, column: int) -> tuple[int, int]:
        """Return the number of the input that has a column, and the column's number there."""
        spans = enumerate(pairwise(self.starts))
        return next((number, column - start) for number, (start, stop) in spans if column < stop)


def multi_join(plan: Relation, is_enabled: bool) -> Relation:
    """Merge joins of streams that have a key in common.

    Args:
        is_enabled: whether joins are merged that no hint names.
    """
    return plan.mapped(partial(_merged, is_enabled=is_enabled))


def _merged(node: Relation, is_enabled: bool) -> Relation:
    chain = _chain_of(node, is_enabled) if isinstance(node, StreamJoin) else None
    join = None if chain is None else _multi_join(chain)
    if chain is None or join is None:
        return node
    if chain.columns == tuple(range(len(join.schema))):
        return replace(join, schema=node.schema, place=node.place)
    exprs = tuple(join.column(column) for column in chain.columns)
    return Project(node.schema, replace(join, place=node.place), exprs)


def _chain_of(join: StreamJoin, is_enabled: bool) -> _Chain | None:
    """Return a join with those below its first side; None: it may be no part of a chain.

    The first side is that all of whose rows are in the result.
    """
    if join.kind not in _KINDS or not (is_enabled or join.is_hinted) or not _is_always_the_same(join):
        return None
    first = 1 if join.kind is JoinKind.RIGHT else 0
    own, other = join.inputs[first], join.inputs[1 - first]
    below = _chain_below(own, is_enabled) if join.ttls[first] is None else None
    if below is not None:
        chain = _with(below, join, first, other)
        if _multi_join(chain) is not None:
            return chain
    return _with(_Chain((own,), (), (join.ttls[first],), tuple(range(len(own.schema)))), join, first, other)


def _is_always_the_same(join: StreamJoin) -> bool:
    """Return whether the condition of a join decides about a pair as it did before, as it is computed again."""
    calls = (part for expr in join.exprs_of_rows for part in expr.walk() if isinstance(part, Call))
    return all(call.function.is_deterministic and not call.function.is_clock for call in calls)


def _chain_below(relation: Relation, is_enabled: bool) -> _Chain | None:
    """Return the joins that a relation has its columns from, without other steps between; None: there are none."""
    match relation:
        case Project():
            below = _chain_below(relation.input, is_enabled)
            columns = [expr.index for expr in relation.exprs if isinstance(expr, Column)]
            if below is None or len(columns) < len(relation.exprs):
                return None
            return replace(below, columns=tuple(below.columns[column] for column in columns))
        case StreamJoin():
            return _chain_of(relation, is_enabled)
        case MultiJoin():
            return _as_chain(relation)
    return None


def _as_chain(join: MultiJoin) -> _Chain:
    parts = []
    for number, step in enumerate(join.steps, start=1):
        equalities = [
            _Equality(join.starts[source] + join.keys[source][place], join.keys[number][place], False)
            for source, place in step.links
        ]
        parts.append(_Part(step.kind, tuple(equalities), step.condition))
    return _Chain(join.relations, tuple(parts), join.ttls, tuple(range(len(join.schema))))


def _with(below: _Chain, join: StreamJoin, first: int, other: Relation) -> _Chain:
    """Return a chain with one more join.

    Args:
        first: the number of the side of the join that the chain is.
        other: the other side.
    """
    width, own_start = below.starts[-1], join.width if first else 0
    other_start = 0 if first else join.width
    places = {own_start + index: column for index, column in enumerate(below.columns)}
    places |= {other_start + index: width + index for index in range(len(other.schema))}
    own_keys, other_keys = (join.keys.left, join.keys.right)[:: -1 if first else 1]
    pairs = zip(own_keys, other_keys, join.keys.nulls_match, strict=True)
    equalities = tuple(_Equality(below.columns[own], key, nulls) for own, key, nulls in pairs)
    kind = JoinKind.INNER if join.kind is JoinKind.INNER else JoinKind.LEFT
    part = _Part(kind, equalities, None if join.condition is None else moved(join.condition, places))
    columns = tuple(places[index] for index in range(len(join.schema)))
    return _Chain((*below.inputs, other), (*below.parts, part), (*below.ttls, join.ttls[1 - first]), columns)


def _multi_join(chain: _Chain) -> MultiJoin | None:
    """Return the joins as one step; None: they are too few, or have no key in common."""
    keys = _common_keys(chain)
    if len(chain.inputs) < _LEAST_INPUTS or not keys:
        return None
    kinds = [JoinStep(part.kind, ()) for part in chain.parts]
    schema = multi_joined_schema(chain.inputs, kinds)
    steps = []
    for number, part in enumerate(chain.parts, start=1):
        links, rest = _links_of(chain, keys, number, part)
        conditions = [] if part.condition is None else parts_of(part.condition)
        for equality in rest:
            column = chain.starts[number] + equality.right
            if not equality.nulls_match and schema[column].type.root in (Root.FLOAT, Root.DOUBLE):
                return None  # a NaN is equal to itself as a key, and not in a condition
            conditions.append(_compared(schema, equality, column))
        steps.append(JoinStep(part.kind, links, all_of(conditions)))
    by_input = tuple(zip(*keys, strict=True))
    return MultiJoin(schema, chain.inputs, tuple(steps), by_input, chain.ttls, ((),) * len(chain.inputs))


def _common_keys(chain: _Chain) -> _KeyColumns:
    """Return the columns of the common key: in each join one of the earlier columns is equal to the new one."""
    first = [equality for equality in chain.parts[0].equalities if not equality.nulls_match]
    keys: _KeyColumns = [[equality.left, equality.right] for equality in first]
    for part in chain.parts[1:]:
        longer: _KeyColumns = []
        for key in keys:
            places = [(chain.place_of(equality.left), equality) for equality in part.equalities]
            equal = [equality.right for (source, column), equality in places
                     if not equality.nulls_match and key[source] == column]  # fmt: skip
            longer += [[*key, equal[0]]] if equal else []
        keys = longer
    distinct = {tuple(key): key for key in keys}
    return [*distinct.values()]


def _links_of(
    chain: _Chain, keys: _KeyColumns, number: int, part: _Part
) -> tuple[Links, list[_Equality]]:  # fmt: skip
    """Return the equalities of a join that the common key has, and the others."""
    links: list[tuple[int, int]] = []
    rest: list[_Equality] = []
    for equality in part.equalities:
        source, column = chain.place_of(equality.left)
        places = [] if equality.nulls_match else [
            place for place, key in enumerate(keys) if key[source] == column and key[number] == equality.right
        ]  # fmt: skip
        links += [(source, place) for place in places]
        rest += [] if places else [equality]
    return tuple(links), rest


def _compared(schema: Schema, equality: _Equality, column: int) -> Expr:
    sides = tuple(Column(schema[index].type, index, schema[index].name) for index in (equality.left, column))
    if equality.nulls_match:
        return Call(DataTypes.BOOLEAN(False), named("IS NOT DISTINCT FROM"), sides)
    is_nullable = any(side.type.is_nullable for side in sides)
    return Call(DataTypes.BOOLEAN().as_nullable(is_nullable), named("="), sides)


__all__ = ["multi_join"]
