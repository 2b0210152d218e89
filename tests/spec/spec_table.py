"""The table in docs/flink-semantics.md and the `spec(...)` markers of the tests, kept equal.

`python -m tests.spec.spec_table` reports what differs; with `--write` it rewrites the columns `status` and `shown by`.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.spec.spec_claims import Claim, SpecError, collect_claims

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "docs" / "flink-semantics.md"
CLAUSES = ROOT / "docs" / "flink-semantics-clauses.md"
NOT_APPLICABLE = ROOT / "docs" / "not-applicable.md"

ROW = re.compile(r"^\| (?P<id>[A-X]\d\d)(?: (?P<clause>[a-z0-9-]+))? \|")
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


@dataclass(frozen=True)
class Clause:
    """One part of a row that a test shows by itself, or that does not apply.

    `lacking` says what is so instead while no test shows the clause.
    """

    name: str
    lacking: str = ""


@dataclass(frozen=True)
class Lists:
    """What is written by hand beside the table.

    `clauses` has the clauses of each row that has several; any other row is one clause, whose name is empty.
    `not_applicable` has the reason for a row ("T01") or for a clause of one ("A03 dataset").
    """

    clauses: Mapping[str, list[Clause]]
    not_applicable: Mapping[str, str]

    def clauses_of(self, row: str) -> list[Clause]:
        return self.clauses.get(row, [Clause("")])

    def reason(self, row: str, clause: str) -> str:
        return self.not_applicable.get(f"{row} {clause}" if clause else row, "")


def read_not_applicable(text: str) -> dict[str, str]:
    """Row, or row and clause, to reason, from the Markdown list of what does not apply.

    Raises: SpecError: an entry without a reason, or listed twice.
    """
    reasons: dict[str, str] = {}
    for entry, reason in (_cells(line) for line in text.splitlines() if ROW.match(line)):
        if not reason or entry in reasons:
            raise SpecError(f"{NOT_APPLICABLE.name}: {entry} is listed twice or has no reason; give it one of each")
        reasons[entry] = reason
    return reasons


def read_clauses(text: str) -> dict[str, list[Clause]]:
    """Row id to its clauses, in the order of the Markdown list.

    Raises: SpecError: a clause is listed twice, says nothing, or is the only one of its row.
    """
    clauses: dict[str, list[Clause]] = {}
    for row, name, what, lacking in (_cells(line) for line in text.splitlines() if ROW.match(line)):
        known = clauses.setdefault(row, [])
        if not what or not name or any(clause.name == name for clause in known):
            raise SpecError(f"{CLAUSES.name}: clause {name!r} of {row} is listed twice or has no name or text")
        known.append(Clause(name, lacking))
    if single := [row for row, known in clauses.items() if len(known) == 1]:
        raise SpecError(f"{CLAUSES.name}: {', '.join(single)} has one clause, which is the row; name the others")
    return clauses


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


def render(table: str, claims: list[Claim], lists: Lists) -> str:
    """The table with its last two columns written anew; idempotent.

    Raises: SpecError: a claim, clause or reason names what does not exist, or something is claimed and not applicable.
    """
    _check_names(set(table_rows(table)), claims, lists)
    by_row: defaultdict[str, list[Claim]] = defaultdict(list)
    for claim in claims:
        by_row[claim.row].append(claim)
    lines = []
    for line in table.splitlines():
        if match := ROW.match(line):
            row, cells = match["id"], _cells(line)[:-2]
            tag = UNTESTABLE.match(cells[2])
            status = _status(row, by_row[row], lists, tag[1].lower() if tag else f"planned: {PARTS[row[0]]}")
            lines.append("| " + " | ".join([*cells, status, _shown_by(row, by_row[row], lists)]) + " |")
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def _check_names(rows: set[str], claims: list[Claim], lists: Lists) -> None:
    entries = {(row, clause) for entry in lists.not_applicable for row, _, clause in [entry.partition(" ")]}
    if unknown := sorted(({claim.row for claim in claims} | set(lists.clauses) | {row for row, _ in entries}) - rows):
        where = [f"{claim.path}::{claim.test}" for claim in claims if claim.row in unknown]
        raise SpecError(f"no such row: {', '.join(unknown)}; named by {where or [CLAUSES.name, NOT_APPLICABLE.name]}")
    problems = []
    for claim in claims:
        names = [clause.name for clause in lists.clauses_of(claim.row)]
        if claim.clause not in names:
            wanted = f"name some of its clauses: {', '.join(names)}" if any(names) else "it has no clauses"
            problems.append(f"{claim.path}::{claim.test} claims {claim.row} {claim.clause!r}; {wanted}")
        if {(claim.row, claim.clause), (claim.row, "")} & entries:
            problems.append(f"{claim.row} {claim.clause} cannot be shown and not applicable; see {NOT_APPLICABLE.name}")
    if problems:
        raise SpecError("\n".join(problems))
    for row, name in sorted(entries):
        if name and name not in [clause.name for clause in lists.clauses_of(row)]:
            raise SpecError(f"{NOT_APPLICABLE.name}: {row} has no clause {name!r}; see {CLAUSES.name}")


def _status(row: str, claims: list[Claim], lists: Lists, without_tests: str) -> str:
    """The status of one row: met when a test that always runs shows every clause."""
    shown = {claim.clause for claim in claims if not claim.skipped_at}
    at_times = {claim.clause for claim in claims} - shown
    lacking = []
    absent = []
    for clause in lists.clauses_of(row):
        if lists.reason(row, clause.name):
            absent.append(clause.name)
        elif clause.name in at_times:
            lacking.append(f"a test of {clause.name or 'it'} that is in every run")
        elif clause.name not in shown:
            lacking.append(f"{clause.name} ({clause.lacking})" if clause.lacking else clause.name)
    if reason := lists.reason(row, ""):
        return f"n/a: {reason}"
    if lacking:
        return f"partly: lacks {', '.join(lacking)}" if shown or at_times else without_tests
    return f"met; not applicable: {', '.join(absent)}" if absent else "met"


def _shown_by(row: str, claims: list[Claim], lists: Lists) -> str:
    parts = []
    for clause in lists.clauses_of(row):
        tests = [
            f"`{claim.path}::{claim.test}`" + (" (not in every run)" if claim.skipped_at else "")
            for claim in claims
            if claim.clause == clause.name
        ]
        if tests:
            parts.append((f"{clause.name}: " if clause.name else "") + ", ".join(tests))
    return "; ".join(parts)


def expected_table() -> str:
    """What docs/flink-semantics.md should say, by the tests, the clauses and what does not apply."""
    clauses = read_clauses(CLAUSES.read_text(encoding="utf-8"))
    lists = Lists(clauses, read_not_applicable(NOT_APPLICABLE.read_text(encoding="utf-8")))
    return render(TABLE.read_text(encoding="utf-8"), collect_claims(ROOT / "tests"), lists)


def differences(found: str, wanted: str) -> list[str]:
    """One line for each row whose status or tests are out of date."""
    old, new = table_rows(found), table_rows(wanted)
    return [f"{row}: {old[row][-2:]} should be {new[row][-2:]}" for row in new if old[row][-2:] != new[row][-2:]]


def main(arguments: list[str]) -> int:
    """Check the table, or with `--write` bring it up to date; 0 when it is."""
    if arguments not in ([], ["--write"]):
        print(f"usage: python -m tests.spec.spec_table [--write]; found {arguments}", file=sys.stderr)
        return 2
    try:
        found, wanted = TABLE.read_text(encoding="utf-8"), expected_table()
    except SpecError as error:
        print(error, file=sys.stderr)
        return 1
    statuses = Counter(re.split("[:;]", cells[-2])[0] for cells in table_rows(wanted).values())
    print(", ".join(f"{count} {status}" for status, count in sorted(statuses.items())))
    if arguments:
        TABLE.write_text(wanted, encoding="utf-8")
        return 0
    stale = differences(found, wanted)
    print("\n".join(stale))
    return int(found != wanted)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
