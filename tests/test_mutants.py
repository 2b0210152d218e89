"""The changes by which `python -m tests.mutants` breaks the product."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutants.mutations import mutated, mutations_of
from tests.mutants.named import NAMED
from tests.mutants.other_tests import files_about
from tests.mutants.report import Outcome, written
from tests.mutants.sampling import Run, candidates, drawn
from tests.mutants.trial import Change, Verdict, module_name, put_in_place
from tests.spec.spec_table import CLAUSES, TABLE, read_clauses, table_rows

SOURCE = '''\
LIMIT = 3

class Counter:
    def add(self, amount: int = 1) -> int:
        """It counts."""
        log.info("adding", 2)
        self.total = self.total + amount
        if amount < 0 and self.strict:
            raise ValueError(f"{amount}")
        return self.total if amount else swap(self, amount)
'''


@pytest.mark.parametrize(
    ("line", "before", "after"),
    [
        (7, "self.total = self.total + amount", "pass"),
        (7, "self.total + amount", "self.total - amount"),
        (8, "amount < 0 and self.strict", "not (amount < 0 and self.strict)"),
        (8, "amount < 0 and self.strict", "amount < 0 or self.strict"),
        (8, "amount < 0", "amount <= 0"),
        (8, "0", "1"),
        (9, "raise ValueError(f'{amount}')", "pass"),
        (10, "return self.total if amount else swap(self, amount)", "return None"),
        (10, "self.total if amount else swap(self, amount)", "swap(self, amount) if amount else self.total"),
        (10, "swap(self, amount)", "swap(amount, self)"),
    ],
)
def test_a_change_is_one_place_of_a_function(line, before, after):
    found = {(each.line, each.before, each.after): each for each in mutations_of(SOURCE)}
    change = found[line, before, after]
    assert (change.function, change.function_line) == ("add", 4)
    old, new = (ast.unparse(tree).splitlines() for tree in (ast.parse(SOURCE), mutated(SOURCE, change.index)))
    assert [(a, b) for a, b in zip(old, new, strict=True) if a != b] == [
        (a, b) for a, b in zip(old, new, strict=True) if after in b and a != b
    ]
    assert old != new


def test_strings_log_lines_defaults_and_constants_of_modules_do_not_change():
    assert {each.line for each in mutations_of(SOURCE)} == {7, 8, 9, 10}
    assert len(mutations_of(SOURCE)) == 10


@pytest.mark.slow
def test_functions_that_exist_get_their_changed_code(monkeypatch):
    path = "rayflink/operators/windows/session_windows.py"
    from rayflink.operators.windows.session_windows import EventTimeSessionWindows

    assigner = EventTimeSessionWindows.with_gap(10)
    assert module_name(path) == "rayflink.operators.windows.session_windows"
    assert module_name("state/keys.py") == "rayflink.state.keys"
    source = Path(path if Path(path).exists() else Path(__file__).parents[1] / path).read_text(encoding="utf-8")
    function = type(assigner).assign_windows
    monkeypatch.setattr(function, "__code__", function.__code__)  # which brings it back
    before = assigner.assign_windows("x", 5, None)
    assert put_in_place(Change(path, ast.parse(source.replace("[TimeWindow(start,", "[TimeWindow(start - 1,")))) > 0
    (window,) = assigner.assign_windows("x", 5, None)
    assert (before[0].start, window.start) == (5, 4)


@pytest.mark.slow
def test_named_changes_fit_the_product_and_the_rows():
    rows, clauses = table_rows(TABLE.read_text(encoding="utf-8")), read_clauses(CLAUSES.read_text(encoding="utf-8"))
    for named in NAMED:
        named.change()
        row, _, name = named.row.partition(" ")
        assert row in rows and name in [clause.name for clause in clauses.get(row, [])] or not name
        assert (row in clauses) is bool(name), f"{named.row}: a row with clauses is named with one"
    assert [named.row[:3] for named in NAMED] == sorted(named.row[:3] for named in NAMED)


def test_a_row_gets_changes_where_few_other_tests_run():
    path = "actors/job/failures/restarts.py"
    source = (Path(__file__).parents[1] / path).read_text(encoding="utf-8")
    lines = frozenset(range(1, source.count("\n")))
    (fixed,) = [number for number in lines if "self._failures <= self._attempts" in source.splitlines()[number - 1]]
    runs = {
        "own": Run({path: lines}, 0.1),
        "slow": Run({path: lines}, 99.0),
        "other": Run({path: lines - {fixed}}, 0.1),
    }
    (first, *others) = candidates("H70", ["own", "slow", "away"], runs, 30, seed=1)
    assert first.tests == ("own",)
    places = [(each.mutation.function, each.mutation.function_line) for each in (first, *others)]
    assert len(places) == len(set(places)) > 3
    assert candidates("H70", ["own"], runs, 30, seed=1)[0] == first
    ast.unparse(first.change().tree)


def test_rows_are_drawn_by_seed():
    rows = {f"N{number}": ["test"] for number in range(10, 60)}
    assert drawn(rows, 5, seed=3) == drawn(rows, 5, seed=3) != drawn(rows, 5, seed=4)
    assert drawn(rows, 100, seed=3) == sorted(rows)


def test_other_tests_are_of_the_modules_name_or_import_it_or_lie_in_its_folder():
    contents = {
        "tests/state/test_apart.py": "",
        "tests/state/keys/test_beside.py": "",
        "tests/state/keys/test_key_groups.py": "",
        "tests/state/test_imports.py": "from rayflink.state.keys.key_groups import key_group",
        "tests/state/test_imports_too.py": "from rayflink.state.keys import key_groups",
        "tests/state/test_imports_another.py": "from rayflink.state.keys import key_hash",
    }
    assert files_about("state/keys/key_groups.py", contents) == (
        "tests/state/keys/test_key_groups.py", "tests/state/test_imports.py", "tests/state/test_imports_too.py",
        "tests/state/keys/test_beside.py",
    )  # fmt: skip


def test_the_report_names_what_nobody_noticed():
    def outcome(row: str, what: str, verdict: Verdict) -> Outcome:
        return Outcome(row, what, ("tests/test_a.py::test_b",), verdict)

    by_row = {
        "N12": [outcome("N12", "a | b", Verdict.SURVIVED), outcome("N12", "c", Verdict.NOT_TRIED)],
        "N13": [outcome("N13", "d", Verdict.FAILED), outcome("N13", "e", Verdict.SURVIVED)],
        "N15": [outcome("N15", "g", Verdict.ELSEWHERE)],
        "N14": [],
    }
    text = written(7, [outcome("V20", "f", Verdict.NOT_TRIED)], by_row)
    assert "rows drawn: 4; with changes that could be tried: 3" in text
    assert (
        "1 a test failed, 0 a test did not end, 1 another test failed, 2 all tests passed, "
        "1 the change cannot be put in place, of 5"
    ) in text
    assert "rows of which no change was noticed: N12, N15" in text
    assert "or run no line that can change): N14" in text
    assert [line.split(" | ")[1] for line in text.splitlines() if line.startswith("| N") or line.startswith("| V")] == [
        "f", "a \\| b", "e", "g",
    ]  # fmt: skip
