"""Every queue, pool, writer, endpoint, buffer and cache says how much it has, in values documented field by field."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
import typing
from typing import Any

import pytest

from rayflink.operators.stateless import MapOperator
from tests.actors.task.task_bench import TaskBench
from tests.source_files import source_files

QUEUES = re.compile(r"^class (\w*Queue|CachedRows)\b(.*):$", re.M)
"""Queues and caches of operators and connectors."""
COUNTED = re.compile(
    r"^class (\w*(?:Queue|Pool|Writer|Endpoint|Gate|Buffer|OpenBatch|Cache|Budget|ResultPartition|Subpartition"
    r"|InputChannel|ChannelCredit|Outgoing|Incoming|KeyChannels|StorageWork|Terminal))\b(.*):$",
    re.M,
)
VALUES_AND_SHELLS = {
    "Buffer": "a value",
    "HistoryWriter": "one value waits, and a newer one takes its place",
    "MarkerWriter": "the face of a writer to an operator",
    "SnapshotFileWriter": "it writes through, and keeps a block of one file",
    "TimerQueue": "state of the user, counted by its backend",
    "RocksDBTimerQueue": "state of the user, counted by its backend",
}


def counted() -> list[type]:
    """Return the classes that hold something back: those of actors/ and state/, and queues of all other parts."""
    found = [
        getattr(importlib.import_module(file.module), name)
        for file in source_files(("rayflink",))
        for name, bases in QUEUES.findall(file.text())
        if "Protocol" not in bases
    ]
    for file in source_files(("actors", "state")):
        for name, bases in COUNTED.findall(file.text()):
            if name not in VALUES_AND_SHELLS and "Protocol" not in bases:
                found.append(getattr(importlib.import_module(file.module), name))
    return found


def statistics_of(kind: Any) -> Any:
    return typing.get_type_hints(kind.statistics)["return"]


def documented(kind: type) -> set[str]:
    """Return the fields of a dataclass that a string stands below."""
    tree = ast.parse(inspect.getsource(kind))
    body = tree.body[0].body  # type: ignore[attr-defined]
    return {
        field.target.id
        for field, below in zip(body, body[1:], strict=False)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
    }


@pytest.mark.slow  # imports all modules of actors/, and Ray with them
def test_all_that_holds_something_back_counts_it():
    kinds = counted()
    assert len(kinds) >= 24, "the pattern finds the classes"
    assert [kind.__name__ for kind in kinds if not hasattr(kind, "statistics")] == []
    for kind in kinds:
        found = statistics_of(kind)
        assert dataclasses.is_dataclass(found) and found.__dataclass_params__.frozen, kind
        assert documented(found) == {field.name for field in dataclasses.fields(found)}, found


def test_the_exceptions_are_there():
    text = "\n".join(file.text() for file in source_files(("actors", "state")))
    assert set(VALUES_AND_SHELLS) <= set(re.findall(r"^class (\w+)", text, re.M))


def test_a_task_counts_its_mail_its_input_and_its_output():
    bench = TaskBench([MapOperator(lambda n: n)]).start()
    bench.feed(0, 1, 2, 3)
    bench.work()
    found = bench.task.statistics()
    (channel,), (writer,) = found.gate.channels, found.writers
    assert (found.mails, found.buffer.rows, channel.queued, channel.credit.taken) == (0, 0, 0, 0)
    assert (channel.state, channel.is_blocked, channel.buffers_received) == ("REQUESTED", False, 3)
    assert writer.rows_written == 3
    sent = sum(sub.backlog + sub.buffers_sent for sub in writer.partition.subpartitions)
    assert sent or writer.pending_rows == 3
    assert all(link.early == 0 for link in found.endpoint.incoming.values())
