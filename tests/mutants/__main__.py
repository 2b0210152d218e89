"""`python -m tests.mutants`: draw rows, break what their tests run, and report what nobody noticed."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.mutants.named import NAMED, Named
from tests.mutants.other_tests import files_about, sources
from tests.mutants.report import Outcome, written
from tests.mutants.sampling import Candidate, Run, candidates, drawn, tests_of_rows
from tests.mutants.tracing import ROOT
from tests.mutants.trial import FAST, Trials, Verdict, imported
from tests.spec.spec_claims import Claim, collect_claims


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    options.add_argument("--seed", type=int, default=1, help="of the rows and the changes; default 1")
    options.add_argument(
        "--rows", type=int, default=100, help="number of rows drawn; default 100; 0: named changes only"
    )
    options.add_argument("--each", type=int, default=4, help="changes of a row, at most; default 4")
    options.add_argument(
        "--others", action="store_true", help="try what no test of a row notices with other fast tests about the module"
    )
    options.add_argument("--only", nargs="*", default=[], metavar="ROW", help="these rows, and none drawn")
    options.add_argument("--out", type=Path, default=ROOT / "build" / "mutants.md", help="the report")
    return options


def traced(tests: Iterable[str]) -> dict[str, Run]:
    """What each test runs, from a process of its own; tests that start Ray or do not pass are not in it."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "runs.json"
        subprocess.run([sys.executable, "-m", "tests.mutants.tracing", out, *tests], cwd=ROOT, check=True)
        found = json.loads(out.read_text(encoding="utf-8"))
    return {
        name: Run({path: frozenset(lines) for path, lines in run["lines"].items()}, run["seconds"])
        for name, run in found.items()
    }


def outcome_of_named(named: Named, claims: Iterable[Claim], trials: Trials) -> Outcome:
    """What becomes of a change written by hand, by the tests that claim its row or clause."""
    row, _, clause = named.row.partition(" ")
    claiming = [claim for claim in claims if (claim.row, claim.clause) == (row, clause)]
    tests = tuple(dict.fromkeys(f"tests/{claim.path}::{claim.test}" for claim in claiming))
    verdict = trials.verdict(tests, named.change()) if tests else Verdict.NOT_TRIED
    return shown(Outcome(named.row, f"{named.path}: {named.what}", tests, verdict))


def outcome_of(row: str, candidate: Candidate, trials: Trials, asks_others: bool) -> Outcome:
    """What becomes of a change of a row, by the tests that run its line; then by others, if they are asked."""
    verdict = trials.verdict(candidate.tests, candidate.change())
    if verdict is Verdict.SURVIVED and asks_others:
        others = files_about(candidate.path, sources())
        if imported(others) and trials.verdict(others, candidate.change(), FAST) in (Verdict.FAILED, Verdict.HUNG):
            verdict = Verdict.ELSEWHERE
    return shown(Outcome(row, str(candidate), candidate.tests, verdict))


def shown(outcome: Outcome) -> Outcome:
    """The same, printed."""
    print(f"{outcome.row}: {outcome.verdict.value}: {outcome.what}", flush=True)
    return outcome


def main(arguments: list[str]) -> int:
    """Run the changes and write the report; 1 when a named change was not noticed."""
    options = parser().parse_args(arguments)
    claims = collect_claims(ROOT / "tests")
    rows = tests_of_rows(claims)
    chosen = options.only or drawn(rows, options.rows, options.seed)
    tests = sorted({name for row in chosen for name in rows[row]})
    runs = traced(tests) if tests else {}
    named_tests = {f"tests/{claim.path}" for claim in claims if claim.row in {named.row[:3] for named in NAMED}}
    if not imported(sorted(set(runs) | named_tests)):
        print("the tests cannot be collected; see what `pytest --collect-only` says", file=sys.stderr)
        return 2
    trials = Trials()
    by_hand = [
        outcome_of_named(named, claims, trials) for named in NAMED if named.row[:3] in chosen or not options.only
    ]
    by_row = {
        row: [
            outcome_of(row, candidate, trials, options.others)
            for candidate in candidates(row, rows[row], runs, options.each, options.seed)
        ]
        for row in chosen
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(written(options.seed, by_hand, by_row), encoding="utf-8")
    print(f"the report: {options.out}")
    return int(any(outcome.verdict not in (Verdict.FAILED, Verdict.HUNG) for outcome in by_hand))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
