"""State descriptors, state handles and their time to live, under PyFlink's module path."""
# ruff: noqa: I001 - the imports are a table of names

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.common.functions.state_ttl import StateTtlConfig as StateTtlConfig
    from rayflink.state.descriptors import (
        AggregatingStateDescriptor as AggregatingStateDescriptor,
        ListStateDescriptor as ListStateDescriptor,
        MapStateDescriptor as MapStateDescriptor,
        ReducingStateDescriptor as ReducingStateDescriptor,
        StateDescriptor as StateDescriptor,
        ValueStateDescriptor as ValueStateDescriptor,
    )
    from rayflink.state.handles import (
        AggregatingState as AggregatingState,
        AppendingState as AppendingState,
        ListState as ListState,
        MapState as MapState,
        MergingState as MergingState,
        ReducingState as ReducingState,
        State as State,
        ValueState as ValueState,
    )
    from rayflink.state.operator_state import (
        BroadcastState as BroadcastState,
        OperatorStateStore as OperatorStateStore,
        ReadOnlyBroadcastState as ReadOnlyBroadcastState,
    )
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.common.functions.state_ttl": "StateTtlConfig",
            "rayflink.state.descriptors": (
                "AggregatingStateDescriptor ListStateDescriptor MapStateDescriptor ReducingStateDescriptor "
                "StateDescriptor ValueStateDescriptor"
            ),
            "rayflink.state.handles": (
                "AggregatingState AppendingState ListState MapState MergingState ReducingState State ValueState"
            ),
            "rayflink.state.operator_state": "BroadcastState OperatorStateStore ReadOnlyBroadcastState",
        },
    )
