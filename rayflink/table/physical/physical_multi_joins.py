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
from ..runtime.joins.mini_batch_join import MiniBatchJoinOperator
from ..runtime.joins.multi_join import MultiJoinOperator
from ..runtime.joins.multi_join_rows import MultiJoinSpec, StepSpec
from ..runtime.joins.stored_side import SideState
from ..runtime.key_columns import columns_key
from .physical_joins import mini_batch_of, row_form
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
    states = tuple(
        SideState(row_form(translation, plan, index), ttl, takes_upserts=plan.is_upsert)
        for index, ttl in enumerate(ttls)
    )
    steps = tuple(StepSpec(step.kind is JoinKind.LEFT, step.required, step.condition) for step in plan.steps)
    spec = MultiJoinSpec(
        sides, states, steps, arrow_schema(plan.schema), translation.session, translation.wants_before(plan)
    )
    limits = mini_batch_of(translation, plan)
    factory = Factory(MultiJoinOperator, spec) if limits is None else Factory(MiniBatchJoinOperator, spec, limits)
    step = first.add_multiple_input_operator(
        others, "MultiJoin", factory, [columns_key(columns) for columns in names],
        " and ".join(identities),
    )  # fmt: skip
    shown = [_shown_ttls(ttls)] if any(ttls) else []
    shown += [] if limits is None else ["miniBatch=[true]"]
    return step.set_description(f"{', '.join([plan.explain_line()[:-1], *shown])})")


def _shown_ttls(ttls: list[int]) -> str:
    shown = ", ".join(length_text(ttl) if ttl else "none" for ttl in (ttls[:1] if len(set(ttls)) == 1 else ttls))
    return f"stateTtl=[{shown}]"


__all__ = ["translate_multi_join"]
