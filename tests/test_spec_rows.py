"""docs/flink-semantics.md claims what the tests show, neither more nor less."""

from __future__ import annotations

import ast
import re

import pytest

from tests.spec.spec_claims import Claim, SpecError, claims_in
from tests.spec.spec_skips import Module, Skips
from tests.spec.spec_table import (
    CLAUSES,
    NOT_APPLICABLE,
    TABLE,
    Clause,
    Lists,
    differences,
    expected_table,
    read_clauses,
    read_not_applicable,
    render,
    table_rows,
)

MOST_NOT_APPLICABLE = 40

SMALL = """\
| id | name | what precisely must work | ref | status | shown by |
|---|---|---|---|---|---|
| N12 | Credit | spent by `a \\| b` | 000:1 | planned | |
| N13 | Figure | **[FIGURE]** image only. | 000:2 | planned | |
| N14 | Heap | on-heap buffers | 000:3 | planned | |
"""


NOTHING = Lists({}, {})
SPLIT = Lists({"N12": [Clause("spent"), Clause("returned", "never comes back")]}, {})


def small_status(claims: list[Claim], lists: Lists, row: str) -> list[str]:
    return table_rows(render(SMALL, claims, lists))[row][-2:]


def module_of(text: str) -> Module:
    return Module("test_a.py", ast.parse(text))


@pytest.mark.slow
def test_the_table_is_what_the_script_writes_of_the_tests_claims():
    found, wanted = TABLE.read_text(encoding="utf-8"), expected_table()
    stale = differences(found, wanted)
    assert not stale and found == wanted, "run `python -m tests.spec.spec_table --write`:\n" + "\n".join(stale)
    shown = [
        f"{row} {clause.name}"
        for row, clauses in read_clauses(CLAUSES.read_text(encoding="utf-8")).items()
        for clause in clauses
        if clause.lacking and f"{clause.name}: `" in table_rows(wanted)[row][-1]
    ]
    assert not shown, f"tests show {shown}; empty the cell `while not shown` in {CLAUSES.name}"


def test_the_page_of_gaps_names_tests_that_exist(repository):
    named = re.findall(r"`([\w/]+\.py)`", (repository / "docs" / "flink-semantics-gaps.md").read_text(encoding="utf-8"))
    assert len(named) > 10
    assert [path for path in named if not (repository / "tests" / path).exists()] == []


def test_the_table_holds_every_row():
    areas = dict.fromkeys(row[0] for row in table_rows(TABLE.read_text(encoding="utf-8")))
    counts = {area: sum(row[0] == area for row in table_rows(TABLE.read_text(encoding="utf-8"))) for area in areas}
    wanted = [14, 20, 36, 13, 36, 39, 37, 81, 40, 22, 14, 22, 21, 40, 38, 4, 29, 28, 17, 6, 10, 30, 67]
    assert counts == dict(zip("ABCDEFGHIJKLMNOPQRSTUVX", wanted, strict=True))


def test_few_rows_do_not_apply():
    reasons = read_not_applicable(NOT_APPLICABLE.read_text(encoding="utf-8"))
    assert len(reasons) <= MOST_NOT_APPLICABLE


def test_a_claimed_row_is_met_and_names_its_tests():
    claims = [Claim("N12", "", "exchange/test_credits.py", "test_b"), Claim("N12", "", "test_a.py", "TestX::test_c")]
    assert small_status(claims, NOTHING, "N12") == [
        "met",
        "`exchange/test_credits.py::test_b`, `test_a.py::TestX::test_c`",
    ]


def test_rows_without_claims_are_planned_untestable_or_not_applicable():
    lists = Lists({}, {"N14": "no heap here"})
    assert [small_status([], lists, row)[0] for row in ("N12", "N13", "N14")] == [
        "planned: exchange",
        "figure",
        "n/a: no heap here",
    ]


def test_a_row_is_met_when_each_of_its_clauses_is_shown():
    spent, returned = (Claim("N12", name, "test_a.py", f"test_{name}") for name in ("spent", "returned"))
    assert small_status([], SPLIT, "N12")[0] == "planned: exchange"
    assert small_status([spent], SPLIT, "N12") == [
        "partly: lacks returned (never comes back)",
        "spent: `test_a.py::test_spent`",
    ]
    assert small_status([spent, returned], SPLIT, "N12") == [
        "met",
        "spent: `test_a.py::test_spent`; returned: `test_a.py::test_returned`",
    ]


