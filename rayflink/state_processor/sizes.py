"""The states of a savepoint with their sizes, which its manifest notes: none of them is read for that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rayflink.state.storage.state_report import describe_state

from .savepoint import OperatorState, Savepoint

TABLE = "table"
"""The kind of the tables of SQL operators."""


def stored_states(savepoint: Savepoint, named: str | None = None) -> Iterator[tuple[OperatorState, dict[str, Any]]]:
    """Yield (operator, one of its states) as `describe_state` describes it.

    A savepoint of another program, or an older one, may not name its keyed states; then they are read to find them.

    Args:
        named: uid, id or name of the one operator that is wanted; None: all.

    Raises:
        NotInSavepointError: there is no operator of that name.
    """
    described = {operator["id"]: operator for operator in describe_state(savepoint.manifest)["operators"]}
    operators = savepoint.operators if named is None else (savepoint.operator(named),)
    for operator in operators:
        states = described[operator.id]["states"]
        yield from ((operator, state) for state in states)
        known = {state["name"] for state in states}
        if described[operator.id]["keyed_bytes"] and not any(state["is_keyed"] for state in states):
            yield from ((operator, _without_size(state.name, state.summary.kind)) for state in operator.states
                        if state.name not in known)  # fmt: skip


def count_rows(operator: OperatorState, state: dict[str, Any]) -> int | None:
    """Read a state and return the number of its rows; None where its form is known to the operator alone."""
    return None if state["kind"] == TABLE else operator.state(state["name"]).count()


def _without_size(name: str, kind: str) -> dict[str, Any]:
    return {
        "name": name, "kind": kind, "values": None, "ttl": None, "bytes": None, "written_bytes": None, "entries": None,
        "is_estimate": False, "largest_group": None, "key_groups": [], "is_keyed": True,
    }  # fmt: skip


__all__ = ["count_rows", "stored_states"]
