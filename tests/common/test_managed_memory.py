"""The budget of managed memory: never exceeded, never lost, whoever asks at the same time."""

from __future__ import annotations

import random
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common.managed_memory import Allowance, MemoryManager

OWNERS = ("sort", "join", "partition")
requests = st.lists(st.tuples(st.sampled_from(OWNERS), st.sampled_from(("take", "give", "all")), st.integers(0, 60)))


@pytest.mark.spec("L19", "memory", "M06", "pool", "returned")
@given(st.integers(0, 100), requests)
def test_owners_have_together_what_was_granted_and_never_more_than_there_is(
    total: int, story: list[tuple[str, str, int]]
) -> None:
    memory, has = MemoryManager(total), dict.fromkeys(OWNERS, 0)
    for owner, what, size in story:
        if what == "take":
            fits = sum(has.values()) + size <= total
            assert memory.reserve(owner, size) is fits
            has[owner] += size if fits else 0
        elif what == "all":
            assert memory.release_all(owner) == has[owner]
            has[owner] = 0
        elif size <= has[owner]:
            memory.release(owner, size)
            has[owner] -= size
        else:
            with pytest.raises(
                ValueError, match=f"{owner} gives back {size} bytes of managed memory, it has {has[owner]}"
            ):
                memory.release(owner, size)
        assert {owner: memory.reserved(owner) for owner in OWNERS} == has
        assert (memory.used, memory.available) == (sum(has.values()), total - sum(has.values()))


@pytest.mark.spec("L19", "memory")
def test_threads_that_contend_neither_exceed_nor_lose_anything() -> None:
    memory, rounds, wrong = MemoryManager(1_000), 3_000, []
    started = threading.Barrier(4)

    def contend(owner: str) -> None:
        draw, has = random.Random(owner), 0
        started.wait()
        for _ in range(rounds):
            size = draw.randint(0, 400)
            if memory.reserve(owner, size):
                has += size
            if memory.reserved(owner) != has or has > 1_000:
                wrong.append((owner, has))
            if draw.random() < 0.6:
                part = draw.randint(0, has)
                memory.release(owner, part)
                has -= part
        if memory.release_all(owner) != has:
            wrong.append((owner, has))

    threads = [threading.Thread(target=contend, args=(f"task {i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert (memory.used, memory.available) == (0, 1_000)


@pytest.mark.spec("M06", "pool")
def test_a_budget_of_nothing_grants_nothing_and_a_negative_one_is_refused() -> None:
    memory = MemoryManager(0)
    assert not memory.reserve("sort", 1)
    assert memory.reserve("sort", 0)
    with pytest.raises(ValueError, match="at least 0 bytes is wanted, found -1"):
        MemoryManager(-1)


def test_an_allowance_bounds_one_user_and_parts_of_it_share_an_account() -> None:
    memory = MemoryManager(100)
    one, two = Allowance(memory, "task", 121).divided(2)
    assert (one.available, two.available) == (60, 60)
    assert (one.reserve(61), one.reserve(60), two.reserve(60), two.reserve(40)) == (False, True, False, True)
    assert (memory.reserved("task"), one.used, two.used) == (100, 60, 40)
    assert (one.available, two.available) == (0, 0), "the one has all it may have, for the other nothing is left"
    one.release(10)
    two.release_all()
    assert (memory.reserved("task"), one.used, two.used) == (50, 50, 0)
