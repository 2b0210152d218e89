"""Changelogs as tables with a column for the kind of change, and back.

Source: apache/flink TO_CHANGELOG and FROM_CHANGELOG.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rayflink.common.types import RowKind

from .changelog import Change
from .logical import Relation

_CHANGES = {
    RowKind.INSERT: Change.INSERT, RowKind.UPDATE_BEFORE: Change.UPDATE, RowKind.UPDATE_AFTER: Change.UPDATE,
    RowKind.DELETE: Change.DELETE,
}  # fmt: skip
Codes = tuple[tuple[str, RowKind], ...]
"""Strings and what they stand for."""


@dataclass(frozen=True)
class _OnOne(Relation):
    input: Relation
    codes: Codes

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)

    def with_inputs(self, inputs: Sequence[Relation]) -> Relation:
        return replace(self, input=inputs[0])

    def _describe_codes(self) -> str:
        return ", ".join(f"{kind.name}={code}" for code, kind in self.codes)


@dataclass(frozen=True)
class ToChangelog(_OnOne):
    """Each change as a new row: the text of what it does, then the columns; what has no text is left out."""

    def takes_changes(self) -> Change:
        return Change.ALL

    def requires_update_before(self, is_wanted: bool) -> bool:
        return False  # a earlier row is a row like others, where there is one

    def explain_line(self) -> str:
        return f"ToChangelog(op=[{self.names[0]}], codes=[{self._describe_codes()}], select=[{', '.join(self.names)}])"


@dataclass(frozen=True)
class FromChangelog(_OnOne):
    """Each row as the change that the text of a column says, without that column.

    Args:
        op: number of the column.
    """

    op: int

    def gives_changes(self, inputs: Sequence[Change]) -> Change:
        changes = Change.NONE
        for _, kind in self.codes:
            changes |= _CHANGES[kind]
        return changes

    def explain_line(self) -> str:
        op = self.input.names[self.op]
        return f"FromChangelog(op=[{op}], codes=[{self._describe_codes()}], select=[{', '.join(self.names)}])"


__all__ = ["Codes", "FromChangelog", "ToChangelog"]
