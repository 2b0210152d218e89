"""Which rows are drawn, and which changes of the product each gets: in the functions that few other rows run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from random import Random

from tests.mutants.mutations import Mutation, mutated, mutations_of
from tests.mutants.tracing import ROOT
from tests.mutants.trial import Change
from tests.spec.spec_claims import Claim

SLOWEST_S = 20.0
"""Tests that take longer, when they are traced, are left out."""

Place = tuple[str, str, int]
"""A function: path of its module, name, line."""


@dataclass(frozen=True)
class Run:
    """What one test ran: path to lines, and the seconds it took."""

    lines: Mapping[str, frozenset[int]]
    seconds: float


@dataclass(frozen=True)
class Candidate:
    """A change for a row, and the tests of the row that run the line."""

    path: str
    mutation: Mutation
    tests: tuple[str, ...]

    def change(self) -> Change:
        """The module with the change."""
        return Change(self.path, mutated(_source(self.path), self.mutation.index))

    def __str__(self) -> str:
        found = self.mutation
        return f"{self.path}:{found.line} {found.function}: `{found.before}` -> `{found.after}`"


def tests_of_rows(claims: Iterable[Claim]) -> dict[str, list[str]]:
    """Row to the names of its tests that always run, as pytest has them."""
    rows: defaultdict[str, list[str]] = defaultdict(list)
    for claim in claims:
        name = f"tests/{claim.path}::{claim.test}"
        if not claim.skipped_at and name not in rows[claim.row]:
            rows[claim.row].append(name)
    return dict(rows)


def drawn(rows: Mapping[str, list[str]], number: int, seed: int) -> list[str]:
    """As many rows as are asked for, by a seed; all where there are fewer."""
    return sorted(Random(seed).sample(sorted(rows), min(number, len(rows))))


@cache
def _source(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@cache
def _mutations(path: str) -> list[Mutation]:
    return mutations_of(_source(path))


def candidates(row: str, tests: Iterable[str], runs: Mapping[str, Run], most: int, seed: int) -> list[Candidate]:
    """At most `most` changes for a row, one a function, in those functions first that the fewest other tests run."""
    own = [name for name in tests if name in runs and runs[name].seconds <= SLOWEST_S]
    others = [run for name, run in runs.items() if name not in own]
    by_function: defaultdict[Place, list[Candidate]] = defaultdict(list)
    for path in sorted({path for name in own for path in runs[name].lines}):
        for mutation in _mutations(path):
            ran = tuple(name for name in own if mutation.line in runs[name].lines.get(path, ()))
            if ran:
                place = (path, mutation.function, mutation.function_line)
                by_function[place].append(Candidate(path, mutation, ran))
    random = Random(f"{seed} {row}")
    elsewhere: Counter[Place] = Counter()
    for place, found in by_function.items():
        lines = {each.mutation.line for each in found}
        elsewhere[place] = sum(not lines.isdisjoint(run.lines.get(place[0], ())) for run in others)
    order = sorted(by_function, key=lambda place: (elsewhere[place], random.random()))
    return [random.choice(by_function[place]) for place in order[:most]]
