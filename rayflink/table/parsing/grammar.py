"""The parts of a parsed query that are supported.

A role is what a node is used for, such as "table" in FROM. For each role there are the classes that may stand in it,
and for each class its parts, with the role of what stands in them. A part that is not listed, or a class that is not,
has no meaning: `known_parts` refuses it, also where a later version of the parser has new ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from sqlglot import exp

from .dialect import Descriptor, Interval, ModelArgument, NamedArgument, PathCall, TableArgument, Typed
from .match_clauses import (
    MatchClause,
    PatternChoice,
    PatternRepetition,
    PatternSequence,
    PatternVariable,
    Subset,
)

Parts: TypeAlias = Mapping[str, str]
"""Name of a part -> the role of what stands in it."""
PLAIN = "plain"
"""A word, a number or a truth value, and no node."""
NOTHING = "nothing"
"""False, which the parser writes for words that are not there."""
BOUND, OFFSET = "bound", "offset name"
"""A part of a frame or of WITH ORDINALITY: a word, a truth value or a node."""
NESTED = "nested"
"""In parentheses behind FROM: "table" where `is_table`, else "query"."""

_MODIFIERS: Parts = {"order": "order", "limit": "limit", "offset": "offset"}
_SIDES: Parts = {"with_": "with", "this": "query", "expression": "query", "distinct": PLAIN, **_MODIFIERS}
_NAMED: Parts = {"table": "name", "db": "name", "catalog": "name"}
_BOTH: Parts = {"this": "value", "expression": "value"}
_IDENTIFIER: Parts = {"this": PLAIN, "quoted": PLAIN}
_CALL: Parts = {"this": PLAIN, "expressions": "argument"}

_QUERY: Mapping[type, Parts] = {
    exp.Select: {
        "with_": "with", "hint": "hint", "distinct": "distinct", "expressions": "selected", "from_": "from",
        "joins": "join", "where": "where", "group": "group", "having": "having", "qualify": "qualify",
        "windows": "named window", **_MODIFIERS,
    },
    exp.Values: {"expressions": "value", **_MODIFIERS},
    exp.Union: _SIDES,
    exp.Intersect: _SIDES,
    exp.Except: _SIDES,
    exp.Subquery: {"with_": "with", "this": "query", **_MODIFIERS},
}  # fmt: skip
_BINARY = (
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.And, exp.Or,
    exp.DPipe, exp.SimilarTo, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Overlaps,
)  # fmt: skip
_FLAGS: Mapping[type, Parts] = {
    exp.Div: {"typed": PLAIN, "safe": PLAIN},
    exp.DPipe: {"safe": PLAIN},
}
"""Flags of the dialect that the parser sets."""
_VALUE: Mapping[type, Parts] = {
    **{kind: {**_BOTH, **_FLAGS.get(kind, {})} for kind in _BINARY},
    exp.Literal: {"this": PLAIN, "is_string": PLAIN},
    exp.HexString: {"this": PLAIN, "is_integer": PLAIN},
    exp.Boolean: {"this": PLAIN},
    exp.Null: {},
    exp.Column: {"this": "name", **_NAMED},
    exp.Dot: {"this": "value", "expression": "name"},
    exp.Paren: {"this": "value"},
    exp.Neg: {"this": "value"},
    exp.Not: {"this": "value"},
    exp.Is: {"this": "value", "expression": "truth"},
    exp.Between: {"this": "value", "low": "value", "high": "value", "symmetric": PLAIN},
    exp.In: {"this": "value", "expressions": "value", "query": "query"},
    exp.Like: {**_BOTH, "negate": PLAIN},
    exp.Escape: _BOTH,
    exp.Case: {"this": "value", "ifs": "branch", "default": "value"},
    exp.Tuple: {"expressions": "value"},
    exp.Bracket: {"this": "value", "expressions": "value"},
    exp.Anonymous: _CALL,
    PathCall: _CALL,
    exp.Filter: {"this": "call", "expression": "where"},
    exp.Window: {"this": "windowed", "partition_by": "value", "order": "order", "spec": "frame", "over": PLAIN,
                 "alias": "name"},
    exp.Subquery: {"this": "query"},
    exp.Select: _QUERY[exp.Select],
    exp.Exists: {"this": "query"},
    Interval: {"this": PLAIN, "unit": PLAIN, "to": PLAIN},
}  # fmt: skip

GRAMMAR: Mapping[str, Mapping[type, Parts]] = {
    "query": _QUERY,
    "with": {exp.With: {"expressions": "with query"}},
    "with query": {exp.CTE: {"this": "query", "alias": "table alias"}},
    "hint": {exp.Hint: {"expressions": "hinted"}},
    "hinted": {exp.EQ: _BOTH},
    "distinct": {exp.Distinct: {}},
    "selected": {
        **_VALUE,
        exp.Star: {},
        exp.Column: {"this": "name or star", **_NAMED},
        exp.Alias: {"this": "value", "alias": "name"},
    },
    "from": {exp.From: {"this": "table"}},
    "table": {
        exp.Table: {
            "this": "table name", "db": "name", "catalog": "name", "alias": "table alias", "joins": "join",
            "version": "version",
        },
        exp.Subquery: {"this": NESTED, "alias": "table alias", "joins": "join"},
        exp.Values: {"expressions": "value", "alias": "table alias"},
        exp.Unnest: {"expressions": "value", "alias": "table alias", "offset": OFFSET},
        exp.Lateral: {
            "this": "lateral", "alias": "table alias", "view": NOTHING, "outer": NOTHING, "ordinality": NOTHING,
        },
    },
    "table name": {exp.Identifier: _IDENTIFIER, exp.Dot: {"this": "table name", "expression": "name"},
                   exp.Anonymous: _CALL, PathCall: _CALL},
    "version": {exp.Version: {"this": PLAIN, "kind": PLAIN, "expression": "value"}},
    "table alias": {
        exp.TableAlias: {"this": "name", "columns": "name"},
        MatchClause: {
            "this": "name", "columns": "name", "partition_by": "value", "order": "order", "measures": "measure",
            "rows": PLAIN, "after": PLAIN, "after_variable": "name", "pattern": "row pattern", "within": "value",
            "subsets": "subset", "define": "measure",
        },
    },
    "measure": {exp.Alias: {"this": "value", "alias": "name"}},
    "subset": {Subset: {"this": "name", "expressions": "name"}},
    "row pattern": {
        PatternVariable: {"this": "name"},
        PatternSequence: {"expressions": "row pattern"},
        PatternChoice: {"expressions": "row pattern"},
        PatternRepetition: {"this": "row pattern", "least": PLAIN, "most": PLAIN, "reluctant": PLAIN},
    },
    OFFSET: {exp.Identifier: _IDENTIFIER},
    "name": {exp.Identifier: _IDENTIFIER},
    "name or star": {exp.Identifier: _IDENTIFIER, exp.Star: {}},
    "join": {
        exp.Join: {"this": "table", "on": "value", "side": PLAIN, "kind": PLAIN, "method": PLAIN, "using": "name"},
    },
    "where": {exp.Where: {"this": "value"}},
    "group": {exp.Group: {"expressions": "grouped"}},
    "grouped": {
        **_VALUE,
        exp.GroupingSets: {"expressions": "grouped"},
        exp.Rollup: {"expressions": "value"},
        exp.Cube: {"expressions": "value"},
    },
    "having": {exp.Having: {"this": "value"}},
    "qualify": {exp.Qualify: {"this": "value"}},
    "order": {exp.Order: {"expressions": "key"}},
    "key": {exp.Ordered: {"this": "value", "desc": PLAIN, "nulls_first": PLAIN}},
    "limit": {
        exp.Limit: {"expression": "value"},
        exp.Fetch: {"direction": PLAIN, "count": "value", "limit_options": "fetched"},
    },
    "fetched": {exp.LimitOptions: {"rows": PLAIN, "percent": NOTHING, "with_ties": NOTHING}},
    "offset": {exp.Offset: {"expression": "value"}},
    "value": _VALUE,
    "branch": {exp.If: {"this": "value", "true": "value"}},
    "truth": {exp.Null: {}, exp.Boolean: {"this": PLAIN}, exp.Column: _VALUE[exp.Column],
              exp.JSON: {"this": PLAIN, "with_": NOTHING, "unique": NOTHING}},
    "argument": {
        **_VALUE,
        exp.Star: {},
        exp.Var: {"this": PLAIN},
        exp.Distinct: {"expressions": "value"},
        exp.IgnoreNulls: {"this": "value"},
        exp.RespectNulls: {"this": "value"},
        Typed: {"this": PLAIN},
        NamedArgument: {"this": PLAIN, "expression": "argument"},
        TableArgument: {"this": "table", "partition_by": "value", "order_by": "key"},
        ModelArgument: {"this": PLAIN},
        Descriptor: {"expressions": "name"},
    },
    "call": {exp.Anonymous: _CALL, PathCall: _CALL},
    "lateral": {exp.Anonymous: _CALL, exp.Subquery: _VALUE[exp.Subquery]},
    "named window": {exp.Window: {"this": "name", "partition_by": "value", "order": "order", "spec": "frame",
                                  "over": PLAIN, "alias": "name"}},
    "windowed": {exp.Anonymous: _CALL, PathCall: _CALL, exp.Filter: _VALUE[exp.Filter]},
    "frame": {exp.WindowSpec: {"kind": PLAIN, "start": BOUND, "start_side": PLAIN, "end": BOUND, "end_side": PLAIN}},
    BOUND: _VALUE,
}  # fmt: skip


def is_table(tree: exp.Expression) -> bool:
    """Return whether what stands in parentheses behind FROM is a table, maybe with joins, and no query.

    >>> is_table(exp.Subquery(this=exp.Table(this=exp.to_identifier("t"))))
    True
    >>> is_table(exp.Subquery(this=exp.Select()))
    False
    """
    if isinstance(tree, exp.Subquery):
        return bool(tree.args.get("alias") or tree.args.get("joins")) or is_table(tree.this)
    return isinstance(tree, exp.Table)


__all__ = ["BOUND", "GRAMMAR", "NESTED", "NOTHING", "OFFSET", "PLAIN", "Parts", "is_table"]
