"""The step that joins several streams with a key in common."""

from __future__ import annotations

from rayflink.datastream.streams.stream_builder import StreamBuilder
from rayflink.operators.factory import Factory

from ..conversion.arrow_columns import arrow_schema
from ..plan.joins import JoinKind
from ..plan.lineage import rows_of
from ..plan.logical import length_text
from ..plan.multi_joins import MultiJoin
from ..runtime.joins.join_rows import JoinSide
from ..runtime.joins.multi_join import MultiJoinOperator
from ..runtime.joins.multi_join_rows import MultiJoinSpec, StepSpec
from ..runtime.joins.stored_side import SideState
from ..runtime.key_columns import columns_key
from .physical_joins import row_form
from .translation import Translation, hash_partition


def translate_multi_join(translation: Translation, plan: MultiJoin) -> StreamBuilder:
    """Join several streams by their common key: rows of equal keys meet in one subtask."""
    names = [
        [relation.names[column] for column in keys]
        for relation, keys in zip(plan.relations, plan.keys, strict=True)
    ]  # fmt: skip
    first, *others = (
        hash_partition(translation.stream(relation), columns)
        for relation, columns in zip(plan.relations, names, strict=True)
    )
    ttls = [translation.side_ttl_ms(plan, index) for index in range(len(plan.relations))]
    identities = [rows_of(relation, keys) for relation, keys in zip(plan.relations, plan.keys, strict=True)]
    sides = tuple(
        JoinSide(arrow_schema(relation.schema), keys, keys, identity, unique)
        for relation, keys, identity, unique in zip(plan.relations, plan.keys, identities, plan.unique, strict=True)
    )
    states = tuple(SideState(row_form(translation, plan, index), ttl) for index, ttl in enumerate(ttls))
    steps = tuple(StepSpec(step.kind is JoinKind.LEFT, step.required, step.condition) for step in plan.steps)
    spec = MultiJoinSpec(
        sides, states, steps, arrow_schema(plan.schema), translation.session, translation.wants_before(plan)
    )
    step = first.add_multiple_input_operator(
        others, "MultiJoin", Factory(MultiJoinOperator, spec), [columns_key(columns) for columns in names],
        " and ".join(identities),
    )  # fmt: skip
    return step.set_description(_line_with_ttls(plan.explain_line(), ttls))


def _line_with_ttls(line: str, ttls: list[int]) -> str:
    if not any(ttls):
        return line
    shown = ", ".join(length_text(ttl) if ttl else "none" for ttl in (ttls[:1] if len(set(ttls)) == 1 else ttls))
    return f"{line[:-1]}, stateTtl=[{shown}])"


__all__ = ["translate_multi_join"]
