"""docs/flink-semantics.md claims what the tests show, neither more nor less."""

from __future__ import annotations

import pytest

from tests.spec_table import (
    NOT_APPLICABLE,
    TABLE,
    Claim,
    SpecError,
    claims_in,
    differences,
    expected_table,
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


def small_status(rows: str, row: str) -> list[str]:
    return table_rows(rows)[row][-2:]


def test_the_table_says_what_the_tests_claim():
    stale = differences(TABLE.read_text(encoding="utf-8"), expected_table())
    assert not stale, "run `python -m tests.spec_table --write`:\n" + "\n".join(stale)


def test_the_table_is_written_as_the_script_writes_it():
    assert TABLE.read_text(encoding="utf-8") == expected_table(), "run `python -m tests.spec_table --write`"


def test_the_table_holds_every_row():
    areas = dict.fromkeys(row[0] for row in table_rows(TABLE.read_text(encoding="utf-8")))
    counts = {area: sum(row[0] == area for row in table_rows(TABLE.read_text(encoding="utf-8"))) for area in areas}
    wanted = [14, 20, 36, 13, 36, 39, 37, 81, 40, 22, 14, 22, 21, 40, 38, 4, 29, 17, 17, 6, 10, 30, 67]
    assert counts == dict(zip("ABCDEFGHIJKLMNOPQRSTUVX", wanted, strict=True))


def test_few_rows_do_not_apply():
    reasons = read_not_applicable(NOT_APPLICABLE.read_text(encoding="utf-8"))
    assert len(reasons) <= MOST_NOT_APPLICABLE


def test_a_claimed_row_is_met_and_names_its_tests():
    claims = [Claim("N12", "exchange/test_credits.py", "test_b"), Claim("N12", "test_a.py", "TestX::test_c")]
    assert small_status(render(SMALL, claims, {}), "N12") == [
        "met",
        "`exchange/test_credits.py::test_b`, `test_a.py::TestX::test_c`",
    ]


def test_rows_without_claims_are_planned_untestable_or_not_applicable():
    rendered = render(SMALL, [], {"N14": "no heap here"})
    assert [small_status(rendered, row)[0] for row in ("N12", "N13", "N14")] == [
        "planned: exchange",
        "figure",
        "n/a: no heap here",
    ]


def test_rendering_twice_changes_nothing():
    once = render(SMALL, [Claim("N13", "test_a.py", "test_b")], {})
    assert render(once, [Claim("N13", "test_a.py", "test_b")], {}) == once


def test_a_dropped_claim_makes_the_table_stale():
    claimed = render(SMALL, [Claim("N12", "test_a.py", "test_gone")], {})
    assert [line.split(":")[0] for line in differences(claimed, render(claimed, [], {}))] == ["N12"]


def test_a_marker_for_an_unknown_row_is_an_error_that_names_the_test():
    with pytest.raises(SpecError, match=r"no such row: N99.*test_a\.py::test_b"):
        render(SMALL, [Claim("N99", "test_a.py", "test_b")], {})


def test_a_row_cannot_be_met_and_not_applicable():
    with pytest.raises(SpecError, match="N12 cannot be met and not applicable"):
        render(SMALL, [Claim("N12", "test_a.py", "test_b")], {"N12": "reason"})


def test_a_row_that_does_not_apply_needs_a_reason():
    with pytest.raises(SpecError, match="N12"):
        read_not_applicable("| N12 | |\n")


def test_claims_are_read_from_functions_classes_modules_and_parameters():
    source = """
import pytest
pytestmark = [pytest.mark.slow, pytest.mark.spec("A01")]

@pytest.mark.spec("N12", "N13")
def test_one(): ...

@pytest.mark.spec("N14")
class TestGroup:
    @pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.spec("X01")), 2])
    async def test_two(self, x): ...

def helper(): ...
"""
    assert [(claim.test, claim.row) for claim in claims_in(source, "test_a.py")] == [
        ("test_one", "A01"),
        ("test_one", "N12"),
        ("test_one", "N13"),
        ("TestGroup::test_two", "A01"),
        ("TestGroup::test_two", "N14"),
        ("TestGroup::test_two", "X01"),
    ]


@pytest.mark.parametrize(
    ("decorators", "name"),
    [
        ("@pytest.mark.spec(ROW)", "test_a"),
        ("@pytest.mark.spec()", "test_a"),
        ("@pytest.mark.spec('N12')", "helper"),
        ("@pytest.mark.skip\n@pytest.mark.spec('N12')", "test_a"),
        ("@pytest.mark.xfail(reason='x')\n@pytest.mark.spec('N12')", "test_a"),
    ],
)
def test_a_claim_that_shows_nothing_is_an_error(decorators, name):
    with pytest.raises(SpecError):
        list(claims_in(f"import pytest\n{decorators}\ndef {name}(): ...\n", "test_a.py"))
