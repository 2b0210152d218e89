"""Two and three coordinators of one job over one storage, in every order of their reads, writes and deletions."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.state.errors import DamagedFileError, StateError, VersionMismatch
from rayflink.state.storage.ledger import (
    NUMBERS,
    Counted,
    Fenced,
    Ledger,
    LedgerEnded,
    LedgerGone,
    decode_entry,
    newest_entry,
)
from rayflink.state.storage.memory_storage import MemoryStorage
from rayflink.state.storage.storage import MissingFileError, StorageError

A, B, C = "a" * 32, "b" * 32, "c" * 32


def test_a_checkpoint_counts_once_it_is_recorded():
    storage = MemoryStorage()
    first = Ledger.claim(storage, A, retained=1)
    assert (first.epoch, first.checkpoints, first.next_number) == (1, (), 1)
    first.record(1, "chk-1")
    first.record(3, "chk-3")
    second = Ledger.claim(storage, B, retained=1)
    assert second.epoch == 2
    assert second.checkpoints == (Counted(1, "chk-1"), Counted(3, "chk-3"))  # the older one may be deleted by now
    assert second.next_number == 4 + NUMBERS


def test_a_checkpoint_that_a_newer_one_was_faster_than_does_not_take_its_place():
    storage = MemoryStorage()
    first = Ledger.claim(storage, A, retained=1)
    first.record(4, "chk-4")
    first.record(3, "chk-3")
    second = Ledger.claim(storage, B, retained=1)
    assert second.checkpoints[-1] == Counted(4, "chk-4")
    assert second.next_number == 5 + NUMBERS


def test_only_the_newest_entry_is_left():
    storage = MemoryStorage()
    ledger = Ledger.claim(storage, A, retained=3)
    for number in range(1, 9):
        ledger.record(number, f"chk-{number}")
    assert storage.list() == ["ledger/000000009"]
    assert [one.checkpoint_id for one in ledger.checkpoints] == [5, 6, 7, 8]


def test_whoever_led_before_can_record_nothing():
    storage = MemoryStorage()
    first = Ledger.claim(storage, A, retained=1)
    second = Ledger.claim(storage, B, retained=1)
    with pytest.raises(Fenced, match=r"\(epoch 1\) leads the job .* no more: epoch 2 has begun"):
        first.record(1, "chk-1")
    with pytest.raises(Fenced):
        first.check()
    second.check()
    assert second.checkpoints == ()


def test_who_slept_until_its_next_position_was_free_again_is_fenced():
    storage = MemoryStorage()
    first = Ledger.claim(storage, A, retained=1)
    second = Ledger.claim(storage, B, retained=1)
    second.record(101, "chk-101")
    second.record(102, "chk-102")
    assert storage.list() == ["ledger/000000004"]
    with pytest.raises(Fenced, match="entry 4 of its ledger is not its own"):
        first.record(1, "chk-1")
    assert Ledger.claim(storage, C, retained=1).checkpoints == (Counted(101, "chk-101"), Counted(102, "chk-102"))


def test_who_slept_until_the_whole_job_was_gone_is_fenced():
    storage = MemoryStorage()
    first = Ledger.claim(storage, A, retained=1)
    second = Ledger.claim(storage, B, retained=1)
    second.end()
    second.forget()
    assert storage.list() == []
    with pytest.raises(LedgerGone, match="its entry 1 of the ledger was deleted, and not by this coordinator"):
        first.record(1, "chk-1")


def test_nobody_leads_a_job_that_has_ended():
    storage = MemoryStorage()
    Ledger.claim(storage, A, retained=1).end()
    with pytest.raises(LedgerEnded, match="has ended, and they are deleted: submit it as a new job"):
        Ledger.claim(storage, B, retained=1)


def test_numbers_of_checkpoints_belong_to_one_leader():
    storage = MemoryStorage()
    first = Ledger.claim(storage, A, retained=1)
    assert first.owns(NUMBERS) and not first.owns(NUMBERS + 1)
    first.reserve(NUMBERS + 1)
    assert first.owns(2 * NUMBERS)
    assert Ledger.claim(storage, B, retained=1).next_number == 2 * NUMBERS + 1
    with pytest.raises(Fenced):
        first.reserve(2 * NUMBERS + 1)


def test_a_damaged_or_newer_entry_is_not_guessed_at():
    storage = MemoryStorage()
    Ledger.claim(storage, A, retained=1)
    whole = storage.read("ledger/000000001")
    with pytest.raises(DamagedFileError, match="its last bytes"):
        decode_entry(whole.replace(b"leader", b"lexder", 1), "x")
    found = newest_entry(storage)
    assert found is not None
    other = replace(found[1]).encoded().replace(b'"version": 1', b'"version": 2')
    text = other.partition(b"\n")[0]
    with pytest.raises(VersionMismatch, match="ledger v2"):
        decode_entry(text + f"\n{zlib.crc32(text):08x}\n".encode(), "x")


# every order


class _Pause(BaseException):
    """Raised where the coordinator waits for its next turn."""


@dataclass(frozen=True)
class World:
    """The whole state between two steps.

    Args:
        files: of the storage.
        done: for each coordinator the results of the operations it has seen.
        under_way: writes whose answer was lost, and which may still arrive.
        faults: how many answers may still be lost.
    """

    files: tuple[tuple[str, bytes], ...]
    done: tuple[tuple[Any, ...], ...]
    under_way: tuple[tuple[str, bytes], ...] = ()
    faults: int = 0


@dataclass
class Scripted:
    """A storage that repeats to a coordinator what it has seen, lets it do one thing more, and then pauses it."""

    url = "memory:"
    seen: tuple[Any, ...]
    at: int = 0
    wanted: tuple[str, tuple[Any, ...]] | None = None

    def _next(self, what: str, *given: Any) -> Any:
        if self.at == len(self.seen):
            self.wanted = (what, given)
            raise _Pause
        result = self.seen[self.at]
        self.at += 1
        if isinstance(result, StateError):
            raise result
        return result

    def put_if_absent(self, path: str, data: bytes) -> bool:
        return bool(self._next("put", path, data))

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        return bytes(self._next("read", path))

    def list(self, folder: str = "") -> list[str]:
        return list(self._next("list", folder))

    def delete(self, path: str) -> None:
        self._next("delete", path)


@dataclass
class Said:
    """The actions of one coordinator so far.

    Args:
        claimed: epoch, the checkpoints it begins from and its first number; None before.
        begun: numbers it has tried to record.
        recorded: those of which it was told that they count.
        fenced: whether it knows that it leads no more.
    """

    claimed: tuple[int, frozenset[int], int] | None = None
    begun: list[int] = field(default_factory=list)
    recorded: list[int] = field(default_factory=list)
    fenced: bool = False


Script = Callable[[Any, Said], None]


def coordinator(leader: str, checkpoints: int) -> Script:
    """Claim, and take that many checkpoints; give up when fenced, go on when in doubt."""

    def run(storage: Any, said: Said) -> None:
        try:
            ledger = Ledger.claim(storage, leader, retained=9)
        except Fenced:
            said.fenced = True
            return
        except StorageError:
            return
        said.claimed = (ledger.epoch, frozenset(one.checkpoint_id for one in ledger.checkpoints), ledger.next_number)
        for number in range(ledger.next_number, ledger.next_number + checkpoints):
            said.begun.append(number)
            try:
                ledger.record(number, f"chk-{number}")
                said.recorded.append(number)
            except Fenced:
                said.fenced = True
                return
            except StorageError:
                continue  # it is in doubt

    return run


def replayed(script: Script, seen: tuple[Any, ...]) -> tuple[Said, tuple[str, tuple[Any, ...]] | None]:
    """Return what a coordinator has done after what it has seen, and its next operation; None when it is through."""
    storage, said = Scripted(seen), Said()
    try:
        script(storage, said)
    except _Pause:
        return said, storage.wanted
    return said, None


def results(world: World, what: str, given: tuple[Any, ...]) -> Iterator[tuple[World, Any]]:
    """Return all possible results of an operation."""
    files = dict(world.files)
    if what == "list":
        yield world, tuple(sorted(path for path in files if path.startswith(f"{given[0]}/")))
    elif what == "read":
        (path,) = given
        yield world, files[path] if path in files else MissingFileError("read", "memory:", path)
    elif what == "delete":
        files.pop(given[0], None)
        yield replace(world, files=tuple(sorted(files.items()))), None
    else:
        path, data = given
        after = replace(world, files=tuple(sorted({path: data, **files}.items())))
        yield after, path not in files
        if world.faults:
            lost = StorageError("write", "memory:", "the answer was lost")
            yield replace(after, faults=world.faults - 1), lost
            yield replace(world, faults=world.faults - 1, under_way=(*world.under_way, (path, data))), lost


def arrivals(world: World) -> Iterator[World]:
    """Yield the worlds in which a write whose sender has given it up arrives, or never does."""
    for place, (path, data) in enumerate(world.under_way):
        left = world.under_way[:place] + world.under_way[place + 1 :]
        yield replace(world, files=tuple(sorted({path: data, **dict(world.files)}.items())), under_way=left)


def check(said: list[Said]) -> None:
    """Check what must be true at any moment."""
    claimed = [one.claimed for one in said if one.claimed is not None]
    assert len({epoch for epoch, _, _ in claimed}) == len(claimed), said
    for later in said:
        for earlier in said:
            if later.claimed is None or earlier.claimed is None or later.claimed[0] <= earlier.claimed[0]:
                continue
            assert set(earlier.recorded) <= later.claimed[1], f"{later} has lost what {earlier} told of"
            its_own = {one for one in later.claimed[1] if 0 <= one - earlier.claimed[2] < NUMBERS}
            assert its_own <= set(earlier.begun), f"{later} begins from what {earlier} never wrote"
            assert later.claimed[2] >= earlier.claimed[2] + NUMBERS


def explore(scripts: list[Script], faults: int, begin: World | None = None) -> int:
    """Explore all orders; return the number of states."""
    start = begin or World((), tuple(() for _ in scripts), (), faults)
    known, to_do = {_key(start)}, [start]
    while to_do:
        world = to_do.pop()
        told = [replayed(script, seen) for script, seen in zip(scripts, world.done, strict=True)]
        check([said for said, _ in told])
        following = list(arrivals(world))
        for index, (_, wanted) in enumerate(told):
            if wanted is not None:
                for after, result in results(world, *wanted):
                    done = list(after.done)
                    done[index] = (*done[index], result)
                    following.append(replace(after, done=tuple(done)))
        for after in following:
            if (key := _key(after)) not in known:
                known.add(key)
                to_do.append(after)
    return len(known)


def _key(world: World) -> Any:
    seen = tuple(tuple(str(one) if isinstance(one, StateError) else one for one in each) for each in world.done)
    return world.files, seen, world.under_way, world.faults


@pytest.mark.slow
def test_two_coordinators_in_every_order_lose_nothing():
    assert explore([coordinator(A, 2), coordinator(B, 1)], faults=0) > 1_000


@pytest.mark.slow
def test_two_coordinators_in_every_order_with_a_lost_answer_lose_nothing():
    assert explore([coordinator(A, 2), coordinator(B, 1)], faults=1) > 5_000


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.data())
def test_three_coordinators_in_random_orders_with_lost_answers_lose_nothing(data: st.DataObject):
    scripts = [coordinator(A, 3), coordinator(B, 3), coordinator(C, 2)]
    world = World((), ((), (), ()), (), data.draw(st.integers(0, 3)))
    while True:
        told = [replayed(script, seen) for script, seen in zip(scripts, world.done, strict=True)]
        check([said for said, _ in told])
        following = list(arrivals(world))
        for index, (_, wanted) in enumerate(told):
            if wanted is not None:
                for after, result in results(world, *wanted):
                    done = list(after.done)
                    done[index] = (*done[index], result)
                    following.append(replace(after, done=tuple(done)))
        if all(wanted is None for _, wanted in told):
            return
        world = following[data.draw(st.integers(0, len(following) - 1))]


@pytest.mark.slow
def test_the_search_finds_a_ledger_that_does_not_look_after_it_wrote(monkeypatch: pytest.MonkeyPatch):
    def only_delete(self: Ledger, before: int) -> None:
        for path in self._storage.list("ledger"):
            if path < f"ledger/{self._position:09d}":
                self._storage.delete(path)

    monkeypatch.setattr(Ledger, "_look", only_delete)
    with pytest.raises(AssertionError, match="has lost what"):
        explore([coordinator(A, 2), coordinator(B, 2)], faults=0)
