"""Entries come out sorted whatever memory there was, and nothing stays behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common.managed_memory import Allowance, MemoryManager
from rayflink.operators import external_sort
from rayflink.operators.external_sort import ExternalSort


def sorted_by(sort: ExternalSort, batches: list[list[tuple[bytes, int, Any]]]) -> list[tuple[bytes, int, Any]]:
    for batch in batches:
        sort.add([key for key, _, _ in batch], [number for _, number, _ in batch], [value for _, _, value in batch])
    return [(key, number, value) for key, number, _, value in sort.sorted()]


entries = st.lists(st.lists(st.tuples(st.binary(max_size=2), st.integers(-2, 2), st.text(max_size=3)), max_size=9))


@pytest.mark.spec("T05")
@given(entries, st.sampled_from([None, 0, 500, 5_000]), st.integers(1, 5))
def test_entries_are_sorted_by_key_then_number_then_arrival(
    tmp_path_factory: pytest.TempPathFactory, batches: list[Any], budget: int | None, block: int
) -> None:
    folder = tmp_path_factory.mktemp("sort") / "runs"
    memory = None if budget is None else Allowance(MemoryManager(budget), "me", budget)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(external_sort, "BLOCK_ROWS", block)
        patched.setattr(external_sort, "MOST_RUNS", 2)
        sort = ExternalSort(memory, folder)
        found = sorted_by(sort, batches)
        everything = [entry for batch in batches for entry in batch]
        assert found == sorted(everything, key=lambda entry: entry[:2])
        sort.close()
    assert not folder.exists()
    assert memory is None or memory.used == 0


@pytest.mark.slow
@pytest.mark.spec("T05", "M06", "pool", "M07")
def test_ten_times_the_budget_is_sorted_on_disk_within_it(tmp_path: Path) -> None:
    budget = 2 << 20
    manager = MemoryManager(budget)
    sort = ExternalSort(Allowance(manager, "me", budget), tmp_path / "runs")
    everything = [(bytes([n % 251, n // 251 % 256]), n, f"{n:0400}") for n in range(40_000)]
    found = sorted_by(sort, [everything[at : at + 500] for at in range(0, 40_000, 500)])
    assert [entry[:2] for entry in found] == sorted(entry[:2] for entry in everything)
    assert sort.spilled_bytes > 7 * budget, "which is more in memory, with objects around it"
    assert manager.used <= budget
    sort.close()
    assert (manager.used, list(tmp_path.iterdir())) == (0, [])


def test_without_need_nothing_is_written(tmp_path: Path) -> None:
    sort = ExternalSort(Allowance(MemoryManager(8 << 20), "me", 8 << 20), tmp_path / "runs")
    assert sorted_by(sort, [[(b"b", 0, 1), (b"a", 0, 2)], [(b"a", -1, 3)]]) == [
        (b"a", -1, 3),
        (b"a", 0, 2),
        (b"b", 0, 1),
    ]
    assert (sort.spilled_bytes, (tmp_path / "runs").exists()) == (0, False)
    sort.close()


def test_a_sort_that_is_left_half_read_removes_its_files(tmp_path: Path) -> None:
    sort = ExternalSort(Allowance(MemoryManager(0), "me", 0), tmp_path / "runs")
    sort.add([b"k"] * 3_000, range(3_000), ["v"] * 3_000)
    sort.add([b"k"] * 3_000, range(3_000), ["v"] * 3_000)
    assert next(sort.sorted())[1] == 0
    sort.close()
    assert list(tmp_path.iterdir()) == []


def test_objects_of_classes_without_a_name_are_written_too(tmp_path: Path) -> None:
    class Local:
        def __init__(self, n: int) -> None:
            self.n = n

    sort = ExternalSort(Allowance(MemoryManager(0), "me", 0), tmp_path / "runs")
    sort.add([b"k"] * 2_000, range(2_000, 0, -1), [Local(n) for n in range(2_000, 0, -1)])
    assert [entry[3].n for entry in sort.sorted()] == list(range(1, 2_001))
    sort.close()
