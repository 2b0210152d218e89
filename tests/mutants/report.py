"""The report of a run, in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.mutants.trial import Verdict

NOTICED = (Verdict.FAILED, Verdict.HUNG)


@dataclass(frozen=True)
class Outcome:
    """One change of one row: what it was, which tests ran, and what they said."""

    row: str
    what: str
    tests: tuple[str, ...]
    verdict: Verdict


def written(seed: int, by_hand: Sequence[Outcome], by_row: Mapping[str, Sequence[Outcome]]) -> str:
    """The report.

    Args:
        seed: of the rows and the changes.
        by_hand: what became of the named changes.
        by_row: each row that was drawn, with what became of its changes; none where its tests start Ray or are slow.
    """
    drawn = [outcome for outcomes in by_row.values() for outcome in outcomes]
    tried = {row: found for row, outcomes in by_row.items() if (found := _tried(outcomes))}
    unnoticed = [row for row, found in tried.items() if not any(each.verdict in NOTICED for each in found)]
    lines = [
        f"# Mutants, seed {seed}",
        "",
        f"- named changes: {_counted(by_hand)}",
        f"- rows drawn: {len(by_row)}; with changes that could be tried: {len(tried)}",
        f"- changes of drawn rows: {_counted(drawn)}",
        f"- rows of which no change was noticed: {', '.join(unnoticed) or 'none'}",
        f"- rows without a trial (their tests start Ray, are slow, or run no line that can change): "
        f"{', '.join(row for row in by_row if row not in tried) or 'none'}",
        "",
        "## Not noticed",
        "",
        "A change that no test notices shows a weak test, or a change that changes nothing a user can see.",
        "",
        *_table([*(each for each in by_hand if each.verdict not in NOTICED), *_of(drawn, Verdict.SURVIVED)]),
        "",
        "## Noticed by other tests",
        "",
        "The row is not about the line, or should cite the test that is.",
        "",
        *_table(_of(drawn, Verdict.ELSEWHERE)),
    ]
    return "\n".join(lines) + "\n"


def _of(outcomes: Iterable[Outcome], verdict: Verdict) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome.verdict is verdict]


def _table(outcomes: Iterable[Outcome]) -> list[str]:
    lines = ["| row | change | tests |", "|---|---|---|"]
    for outcome in outcomes:
        tests = ", ".join(f"`{name}`" for name in outcome.tests)
        lines.append(f"| {outcome.row} | {outcome.what.replace('|', chr(92) + '|')} | {tests} |")
    return lines


def _tried(outcomes: Iterable[Outcome]) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome.verdict is not Verdict.NOT_TRIED]


def _counted(outcomes: Iterable[Outcome]) -> str:
    counts = Counter(outcome.verdict for outcome in outcomes)
    return ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict) + f", of {counts.total()}"
