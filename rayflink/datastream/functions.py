"""The function classes that users subclass, under PyFlink's module path."""
# ruff: noqa: I001 - the imports are a table of names

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.common.functions.broadcast_functions import (
        BaseBroadcastProcessFunction as BaseBroadcastProcessFunction,
        BroadcastProcessFunction as BroadcastProcessFunction,
        KeyedBroadcastProcessFunction as KeyedBroadcastProcessFunction,
        KeyedStateFunction as KeyedStateFunction,
    )
    from rayflink.common.functions.checkpointed_function import (
        CheckpointedFunction as CheckpointedFunction,
        FunctionInitializationContext as FunctionInitializationContext,
        FunctionSnapshotContext as FunctionSnapshotContext,
    )
    from rayflink.common.functions.function_classes import (
        AggregateFunction as AggregateFunction,
        AllWindowFunction as AllWindowFunction,
        AsyncFunction as AsyncFunction,
        AsyncRetryPredicate as AsyncRetryPredicate,
        AsyncRetryStrategy as AsyncRetryStrategy,
        CoFlatMapFunction as CoFlatMapFunction,
        CoMapFunction as CoMapFunction,
        CoProcessFunction as CoProcessFunction,
        FilterFunction as FilterFunction,
        FlatMapFunction as FlatMapFunction,
        FoldFunction as FoldFunction,
        Function as Function,
        KeySelector as KeySelector,
        KeyedCoProcessFunction as KeyedCoProcessFunction,
        KeyedProcessFunction as KeyedProcessFunction,
        MapFunction as MapFunction,
        NullByteKeySelector as NullByteKeySelector,
        OutputSelector as OutputSelector,
        Partitioner as Partitioner,
        ProcessAllWindowFunction as ProcessAllWindowFunction,
        ProcessFunction as ProcessFunction,
        ProcessWindowFunction as ProcessWindowFunction,
        ReduceFunction as ReduceFunction,
        RichFunction as RichFunction,
        RuntimeContext as RuntimeContext,
        SinkFunction as SinkFunction,
        SourceFunction as SourceFunction,
        TimerService as TimerService,
        WindowFunction as WindowFunction,
    )
    from rayflink.common.functions.join_functions import (
        CoGroupFunction as CoGroupFunction,
        FlatJoinFunction as FlatJoinFunction,
        JoinFunction as JoinFunction,
        ProcessJoinFunction as ProcessJoinFunction,
    )
    from rayflink.common.functions.runtime_context import (
        DistributedCache as DistributedCache,
        KeyedStateStore as KeyedStateStore,
    )
    from rayflink.common.functions.two_phase_function import TwoPhaseCommitSinkFunction as TwoPhaseCommitSinkFunction
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.common.functions.broadcast_functions": (
                "BaseBroadcastProcessFunction BroadcastProcessFunction KeyedBroadcastProcessFunction KeyedStateFunction"
            ),
            "rayflink.common.functions.checkpointed_function": (
                "CheckpointedFunction FunctionInitializationContext FunctionSnapshotContext"
            ),
            "rayflink.common.functions.function_classes": (
                "AggregateFunction AllWindowFunction AsyncFunction AsyncRetryPredicate AsyncRetryStrategy "
                "CoFlatMapFunction CoMapFunction CoProcessFunction "
                "FilterFunction FlatMapFunction FoldFunction Function KeySelector KeyedCoProcessFunction "
                "KeyedProcessFunction "
                "MapFunction NullByteKeySelector OutputSelector Partitioner ProcessAllWindowFunction ProcessFunction "
                "ProcessWindowFunction ReduceFunction RichFunction RuntimeContext SinkFunction SourceFunction "
                "TimerService WindowFunction"
            ),
            "rayflink.common.functions.join_functions": (
                "CoGroupFunction FlatJoinFunction JoinFunction ProcessJoinFunction"
            ),
            "rayflink.common.functions.runtime_context": "DistributedCache KeyedStateStore",
            "rayflink.common.functions.two_phase_function": "TwoPhaseCommitSinkFunction",
        },
    )
