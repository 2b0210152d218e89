"""The names that classes have in compiled plans. A class may be renamed; its name here stays.

A node has a version in its type, as `filter_1`. Whoever changes what a node means, or renames a field of it, enters the
next version here, and lets `plan_document` bring nodes of the earlier ones to it.
"""

from __future__ import annotations

import dataclasses
from enum import Enum
from functools import cache

from rayflink.cep.nfa.row_patterns import RowChoice, RowRepetition, RowSequence, RowVariable
from rayflink.cep.skip_strategies import AfterMatchSkipStrategy, SkipTo
from rayflink.common.types import RowKind

from ..plan import joins, logical, lookup_joins, matching, multi_joins, over, ranks, scan_abilities, typed
from ..plan.aggregate_call import AggregateCall
from ..plan.changelog import ChangelogMode
from ..plan.conflicts import OnConflict
from ..plan.groups import GroupAggregate
from ..plan.logical import Relation
from ..plan.op_columns import FromChangelog, ToChangelog
from ..plan.process_tables import ProcessTable, TableArgument
from ..plan.temporal_joins import TemporalJoin
from ..plan.upserts import ChangelogNormalize, NumberCopies, UpsertMaterialize

NODE_TYPES: dict[str, tuple[int, type[Relation]]] = {
    "scan": (1, logical.Scan),
    "values": (1, logical.Values),
    "watermark-assigner": (1, logical.WatermarkAssigner),
    "project": (1, logical.Project),
    "filter": (1, logical.Filter),
    "unnest": (1, logical.Unnest),
    "union": (1, logical.Union),
    "window-table-function": (1, logical.WindowTable),
    "window-aggregate": (1, logical.WindowAggregate),
    "group-aggregate": (1, GroupAggregate),
    "lookup-join": (1, lookup_joins.LookupJoin),
    "temporal-join": (1, TemporalJoin),
    "broadcast-join": (1, joins.BroadcastJoin),
    "window-join": (1, joins.WindowJoin),
    "interval-join": (1, joins.IntervalJoin),
    "join": (1, joins.StreamJoin),
    "hash-join": (1, joins.KeyedJoin),
    "multi-join": (1, multi_joins.MultiJoin),
    "match": (1, matching.MatchRecognize),
    "over-aggregate": (1, over.OverAggregate),
    "process-table-function": (1, ProcessTable),
    "sort": (1, logical.Sort),
    "deduplicate": (1, ranks.Deduplicate),
    "window-rank": (1, ranks.WindowRank),
    "rank": (1, ranks.Rank),
    "to-changelog": (1, ToChangelog),
    "from-changelog": (1, FromChangelog),
    "changelog-normalize": (1, ChangelogNormalize),
    "sink-upsert-materializer": (1, UpsertMaterialize),
    "number-copies": (1, NumberCopies),
    "sink": (1, logical.Sink),
}
"""Type of a node without its version -> the version that is written, and the class."""
NODE_NAMES: dict[type[Relation], str] = {kind: f"{name}_{version}" for name, (version, kind) in NODE_TYPES.items()}
"""Class -> the type that is written."""

VALUE_TYPES: dict[str, type] = {
    "Column": typed.Column,
    "Literal": typed.Literal,
    "Call": typed.Call,
    "Attribute": logical.Attribute,
    "Windowing": logical.Windowing,
    "Emission": logical.Emission,
    "AggregateCall": AggregateCall,
    "Keys": joins.Keys,
    "Interval": joins.Interval,
    "JoinStep": multi_joins.JoinStep,
    "LookupHint": lookup_joins.LookupHint,
    "LookupKey": lookup_joins.LookupKey,
    "Frame": over.Frame,
    "TableArgument": TableArgument,
    "ChangelogMode": ChangelogMode,
    "RowVariable": RowVariable,
    "RowSequence": RowSequence,
    "RowChoice": RowChoice,
    "RowRepetition": RowRepetition,
    "RowField": matching.RowField,
    "RowReference": matching.RowReference,
    "AggregateReference": matching.AggregateReference,
    "ClassifierReference": matching.ClassifierReference,
    "Definition": matching.Definition,
    "AfterMatchSkipStrategy": AfterMatchSkipStrategy,
    "ColumnPushDown": scan_abilities.ColumnPushDown,
    "FieldPushDown": scan_abilities.FieldPushDown,
    "NarrowColumn": scan_abilities.NarrowColumn,
    "FilterPushDown": scan_abilities.FilterPushDown,
    "LimitPushDown": scan_abilities.LimitPushDown,
}
"""Name -> class of a value with fields."""
VALUE_NAMES: dict[type, str] = {kind: name for name, kind in VALUE_TYPES.items()}

ENUM_TYPES: dict[str, type[Enum]] = {
    "TimePart": logical.TimePart,
    "WindowKind": logical.WindowKind,
    "PartialFinal": logical.PartialFinal,
    "JoinKind": joins.JoinKind,
    "OnConflict": OnConflict,
    "Pick": matching.Pick,
    "SkipTo": SkipTo,
    "RowKind": RowKind,
}
"""Name -> class of a value that is one of several."""
ENUM_NAMES: dict[type[Enum], str] = {kind: name for name, kind in ENUM_TYPES.items()}

_UNSTORED = ("place", "source", "sink", "definition", "stored_statistics")
"""Fields of nodes and values that are not written, or by `plan_tables`."""


@dataclasses.dataclass(frozen=True)
class StoredField:
    """A field of a node or a value.

    Args:
        annotation: of the field.
        kind: name of the class of its value, or of the items of that, where the annotation names one; "": any.
        may_be_absent: where the plan lacks it, it is None or has its default.
        has_default: it has one; `is_none_absent`: this is not another value than None.
    """

    name: str
    annotation: str
    kind: str
    may_be_absent: bool
    has_default: bool
    is_none_absent: bool


@cache
def stored_fields(kind: type) -> tuple[StoredField, ...]:
    """Return the fields of a class that are written.

    >>> [field.name for field in stored_fields(joins.Interval)]
    ['left', 'right', 'lower_ms', 'upper_ms', 'is_event_time']
    """
    return tuple(map(_stored, (field for field in dataclasses.fields(kind) if field.name not in _UNSTORED)))


def _stored(field: dataclasses.Field[object]) -> StoredField:
    absent, annotation = dataclasses.MISSING, str(field.type)
    has_default = field.default is not absent or field.default_factory is not absent
    is_nullable = annotation.endswith(" | None")
    is_none_absent = field.default is None if has_default else is_nullable
    may_be_absent, kind = has_default or is_nullable, _kind_named(annotation)
    return StoredField(field.name, annotation, kind, may_be_absent, has_default, is_none_absent)


def _kind_named(annotation: str) -> str:
    if annotation == "Schema":
        return "Attribute"
    kind = annotation.removesuffix(" | None")
    if kind.startswith("tuple[") and kind.endswith(", ...]"):
        kind = kind.removeprefix("tuple[").removesuffix(", ...]").removesuffix(" | None")
    is_known = kind in VALUE_TYPES or kind in ENUM_TYPES or kind in ("DataType", "Function", "Change")
    return kind if is_known else ""


__all__ = [
    "ENUM_NAMES", "ENUM_TYPES", "NODE_NAMES", "NODE_TYPES", "VALUE_NAMES", "VALUE_TYPES", "StoredField",
    "stored_fields",
]  # fmt: skip
