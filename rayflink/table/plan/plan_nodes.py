"""The closed union of the nodes of a logical plan.

Code that treats each kind of node differently takes `node_of(relation)` apart with `match` and ends with
`assert_never`: mypy then reports every place that a new kind of node has to be added to.
"""

from __future__ import annotations

from typing import TypeAlias, get_args

from ..errors import SqlError
from .groups import GroupAggregate
from .joins import BroadcastJoin, IntervalJoin, Join, KeyedJoin, StreamJoin, WindowJoin
from .logical import (
    Filter,
    Project,
    Relation,
    Scan,
    Sink,
    Sort,
    Union,
    Unnest,
    Values,
    WatermarkAssigner,
    WindowAggregate,
    WindowTable,
)
from .lookup_joins import LookupJoin, SnapshotJoin
from .matching import MatchRecognize
from .multi_joins import MultiJoin
from .op_columns import FromChangelog, ToChangelog
from .over import OverAggregate
from .process_tables import ProcessTable
from .ranks import Deduplicate, Rank, WindowRank
from .temporal_joins import TemporalJoin
from .upserts import ChangelogNormalize, NumberCopies, UpsertMaterialize

PlanNode: TypeAlias = (
    Scan
    | Values
    | WatermarkAssigner
    | Project
    | Filter
    | Unnest
    | Union
    | WindowTable
    | WindowAggregate
    | GroupAggregate
    | SnapshotJoin
    | LookupJoin
    | TemporalJoin
    | Join
    | BroadcastJoin
    | WindowJoin
    | IntervalJoin
    | StreamJoin
    | KeyedJoin
    | MultiJoin
    | MatchRecognize
    | OverAggregate
    | ProcessTable
    | Sort
    | Deduplicate
    | WindowRank
    | Rank
    | ToChangelog
    | FromChangelog
    | ChangelogNormalize
    | UpsertMaterialize
    | NumberCopies
    | Sink
)
"""All kinds of nodes; a subclass stands before its base class, as `match` needs it."""
NODE_CLASSES: tuple[type[Relation], ...] = get_args(PlanNode)


def node_of(relation: Relation) -> PlanNode:
    """Return the relation as one of the known kinds of nodes.

    Raises:
        SqlError: it is of another class, which a rule of the program has put into the plan.
    """
    if not isinstance(relation, NODE_CLASSES):
        problem = f"the plan has a {type(relation).__name__}, which is no node that can be run"
        raise SqlError(problem, f"let rules return nodes of these classes: {', '.join(sorted(_NAMES))}")
    node: PlanNode = relation  # type: ignore[assignment]
    return node


_NAMES = {node.__name__ for node in NODE_CLASSES}
__all__ = ["NODE_CLASSES", "PlanNode", "node_of"]
