"""Upserts in the logical plan: rows that replace others by key become complete changelogs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .changelog import Change
from .conflicts import OnConflict
from .logical import Relation


@dataclass(frozen=True)
class ChangelogNormalize(Relation):
    """Restores the complete changelog of upserts: a row of a key replaces the one that came before it.

    What it gives is an insertion, an update with the row before it, or a deletion with the whole row. A row that
    equals the one before it, and the deletion of a key that has no row, are left out.

    Args:
        key: numbers of the columns of the key.
    """

    input: Relation
    key: tuple[int, ...]

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)

    def with_inputs(self, inputs: Sequence[Relation]) -> Relation:
        return replace(self, input=inputs[0])

    def required_distribution(self, input_index: int) -> tuple[int, ...] | None:
        return self.key

    def takes_changes(self) -> Change:
        return Change.ALL

    def gives_changes(self, inputs: Sequence[Change]) -> Change:
        return Change.INSERT | Change.UPDATE | (inputs[0] & Change.DELETE)

    def requires_update_before(self, is_wanted: bool) -> bool:
        return False

    def explain_line(self) -> str:
        return f"ChangelogNormalize(key=[{', '.join(self.names[number] for number in self.key)}])"


@dataclass(frozen=True)
class UpsertMaterialize(Relation):
    """Shows one row of each key of a table: of all of them the one that came last, and the one before it when it goes.

    Args:
        key: numbers of the columns of the table's key.
        compared: numbers of the columns by which a row that goes is found among those of its key.
        on_conflict: the treatment of several rows of a key.
        has_row_key: `compared` is a key of the rows, by which a row replaces another.
        table: its name, for messages; "": there is none, the row of each key that came last is wanted.
    """

    input: Relation
    key: tuple[int, ...]
    compared: tuple[int, ...]
    on_conflict: OnConflict = OnConflict.DEDUPLICATE
    has_row_key: bool = False
    table: str = ""

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)

    def with_inputs(self, inputs: Sequence[Relation]) -> Relation:
        return replace(self, input=inputs[0])

    def required_distribution(self, input_index: int) -> tuple[int, ...] | None:
        return self.key

    def takes_changes(self) -> Change:
        return Change.ALL

    def gives_changes(self, inputs: Sequence[Change]) -> Change:
        return Change.ALL if inputs[0] & (Change.UPDATE | Change.DELETE) else Change.INSERT | Change.UPDATE

    def requires_update_before(self, is_wanted: bool) -> bool:
        return True

    @property
    def produces_update_before(self) -> bool:
        return False

    def explain_line(self) -> str:
        conflicts = f", conflictStrategy=[{self.on_conflict.name}]" if self.on_conflict.waits else ""
        return f"UpsertMaterialize(key=[{', '.join(self.names[number] for number in self.key)}]{conflicts})"


@dataclass(frozen=True)
class NumberCopies(Relation):
    """Numbers equal rows of a changelog from 1 on, in a last column, so that all columns together are a key.

    A row that is taken back has the highest number of the rows that are equal to it.
    """

    input: Relation

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)

    def with_inputs(self, inputs: Sequence[Relation]) -> Relation:
        return replace(self, input=inputs[0])

    @property
    def width(self) -> int:
        """Return the number of columns of the input."""
        return len(self.input.schema)

    def required_distribution(self, input_index: int) -> tuple[int, ...] | None:
        return tuple(range(self.width))

    def takes_changes(self) -> Change:
        return Change.ALL

    def gives_changes(self, inputs: Sequence[Change]) -> Change:
        return inputs[0]

    def requires_update_before(self, is_wanted: bool) -> bool:
        return True

    def explain_line(self) -> str:
        return f"NumberCopies(select=[{', '.join(self.names)}])"


__all__ = ["ChangelogNormalize", "NumberCopies", "UpsertMaterialize"]