def test_a_clause_that_does_not_apply_is_named_and_the_others_count():
    lists = Lists(SPLIT.clauses, {"N12 returned": "nothing returns here"})
    assert small_status([Claim("N12", "spent", "test_a.py", "test_b")], lists, "N12")[0] == (
        "met; not applicable: returned"
    )


def test_a_test_that_may_be_skipped_is_listed_and_shows_nothing_by_itself():
    at_times = Claim("N12", "", "test_a.py", "test_b", "test_a.py:3")
    assert small_status([at_times], NOTHING, "N12") == [
        "partly: lacks a test of it that is in every run",
        "`test_a.py::test_b` (not in every run)",
    ]
    assert small_status([at_times, Claim("N12", "", "test_a.py", "test_c")], NOTHING, "N12")[0] == "met"


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        (Claim("N12", "", "test_a.py", "test_b"), "test_b claims N12 ''; name some of its clauses: spent, returned"),
        (Claim("N12", "lent", "test_a.py", "test_b"), "'lent'; name some of its clauses: spent, returned"),
        (Claim("N14", "heap", "test_a.py", "test_b"), "N14 'heap'; it has no clauses"),
        (Claim("N99", "", "test_a.py", "test_b"), r"no such row: N99.*test_a\.py::test_b"),
    ],
)
def test_a_claim_of_what_does_not_exist_is_an_error_that_names_the_test(claim, message):
    with pytest.raises(SpecError, match=message):
        render(SMALL, [claim], SPLIT)


@pytest.mark.parametrize("entry", ["N99", "N12 lent", "N14 heap"])
def test_a_reason_for_what_does_not_exist_is_an_error(entry):
    with pytest.raises(SpecError, match=entry.split()[-1]):
        render(SMALL, [], Lists(SPLIT.clauses, {entry: "reason"}))


def test_rendering_twice_changes_nothing():
    claims = [Claim("N13", "", "test_a.py", "test_b")]
    once = render(SMALL, claims, NOTHING)
    assert render(once, claims, NOTHING) == once


def test_a_dropped_claim_makes_the_table_stale():
    claimed = render(SMALL, [Claim("N12", "", "test_a.py", "test_gone")], NOTHING)
    assert [line.split(":")[0] for line in differences(claimed, render(claimed, [], NOTHING))] == ["N12"]


@pytest.mark.parametrize("entry", ["N12", "N12 spent"])
def test_nothing_is_shown_and_not_applicable(entry):
    lists = Lists(SPLIT.clauses, {entry: "reason"})
    with pytest.raises(SpecError, match="N12 spent cannot be shown and not applicable"):
        render(SMALL, [Claim("N12", "spent", "test_a.py", "test_b")], lists)


def test_a_row_that_does_not_apply_needs_a_reason():
    with pytest.raises(SpecError, match="N12"):
        read_not_applicable("| N12 | |\n")


@pytest.mark.parametrize(
    "text",
    [
        "| N12 | a | what | |\n| N12 | a | what | |\n",
        "| N12 | a | | |\n| N12 | b | what | |\n",
        "| N12 | a | what | |\n",
    ],
)
def test_clauses_have_a_name_a_text_and_company(text):
    with pytest.raises(SpecError, match="N12"):
        read_clauses(text)


def test_claims_are_read_from_functions_classes_modules_and_parameters():
    source = """
import pytest
pytestmark = [pytest.mark.slow, pytest.mark.spec("A01")]

@pytest.mark.spec("N12", "spent", "on-time", "N13", "N14")
def test_one(): ...

@pytest.mark.spec("N14")
class TestGroup:
    @pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.spec("X01")), 2])
    async def test_two(self, x): ...

def helper(): ...
"""
    assert [(claim.test, claim.row, claim.clause) for claim in claims_in(module_of(source))] == [
        ("test_one", "A01", ""),
        ("test_one", "N12", "spent"),
        ("test_one", "N12", "on-time"),
        ("test_one", "N13", ""),
        ("test_one", "N14", ""),
        ("TestGroup::test_two", "A01", ""),
        ("TestGroup::test_two", "N14", ""),
        ("TestGroup::test_two", "X01", ""),
    ]


