"""One case, every hardship: however the input is cut, whenever a snapshot is restored, the output is the same.

Source: hazelcast/hazelcast TestSupport (snapshots and restores after each step, an outbox that is full in between).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from rayflink.actors.local.in_process import InProcessCluster
from rayflink.common.records.batches import rows_of
from rayflink.state.clock import ManualClock
from rayflink.state.keys import key_hash
from rayflink.state.keys.key_groups import key_group, key_group_range

from .case_jobs import CaseJob
from .cases import TO_ALL, Case, Step, batches_of_one, describe_step, feed, is_batch, length, randomly_split
from .differences import assert_same, assert_same_in_parallel
from .elements import CaseElement, OutputElement
from .faults import UNRELIABLE_NETWORK, TriggerCheckpoint
from .harness import OperatorFactory, OperatorHarness, Place, rescaled_snapshots
from .simulation import simulate

__tracebackhide__ = True  # pytest shows the line of the test instead

SUBTASKS = 3
RANDOM_SPLITS = 3


def verify(
    factory: OperatorFactory,
    elements: Sequence[CaseElement],
    then: Sequence[OutputElement] | None = None,
    key: Any = None,
    without: Sequence[str] = (),
) -> None:
    """Check one case of an operator under every hardship.

    The hardships: "in one batch", "one record a batch", "random splits", "a snapshot after each step", "restored after
    each step", "restored after each record", "outputs with room for one", for operators with partitioned records
    "three subtasks", "three subtasks become two", "with state in plain memory" and "with hardly any memory for state",
    and the case as a whole job: "as a job in this process" and "as a simulated job".

    >>> from rayflink.operators.stateless import FilterOperator
    >>> from rayflink.testing import rec, wm
    >>> verify(lambda: FilterOperator(lambda n: n > 1), elements=[rec(1, 3), rec(2, 4), wm(4)], then=[rec(2, 4), wm(4)])

    Args:
        factory: makes a fresh operator, or a list of operators that run as one chain.
        elements: what the operator gets. The records between two other elements arrive in batches of any size.
        then: what comes out, in the order of emission, over all keys. The main output and each side output are compared
            by themselves, each with the watermarks and statuses between its records. None: only that all hardships
            agree.
        key: partitions the records: the key of one, or a pair of functions for two inputs, where TO_ALL stands
            for a broadcast input; None asks a keyed operator for its own. Results of a broadcast record itself come
            from each subtask, and so differ in number between hardships.
        without: hardships that do not apply.
    Raises:
        AssertionError: the output is another one; names the hardship and shows the difference.
        ValueError: `without` names no hardship.
    """
    unknown = set(without) - set(HARDSHIPS)
    if unknown:
        raise ValueError(f"found {sorted(unknown)} in without; the hardships are {', '.join(HARDSHIPS)}")
    case = Case(factory, elements, key)
    expected = list(then) if then is not None else case.run(batches_of_one(case.steps()))
    for name, hardship in HARDSHIPS.items():
        if name not in without:
            hardship(case, expected, name)


# the hardships, each a check of its own


def _in_one_batch(case: Case, expected: list[OutputElement], name: str) -> None:
    assert_same(case.run(case.steps()), expected, name)


def _one_record_a_batch(case: Case, expected: list[OutputElement], name: str) -> None:
    assert_same(case.run(batches_of_one(case.steps())), expected, name)


def _random_splits(case: Case, expected: list[OutputElement], name: str) -> None:
    for seed in range(RANDOM_SPLITS):
        steps = randomly_split(case.steps(), seed)
        sizes = [length(element) for _, element in steps if is_batch(element)]
        assert_same(case.run(steps), expected, f"{name} (batches of {sizes})")


def _snapshots(case: Case, expected: list[OutputElement], name: str) -> None:
    with case.start() as harness:
        for step in case.steps():
            feed(harness, step)
            harness.snapshot()
        assert_same(harness.take(), expected, name)


def _restored(split: Callable[[list[Step]], list[Step]]) -> Callable[[Case, list[OutputElement], str], None]:
    def check(case: Case, expected: list[OutputElement], name: str) -> None:
        out: list[OutputElement] = []
        harness = case.start()
        try:
            for step in split(case.steps()):
                feed(harness, step)
                snapshot = harness.snapshot()
                out += harness.take()
                harness = harness.restore(case.factory, snapshot)
            out += harness.take()
        finally:
            harness.close()
        assert_same(out, expected, name)

    return check


def _room_for_one(case: Case, expected: list[OutputElement], name: str) -> None:
    assert_same(case.run(case.steps(), narrow=True), expected, name)


def _three_subtasks(case: Case, expected: list[OutputElement], name: str) -> None:
    _in_parallel(case, name, shrink_to=None)


def _three_become_two(case: Case, expected: list[OutputElement], name: str) -> None:
    _in_parallel(case, name, shrink_to=2)


def _in_parallel(case: Case, name: str, shrink_to: int | None) -> None:
    """Check step by step that the records equal those of one subtask, and that each subtask emits the same events."""
    if case.keys is None:
        return
    steps, alone = batches_of_one(case.steps()), case.start()
    subtasks = [case.start(Place(i, SUBTASKS)) for i in range(SUBTASKS)]
    try:
        for number, (step, same_step) in enumerate(zip(steps, batches_of_one(case.steps()), strict=True)):
            if shrink_to is not None and number == len(steps) // 2:
                subtasks = _rescaled(case, subtasks, shrink_to)
            feed(alone, step)
            for subtask in _receivers(case, same_step, subtasks):
                feed(subtask, same_step)
            parts = [subtask.take() for subtask in subtasks]
            assert_same_in_parallel(alone.take(), parts, f"{name} (after {describe_step(step)})", length(step[1]) > 0)
    finally:
        for harness in (alone, *subtasks):
            harness.close()


def _rescaled(case: Case, subtasks: list[OperatorHarness], parallelism: int) -> list[OperatorHarness]:
    """Return fresh subtasks to which the state of the old ones is distributed."""
    snapshots = rescaled_snapshots([subtask.snapshot() for subtask in subtasks], parallelism)
    for subtask in subtasks:
        subtask.close()
    fresh = []
    for index, snapshot in enumerate(snapshots):
        successor = case.start(Place(index, parallelism), (snapshot,))
        successor.adopt_position(subtasks[0])
        fresh.append(successor)
    return fresh


def _receivers(case: Case, step: Step, subtasks: list[OperatorHarness]) -> Iterator[OperatorHarness]:
    index, element = step
    if not is_batch(element):
        yield from subtasks
        return
    assert case.keys is not None
    if case.keys[index] is TO_ALL:
        yield from subtasks
        return
    widest = subtasks[0].place.max_parallelism
    group = key_group(key_hash(case.keys[index](rows_of(element)[0])), widest)
    for subtask in subtasks:
        if group in key_group_range(subtask.place.subtask, len(subtasks), widest):
            yield subtask


def _as_a_job(case: Case, expected: list[OutputElement], name: str) -> None:
    for parallelism in case.parallelisms:
        job, clock = CaseJob(case, parallelism), ManualClock(1_000_000)
        result = InProcessCluster(job.job_graph(), clock, partial(_advance, clock)).run()
        job.check(result, f"{name}, {parallelism} subtasks")


def _advance(clock: ManualClock, ms: int) -> None:
    clock.advance(max(1, ms))


def _as_a_simulated_job(case: Case, expected: list[OutputElement], name: str) -> None:
    for seed, parallelism in enumerate(case.parallelisms):
        job = CaseJob(case, parallelism)
        story = simulate(job.job_graph(), seed, [*UNRELIABLE_NETWORK, TriggerCheckpoint(1, move=10)])
        assert story.result is not None
        try:
            job.check(story.result, f"{name}, {parallelism} subtasks")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{story.describe('the run')}") from error


def _other_state(option: str, value: str) -> Callable[[Case, list[OutputElement], str], None]:
    def check(case: Case, expected: list[OutputElement], name: str) -> None:
        if case.keys is None:
            return
        for steps in (case.steps(), batches_of_one(case.steps())):
            assert_same(case.run(steps, place=Place(config={option: value})), expected, name)

    return check


HARDSHIPS: dict[str, Callable[[Case, list[OutputElement], str], None]] = {
    "in one batch": _in_one_batch,
    "one record a batch": _one_record_a_batch,
    "random splits": _random_splits,
    "a snapshot after each step": _snapshots,
    "restored after each step": _restored(lambda steps: steps),
    "restored after each record": _restored(batches_of_one),
    "outputs with room for one": _room_for_one,
    "three subtasks": _three_subtasks,
    "three subtasks become two": _three_become_two,
    "with state in plain memory": _other_state("state.backend.type", "hashmap"),
    "with hardly any memory for state": _other_state("state.backend.rocksdb.memory.fixed-per-slot", "1 b"),
    "as a job in this process": _as_a_job,
    "as a simulated job": _as_a_simulated_job,
}
"""Name -> check; each runs the case in another way and raises AssertionError when the output differs."""
