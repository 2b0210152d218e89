"""Changes of one place of a function's body, each of which should be noticed by a test of what the function does."""

from __future__ import annotations

import ast
from dataclasses import dataclass

Function = ast.FunctionDef | ast.AsyncFunctionDef
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult,
}  # fmt: skip
QUIET = {"log", "_log", "logger", "logging", "warnings", "super"}
"""Owners of calls that no behaviour depends on, or that cannot go alone."""


@dataclass(frozen=True)
class Mutation:
    """One change: where it is, what it is, and how a copy of the module is changed.

    Args:
        index: its place among all changes of the module.
        line: of the changed expression or statement, from 1.
        function: name of the innermost function around it.
        function_line: where that function begins.
        before: the code as it is.
        after: the code as it becomes.
    """

    index: int
    line: int
    function: str
    function_line: int
    before: str
    after: str


class _Finder:
    """Walks a tree and counts the places that may change; changes the one whose number is asked for."""

    def __init__(self, wanted: int | None = None) -> None:
        self.wanted = wanted
        self.found: list[Mutation] = []
        self._function = ("", 0)

    def visit_module(self, node: ast.AST) -> None:
        """Every function that is not in another one, in the order of the text."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, Function):
                self._visit_function(child)
            elif isinstance(child, ast.stmt):
                self.visit_module(child)

    def _visit_function(self, function: Function) -> None:
        outer, self._function = self._function, (function.name, function.lineno)
        function.body = self._block(function.body)
        self._function = outer

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return [self._statement(node) for node in body]

    def _statement(self, node: ast.stmt) -> ast.stmt:
        if isinstance(node, Function):
            self._visit_function(node)
            return node
        if isinstance(node, (ast.Assert, ast.Import, ast.ImportFrom, ast.ClassDef)) or _is_quiet(node):
            return node
        if _may_drop(node) and self._take(node, "pass"):
            return ast.copy_location(ast.Pass(), node)
        if isinstance(node, ast.Return) and not _is_nothing(node.value) and self._take(node, "return None"):
            return ast.copy_location(ast.Return(ast.copy_location(ast.Constant(None), node)), node)
        if isinstance(node, ast.Raise):
            return node
        for name, value in ast.iter_fields(node):
            if name in ("body", "orelse", "finalbody"):
                setattr(node, name, self._block(value))
            elif name in ("handlers", "cases"):
                for part in value:
                    part.body = self._block(part.body)
            elif name == "test" and isinstance(node, ast.If) and self._take(value, f"not ({ast.unparse(value)})"):
                node.test = ast.copy_location(ast.UnaryOp(ast.Not(), value), value)
            elif name not in ("target", "targets", "annotation", "subject", "op"):
                setattr(node, name, self._any(value))
        return node

    def _any(self, value: object) -> object:
        if isinstance(value, list):
            return [self._any(item) for item in value]
        return self._expression(value) if isinstance(value, (ast.expr, ast.withitem, ast.keyword)) else value

    def _expression(self, node: ast.AST) -> ast.AST:
        for change in (_compared, _joined, _computed, _counted, _chosen, _swapped):
            if (changed := change(node)) is not None and self._take(node, ast.unparse(changed)):
                return ast.fix_missing_locations(ast.copy_location(changed, node))
        if isinstance(node, ast.JoinedStr):
            return node
        for name, value in ast.iter_fields(node):
            if name not in ("ctx", "op", "ops"):
                setattr(node, name, self._comprehensions(value) if name == "generators" else self._any(value))
        return node

    def _comprehensions(self, generators: list[ast.comprehension]) -> list[ast.comprehension]:
        for generator in generators:
            generator.iter = self._any(generator.iter)  # type: ignore[assignment]
            generator.ifs = self._any(generator.ifs)  # type: ignore[assignment]
        return generators

    def _take(self, node: ast.AST, after: str) -> bool:
        index = len(self.found)
        line: int = getattr(node, "lineno", 0)
        self.found.append(Mutation(index, line, *self._function, ast.unparse(node).split("\n")[0], after))
        return index == self.wanted


def _may_drop(node: ast.stmt) -> bool:
    """Statements whose only use is what they do: calls, additions in place, what is set on an object, errors raised."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call)
    if isinstance(node, ast.Assign):
        return all(isinstance(target, (ast.Attribute, ast.Subscript)) for target in node.targets)
    return isinstance(node, ast.Raise | ast.AugAssign | ast.Delete)


def _is_quiet(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True  # a docstring
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        return False
    names = {inner.id for inner in ast.walk(node.value.func) if isinstance(inner, ast.Name)}
    return bool(names & QUIET)


def _is_nothing(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _compared(node: ast.AST) -> ast.expr | None:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return ast.Compare(node.left, [COMPARISONS[type(node.ops[0])]()], node.comparators)
    return None


def _joined(node: ast.AST) -> ast.expr | None:
    if isinstance(node, ast.BoolOp):
        return ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    return None


def _computed(node: ast.AST) -> ast.expr | None:
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        return ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
    return None


def _counted(node: ast.AST) -> ast.expr | None:
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        return ast.Constant(not node.value)
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return ast.Constant(node.value + 1)
    return None


def _chosen(node: ast.AST) -> ast.expr | None:
    return ast.IfExp(node.test, node.orelse, node.body) if isinstance(node, ast.IfExp) else None


def _swapped(node: ast.AST) -> ast.expr | None:
    if isinstance(node, ast.Call) and len(node.args) >= 2 and not any(isinstance(a, ast.Starred) for a in node.args):
        first, second, *others = node.args
        if ast.dump(first) != ast.dump(second) and ast.unparse(node.func) not in ("isinstance", "hasattr", "cast"):
            return ast.Call(node.func, [second, first, *others], node.keywords)
    return None


def mutations_of(source: str) -> list[Mutation]:
    """All changes of a module's functions, in the order of the text."""
    finder = _Finder()
    finder.visit_module(ast.parse(source))
    return finder.found


def mutated(source: str, index: int) -> ast.Module:
    """The tree of the module with one change."""
    tree = ast.parse(source)
    _Finder(index).visit_module(tree)
    return ast.fix_missing_locations(tree)