@pytest.mark.parametrize(
    ("decorators", "name"),
    [
        ("@pytest.mark.spec(ROW)", "test_a"),
        ("@pytest.mark.spec()", "test_a"),
        ("@pytest.mark.spec('spent', 'N12')", "test_a"),
        ("@pytest.mark.spec('N12', 'No Name')", "test_a"),
        ("@pytest.mark.spec('N12')", "helper"),
        ("@pytest.mark.skip\n@pytest.mark.spec('N12')", "test_a"),
        ("@pytest.mark.xfail(reason='x')\n@pytest.mark.spec('N12')", "test_a"),
    ],
)
def test_a_claim_that_shows_nothing_is_an_error(decorators, name):
    with pytest.raises(SpecError):
        list(claims_in(module_of(f"import pytest\n{decorators}\ndef {name}(): ...\n")))


def test_a_soak_test_is_not_in_every_run():
    source = "@pytest.mark.soak\n@pytest.mark.spec('N12')\ndef test_a(): ...\n"
    assert [claim.skipped_at for claim in claims_in(module_of(source))] == ["test_a.py:3"]


@pytest.mark.parametrize(
    ("body", "is_evidence"),
    [
        ("verify(make, given)", False),
        ("laws.verify(make, given, key=first)", False),
        ("verify(make, given, [1])", True),
        ("verify(make, given, then=[1])", True),
        ("assert verify(make, given) == [1]", True),
    ],
)
def test_a_verify_without_an_expectation_is_no_evidence(body, is_evidence):
    module = module_of(f"@pytest.mark.spec('N12')\ndef test_a():\n    {body}\n")
    if is_evidence:
        assert [claim.row for claim in claims_in(module)] == ["N12"]
    else:
        with pytest.raises(SpecError, match="without `then`"):
            list(claims_in(module))


MAY_SKIP = {
    "conftest.py": """
@pytest.fixture(autouse=True)
def quiet(): ...
@pytest.fixture
def server():
    started()
def started():
    pytest.skip("no server")
""",
    "part/conftest.py": "@pytest.fixture\ndef client(server): ...\n",
    "part/wheels.py": "def wheel():\n    return pytest.importorskip('wheel')\n",
    "part/test_a.py": """
from tests.part import wheels
from tests.part.wheels import wheel as the_wheel
needs_site = pytest.mark.skipif(True, reason="no site")
def test_plain(tmp_path): ...
def test_direct(): pytest.skip("never")
def test_client(client): ...
@pytest.mark.usefixtures("server")
def test_used(): ...
@needs_site
def test_site(): ...
def test_wheel(): assert [made() for made in (the_wheel,)]
def test_module(): wheels.wheel()
class TestGroup:
    def test_in_group(self): wheels.wheel()
    def test_beside(self): ...
""",
    "part/test_b.py": "pa = pytest.importorskip('pyarrow')\ndef test_plain(): ...\n",
    "other/conftest.py": "@pytest.fixture(autouse=True)\ndef ready(): pytest.skip('not ready')\n",
    "other/test_c.py": "def test_plain(): ...\n",
}


@pytest.mark.parametrize(
    ("path", "test", "where"),
    [
        ("part/test_a.py", "test_plain", ""),
        ("part/test_a.py", "test_direct", "part/test_a.py:6"),
        ("part/test_a.py", "test_client", "conftest.py:8"),
        ("part/test_a.py", "test_used", "conftest.py:8"),
        ("part/test_a.py", "test_site", "part/test_a.py:4"),
        ("part/test_a.py", "test_wheel", "part/wheels.py:2"),
        ("part/test_a.py", "test_module", "part/wheels.py:2"),
        ("part/test_a.py", "TestGroup::test_in_group", "part/wheels.py:2"),
        ("part/test_a.py", "TestGroup::test_beside", ""),
        ("part/test_b.py", "test_plain", "part/test_b.py:1"),
        ("other/test_c.py", "test_plain", "other/conftest.py:2"),
    ],
)
def test_what_may_be_skipped_is_found_through_fixtures_functions_and_imports(path, test, where):
    assert Skips(MAY_SKIP).where(path, test) == where
