"""The table in docs/flink-semantics.md and the `spec(...)` markers of the tests, kept equal.

`python -m tests.spec_table` reports what differs; with `--write` it rewrites the columns `status` and `shown by`.
Markers are read from the syntax trees, so no test module is imported.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "flink-semantics.md"
NOT_APPLICABLE = ROOT / "docs" / "not-applicable.md"

ROW = re.compile(r"^\| (?P<id>[A-X]\d\d) \|")
UNTESTABLE = re.compile(r"^\*\*\[(HEADING|FIGURE|BACKGROUND)\]")
CELL_END = re.compile(r"(?<!\\)\|")
PARTS = {
    "A": "API",
    "B": "types",
    "C": "DataStream",
    "D": "partitioners",
    "E": "time",
    "F": "windows",
    "G": "state",
    "H": "checkpoints",
    "I": "graphs",
    "J": "scheduling",
    "K": "state machines",
    "L": "tasks",
    "M": "memory",
    "N": "exchange",
    "O": "credits",
    "P": "back-pressure",
    "Q": "CEP",
    "R": "Table and SQL",
    "S": "deployment",
    "T": "batch",
    "U": "metrics",
    "V": "options",
    "X": "examples",
}


class SpecError(Exception):
    """The table, the list of rows that do not apply, or a marker is wrong."""


@dataclass(frozen=True)
class Claim:
    """One test says that it shows one row."""

    row: str
    path: str
    test: str


def claims_in(source: str, path: str) -> Iterator[Claim]:
    """Every claim a test module makes, by function, class, module mark or parameter.

    Args:
        source: text of the module.
        path: its name in the table, relative to tests/.
    Raises: SpecError: a marker without literal ids, or on a test that never runs or must fail.
    """
    tree = ast.parse(source, filename=path)
    module_rows = [row for node in tree.body if _assigns_pytestmark(node) for row in _rows_in([node], path)]
    yield from _claims_below(tree, path, "", module_rows)


def _claims_below(parent: ast.Module | ast.ClassDef, path: str, prefix: str, inherited: list[str]) -> Iterator[Claim]:
    for node in parent.body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            rows = inherited + _rows_in(node.decorator_list, path)
            rows += [row for inner in node.body if _assigns_pytestmark(inner) for row in _rows_in([inner], path)]
            yield from _claims_below(node, path, f"{prefix}{node.name}::", rows)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            rows = inherited + _rows_in(node.decorator_list, path)
            is_test = node.name.startswith("test")
            if rows and is_test and _marks(node.decorator_list) & {"skip", "xfail"}:
                raise SpecError(f"{path}: {node.name} claims {rows} but is skipped or must fail; drop one of both")
            if _rows_in(node.decorator_list, path) and not is_test:
                raise SpecError(f"{path}: {node.name} bears a spec marker but is no test; mark the test that uses it")
            if is_test:
                yield from (Claim(row, path, prefix + node.name) for row in dict.fromkeys(rows))


def _assigns_pytestmark(node: ast.stmt) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return any(isinstance(target, ast.Name) and target.id == "pytestmark" for target in targets)


def _rows_in(nodes: list[ast.expr] | list[ast.stmt], path: str) -> list[str]:
    """Row ids of all `mark.spec(...)` calls anywhere below the nodes."""
    rows: list[str] = []
    for call in (inner for node in nodes for inner in ast.walk(node) if isinstance(inner, ast.Call)):
        if _mark_name(call.func) != "spec":
            continue
        literals = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        if not literals or len(literals) != len(call.args) or call.keywords:
            raise SpecError(f"{path}:{call.lineno}: spec() takes literal row ids only, as in spec('N12', 'N13')")
        rows += literals
    return rows


def _marks(decorators: list[ast.expr]) -> set[str]:
    return {_mark_name(node.func if isinstance(node, ast.Call) else node) for node in decorators}


def _mark_name(node: ast.expr) -> str:
    """`spec` for `pytest.mark.spec` and `mark.spec`, else the empty string."""
    if isinstance(node, ast.Attribute):
        owner = node.value
        if (isinstance(owner, ast.Attribute) and owner.attr == "mark") or (
            isinstance(owner, ast.Name) and owner.id == "mark"
        ):
            return node.attr
    return ""


def collect_claims(tests: Path) -> list[Claim]:
    """All claims of the modules below a folder, sorted by row, file and test."""
    found: set[Claim] = set()
    for path in tests.rglob("test_*.py"):
        source = path.read_text(encoding="utf-8")
        if "spec(" in source:
            found.update(claims_in(source, path.relative_to(tests).as_posix()))
    return sorted(found, key=lambda claim: (claim.row, claim.path, claim.test))


def read_not_applicable(text: str) -> dict[str, str]:
    """Row id to reason, from the Markdown list of rows that do not apply.

    Raises: SpecError: a row without a reason, or listed twice.
    """
    reasons: dict[str, str] = {}
    for line in text.splitlines():
        if not ROW.match(line):
            continue
        row, reason = _cells(line)
        if not reason or row in reasons:
            raise SpecError(f"{NOT_APPLICABLE.name}: row {row} is listed twice or has no reason; give it one of each")
        reasons[row] = reason
    return reasons


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in CELL_END.split(line.strip())[1:-1]]


def table_rows(table: str) -> dict[str, list[str]]:
    """Row id to all its cells, in the order of the table.

    Raises: SpecError: an id stands twice.
    """
    rows: dict[str, list[str]] = {}
    for line in filter(ROW.match, table.splitlines()):
        cells = _cells(line)
        if cells[0] in rows:
            raise SpecError(f"{TABLE.name}: row {cells[0]} stands twice; rename one")
        rows[cells[0]] = cells
    return rows


def render(table: str, claims: list[Claim], not_applicable: Mapping[str, str]) -> str:
    """The table with its last two columns written anew; idempotent.

    Raises: SpecError: a claim or a reason names a row that does not exist, or a row has both.
    """
    rows = table_rows(table)
    tests: defaultdict[str, list[str]] = defaultdict(list)
    for claim in claims:
        tests[claim.row].append(f"`{claim.path}::{claim.test}`")
    if unknown := sorted((set(tests) | set(not_applicable)) - set(rows)):
        where = [f"{claim.path}::{claim.test}" for claim in claims if claim.row in unknown]
        raise SpecError(f"no such row: {', '.join(unknown)}; named by {where or NOT_APPLICABLE.name}")
    if both := sorted(set(tests) & set(not_applicable)):
        raise SpecError(f"{', '.join(both)} cannot be met and not applicable; take it out of {NOT_APPLICABLE.name}")
    lines = []
    for line in table.splitlines():
        if match := ROW.match(line):
            cells = rows[match["id"]][:-2]
            shown_by = ", ".join(tests[match["id"]])
            lines.append("| " + " | ".join([*cells, _status(cells, shown_by, not_applicable), shown_by]) + " |")
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def _status(cells: list[str], shown_by: str, not_applicable: Mapping[str, str]) -> str:
    row = cells[0]
    if shown_by:
        return "met"
    if row in not_applicable:
        return f"n/a: {not_applicable[row]}"
    if tag := UNTESTABLE.match(cells[2]):
        return tag[1].lower()
    return f"planned: {PARTS[row[0]]}"


def expected_table() -> str:
    """What docs/flink-semantics.md should say, by the tests and the list of rows that do not apply."""
    not_applicable = read_not_applicable(NOT_APPLICABLE.read_text(encoding="utf-8"))
    return render(TABLE.read_text(encoding="utf-8"), collect_claims(ROOT / "tests"), not_applicable)


def differences(found: str, wanted: str) -> list[str]:
    """One line for each row whose status or tests are out of date."""
    old, new = table_rows(found), table_rows(wanted)
    return [f"{row}: {old[row][-2:]} should be {new[row][-2:]}" for row in new if old[row][-2:] != new[row][-2:]]


def main(arguments: list[str]) -> int:
    """Check the table, or with `--write` bring it up to date; 0 when it is."""
    if arguments not in ([], ["--write"]):
        print(f"usage: python -m tests.spec_table [--write]; found {arguments}", file=sys.stderr)
        return 2
    try:
        found, wanted = TABLE.read_text(encoding="utf-8"), expected_table()
    except SpecError as error:
        print(error, file=sys.stderr)
        return 1
    statuses = Counter(cells[-2].split(":")[0] for cells in table_rows(wanted).values())
    print(", ".join(f"{count} {status}" for status, count in sorted(statuses.items())))
    if arguments:
        TABLE.write_text(wanted, encoding="utf-8")
        return 0
    stale = differences(found, wanted)
    print("\n".join(stale))
    return int(found != wanted)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
