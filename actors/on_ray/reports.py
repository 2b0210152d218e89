"""Packs the reports of tasks: an unreadable value of the user fails its task, and all other reports arrive.

Each report is packed alone and each accumulator beside it, so that the coordinator learns whose value it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rayflink.common.errors import NotSerializable, described
from rayflink.common.user_code.value_bytes import from_bytes, to_bytes

from ..exchange.frames import TaskAddress
from ..messages.messages import TaskFailure, TaskReport, TaskStateChanged, ToCoordinator
from ..messages.states import ExecutionState

_Packed = tuple[TaskAddress, bytes, dict[str, bytes]]
"""The attempt, its report, and name -> accumulator of one that has finished."""


def pack_reports(reports: Sequence[ToCoordinator]) -> bytes:
    """Pack reports as bytes; one with an accumulator that cannot be sent becomes a failure that names it."""
    return to_bytes([_pack(report) for report in reports])


def read_reports(data: bytes) -> Iterator[ToCoordinator]:
    """Read the reports that `pack_reports` packed; one that cannot be read becomes the failure of its attempt."""
    packed: list[_Packed] = from_bytes(data)
    for attempt, body, accumulators in packed:
        yield _read(attempt, body, accumulators)


def _pack(report: ToCoordinator) -> _Packed:
    accumulators: dict[str, bytes] = {}
    if isinstance(report, TaskStateChanged):
        finished = report.state is ExecutionState.FINISHED
        for name, accumulator in report.accumulators.items() if finished else ():
            try:
                accumulators[name] = to_bytes(accumulator)
            except NotSerializable as error:
                return _pack(_failed(report.attempt, f"accumulator {name!r} cannot be sent", error.cause))
        report = replace(report, accumulators={})
    try:
        return report.attempt, to_bytes(report), accumulators
    except NotSerializable as error:
        return _pack(_failed(report.attempt, f"{_described(report)} cannot be sent", error.cause))


def _read(attempt: TaskAddress, body: bytes, accumulators: dict[str, bytes]) -> ToCoordinator:
    what = "a report"
    try:
        report: ToCoordinator = from_bytes(body)
        if not isinstance(report, TaskStateChanged):
            return report
        values = {}
        for name, data in accumulators.items():
            what = f"accumulator {name!r}"
            values[name] = from_bytes(data)
        return replace(report, accumulators=values)
    except Exception as error:  # a user's class may raise anything while it is unpickled
        return _failed(attempt, f"{what} cannot be read by the coordinator", described(error))


def _failed(attempt: TaskAddress, problem: str, cause: str) -> TaskStateChanged:
    remedy = "its values must come through pickle.loads(pickle.dumps(value)): give their class __reduce__"
    failure = TaskFailure(NotSerializable.__name__, f"{problem}: {cause}; {remedy}", "")
    return TaskStateChanged(attempt, ExecutionState.FAILED, failure)


def _described(report: ToCoordinator) -> str:
    return "a metric" if isinstance(report, TaskReport) else f"a {type(report).__name__}"
