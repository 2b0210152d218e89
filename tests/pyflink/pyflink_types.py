"""Annotations of PyFlink's parameters against rayflink's: what PyFlink says it takes must be taken here."""

from __future__ import annotations

import ast
from typing import Any

WIDER = {
    "bool": {"bool", "int", "float"},
    "int": {"int", "float"},
    "float": {"float"},
    "str": {"str"},
    "bytes": {"bytes"},
    "bytearray": {"bytearray", "bytes"},
    "list": {"list", "sequence", "iterable", "collection"},
    "tuple": {"tuple", "sequence", "iterable", "collection"},
    "set": {"set", "iterable", "collection"},
    "dict": {"dict", "mapping", "mutablemapping", "iterable"},
}
"""Type that can be compared -> those that take its values too."""
KNOWN = {*WIDER, *(wider for types in WIDER.values() for wider in types), "none"}


def alternatives(annotation: str) -> set[str]:
    """The types between which an annotation chooses, in small letters and without their parameters.

    >>> sorted(alternatives("Optional[Union[List[str], 'Row']]"))
    ['list', 'none', 'row']
    """
    return _alternatives(ast.parse(annotation, mode="eval").body)


def _alternatives(node: ast.expr) -> set[str]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _alternatives(node.left) | _alternatives(node.right)
    if isinstance(node, ast.Constant):
        return alternatives(node.value) if isinstance(node.value, str) else {str(node.value).lower()}
    if isinstance(node, ast.Subscript):
        name = ast.unparse(node.value).rpartition(".")[2]
        if name == "Optional":
            return _alternatives(node.slice) | {"none"}
        if name == "Union":
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return set().union(*map(_alternatives, parts))
        return {name.lower()}
    return {ast.unparse(node).rpartition(".")[2].lower()}


def not_taken(there: str, here: Any) -> list[str]:
    """Types that PyFlink's annotation has and rayflink's has not; of classes and aliases nothing is said.

    >>> not_taken("Union[int, str]", "int"), not_taken("List[str]", "Sequence[str]"), not_taken("int", "Length")
    (['str'], [], [])
    """
    if not there or not isinstance(here, str):
        return []
    mine = alternatives(here)
    if not mine <= KNOWN:
        return []
    return sorted(one for one in alternatives(there) if one in WIDER and not WIDER[one] & mine)


__all__ = ["alternatives", "not_taken"]
