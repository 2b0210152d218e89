"""The simulated disk obeys the laws of checkpoint storages, and injects faults on request."""

from __future__ import annotations

import pytest

from rayflink.state.storage.storage import StorageError
from rayflink.testing import STORAGE_LAWS, Operation, Outcome, SimulatedDisk, check_storage


@pytest.mark.parametrize("law", STORAGE_LAWS, ids=lambda law: law.__name__)
def test_the_laws_hold(law):
    check_storage(lambda: SimulatedDisk().storage("/checkpoints"), [law])


def test_single_operations_are_disturbed():
    disk = SimulatedDisk()
    outcomes = {"/a/refused": Outcome.REFUSED, "/a/unheard": Outcome.UNHEARD, "/a/pretended": Outcome.PRETENDED}
    seen: list[Operation] = []

    def outcome(operation: Operation) -> Outcome:
        seen.append(operation)
        return outcomes.get(operation.path, Outcome.DONE)

    disk.outcome = outcome
    storage = disk.storage("/a")
    with pytest.raises(StorageError, match="no space left"):
        storage.put_if_absent("refused", b"1")
    with pytest.raises(StorageError, match="lost the answer"):
        storage.put_if_absent("unheard", b"1")
    assert storage.put_if_absent("pretended", b"1")
    assert disk.files == {"/a/unheard": b"1"}
    assert [operation.action for operation in seen] == ["write"] * 3
