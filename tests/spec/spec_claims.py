"""What the tests claim to show of docs/flink-semantics.md, read from their `spec(...)` markers without importing them.

`spec("M05")` claims a whole row, `spec("M05", "sizes", "number")` two clauses of it, `spec("M05", "N12")` two rows.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.spec.spec_skips import Function, Module, Skips

ROW_ID = re.compile(r"[A-X]\d\d")
CLAUSE_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")

Target = tuple[str, str]
"""A row and the name of a clause of it; an empty name stands for the whole row."""


class SpecError(Exception):
    """The table, the clauses, the list of rows that do not apply, or a marker is wrong."""


@dataclass(frozen=True, order=True)
class Claim:
    """One test says that it shows one row, or one clause of it."""

    row: str
    clause: str
    path: str
    test: str
    skipped_at: str = ""
    """Where the test may be skipped, or is marked as soak; such a test is listed and is no evidence by itself."""


def claims_in(module: Module, may_skip: Callable[[str, str], str] = lambda path, test: "") -> Iterator[Claim]:
    """Every claim a test module makes, by function, class, module mark or parameter.

    Args:
        module: the test module.
        may_skip: for a path and a test, where that test may be skipped.
    Raises:
        SpecError: a marker without literal names, or on what is no test, never runs, must fail, or compares an
            operator only with itself.
    """
    targets = [target for node in module.tree.body if _is_pytestmark(node) for target in _targets([node], module.path)]
    for claim in _claims_below(module, module.tree, "", targets):
        at = claim.skipped_at or may_skip(claim.path, claim.test)
        yield Claim(claim.row, claim.clause, claim.path, claim.test, at)


def _claims_below(
    module: Module, parent: ast.Module | ast.ClassDef, prefix: str, inherited: list[Target]
) -> Iterator[Claim]:
    path = module.path
    for node in parent.body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            targets = inherited + _targets(node.decorator_list, path)
            targets += [target for inner in node.body if _is_pytestmark(inner) for target in _targets([inner], path)]
            yield from _claims_below(module, node, f"{prefix}{node.name}::", targets)
        elif isinstance(node, Function):
            own = _targets(node.decorator_list, path)
            if not node.name.startswith("test"):
                if own:
                    raise SpecError(f"{path}: {node.name} bears a spec marker but is no test; mark the test of it")
                continue
            targets = list(dict.fromkeys(inherited + own))
            if targets:
                _check_test(node, f"{path}: {node.name} claims {sorted({row for row, _ in targets})} but")
            soak = f"{path}:{node.lineno}" if "soak" in _marks(node.decorator_list) else ""
            yield from (Claim(row, clause, path, prefix + node.name, soak) for row, clause in targets)


def _check_test(test: Function, claim: str) -> None:
    if _marks(test.decorator_list) & {"skip", "xfail"}:
        raise SpecError(f"{claim} is skipped or must fail; drop one of both")
    if _compares_with_itself(test):
        raise SpecError(f"{claim} calls verify() without `then`, which shows no result; add the expectation")


def _compares_with_itself(test: Function) -> bool:
    """Tell whether a test calls `verify(factory, given)` without a third argument, and asserts nothing besides."""
    calls = [node for node in ast.walk(test) if isinstance(node, ast.Call)]
    verified = [call for call in calls if ast.unparse(call.func).split(".")[-1] == "verify"]
    expects = [len(call.args) > 2 or any(keyword.arg == "then" for keyword in call.keywords) for call in verified]
    asserts = any(isinstance(node, ast.Assert) for node in ast.walk(test))
    return bool(verified) and not any(expects) and not asserts


def _is_pytestmark(node: ast.stmt) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return any(isinstance(target, ast.Name) and target.id == "pytestmark" for target in targets)


def _targets(nodes: list[ast.expr] | list[ast.stmt], path: str) -> list[Target]:
    """Rows and clauses of all `mark.spec(...)` calls anywhere below the nodes."""
    found: list[Target] = []
    for call in (inner for node in nodes for inner in ast.walk(node) if isinstance(inner, ast.Call)):
        if _mark_name(call.func) != "spec":
            continue
        names = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        if not names or len(names) != len(call.args) or call.keywords:
            raise SpecError(f"{path}:{call.lineno}: spec() takes literal names only, as in spec('N12', 'N13')")
        found += _grouped(names, f"{path}:{call.lineno}")
    return found


def _grouped(names: list[str], place: str) -> list[Target]:
    """Each row with the clauses that follow it."""
    found: list[Target] = []
    row = ""
    for name, following in zip(names, [*names[1:], ""], strict=True):
        if ROW_ID.fullmatch(name):
            row = name
            if not following or ROW_ID.fullmatch(following):
                found.append((row, ""))
        elif row and CLAUSE_NAME.fullmatch(name):
            found.append((row, name))
        else:
            raise SpecError(
                f"{place}: {name!r} is neither a row nor a clause after its row, as in spec('M05', 'sizes')"
            )
    return found


def _marks(decorators: list[ast.expr]) -> set[str]:
    return {_mark_name(node.func if isinstance(node, ast.Call) else node) for node in decorators}


def _mark_name(node: ast.expr) -> str:
    """`spec` for `pytest.mark.spec` and `mark.spec`, else the empty string."""
    if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("pytest.mark", "mark"):
        return node.attr
    return ""


def collect_claims(tests: Path) -> list[Claim]:
    """All claims of the modules below a folder, sorted by row, clause, file and test."""
    skips = Skips.below(tests)
    paths = [path.relative_to(tests).as_posix() for path in tests.rglob("test_*.py")]
    modules = [skips.module(path) for path in paths if "spec(" in skips.text(path)]
    return sorted({claim for module in modules if module for claim in claims_in(module, skips.where)})
