"""The DataStream API, with PyFlink's names and at PyFlink's module paths; each name is loaded on first use.

`environment` is the entry point, `streams` has the classes whose methods a program calls, `connectors` and `formats`
re-export sources, sinks and formats. Calls of a program enter; transformations leave, which `rayflink.graph`
translates. `launcher` hands the graph to `rayflink.launch`, and is the only place that does. How a record is
processed is written in `rayflink.operators`, not here.
"""
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
        TimeDomain as TimeDomain,
        TimerService as TimerService,
        WindowFunction as WindowFunction,
    )
    from rayflink.common.functions.join_functions import (
        CoGroupFunction as CoGroupFunction,
        FlatJoinFunction as FlatJoinFunction,
        JoinFunction as JoinFunction,
        ProcessJoinFunction as ProcessJoinFunction,
    )
    from rayflink.common.user_code.actor_pool import ActorPool as ActorPool
    from rayflink.common.functions.master_hook import MasterTriggerRestoreHook as MasterTriggerRestoreHook
    from rayflink.common.output_tag import OutputTag as OutputTag
    from rayflink.datastream.streams.broadcast import (
        BroadcastConnectedStream as BroadcastConnectedStream,
        BroadcastStream as BroadcastStream,
    )
    from rayflink.datastream.async_data_stream import AsyncDataStream as AsyncDataStream
    from rayflink.datastream.streams.cached import CachedDataStream as CachedDataStream
    from rayflink.datastream.streams.closeable_iterator import CloseableIterator as CloseableIterator
    from rayflink.common.options.registry import (
        CheckpointingMode as CheckpointingMode,
        ExternalizedCheckpointRetention as ExternalizedCheckpointRetention,
    )
    from rayflink.datastream.checkpoint_config import (
        CheckpointConfig as CheckpointConfig,
        ExternalizedCheckpointCleanup as ExternalizedCheckpointCleanup,
    )
    from rayflink.datastream.checkpoint_storage import (
        CheckpointStorage as CheckpointStorage,
        FileSystemCheckpointStorage as FileSystemCheckpointStorage,
        JobManagerCheckpointStorage as JobManagerCheckpointStorage,
    )
    from rayflink.datastream.streams.connected import ConnectedStreams as ConnectedStreams
    from rayflink.datastream.environment import (
        RuntimeExecutionMode as RuntimeExecutionMode,
        StreamExecutionEnvironment as StreamExecutionEnvironment,
    )
    from rayflink.datastream.streams.iterations import ConnectedIterativeStreams as ConnectedIterativeStreams
    from rayflink.datastream.streams.iterations import IterativeStream as IterativeStream
    from rayflink.datastream.streams.interval_joined import (
        IntervalJoin as IntervalJoin,
        IntervalJoined as IntervalJoined,
    )
    from rayflink.datastream.streams.joined import (
        CoGroupedStreams as CoGroupedStreams,
        JoinedStreams as JoinedStreams,
    )
    from rayflink.datastream.streams.keyed import KeyedStream as KeyedStream
    from rayflink.datastream.slot_sharing_group import MemorySize as MemorySize, SlotSharingGroup as SlotSharingGroup
    from rayflink.datastream.state_backend import (
        EmbeddedRocksDBStateBackend as EmbeddedRocksDBStateBackend,
        FsStateBackend as FsStateBackend,
        HashMapStateBackend as HashMapStateBackend,
        MemoryStateBackend as MemoryStateBackend,
        PredefinedOptions as PredefinedOptions,
        RocksDBStateBackend as RocksDBStateBackend,
        StateBackend as StateBackend,
    )
    from rayflink.datastream.streams.split_stream import SplitStream as SplitStream
    from rayflink.datastream.streams.stream import DataStream as DataStream, DataStreamSink as DataStreamSink
    from rayflink.datastream.time_characteristic import TimeCharacteristic as TimeCharacteristic
    from rayflink.datastream.streams.windowed import (
        AllWindowedStream as AllWindowedStream,
        WindowedStream as WindowedStream,
    )
    from rayflink.operators.windows.assigners import WindowAssigner as WindowAssigner
    from rayflink.operators.windows.session_windows import MergingWindowAssigner as MergingWindowAssigner
    from rayflink.operators.windows.triggers import Trigger as Trigger, TriggerResult as TriggerResult
    from rayflink.operators.windows.window import (
        CountWindow as CountWindow,
        GlobalWindow as GlobalWindow,
        TimeWindow as TimeWindow,
        Window as Window,
    )
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
                "TimeDomain TimerService WindowFunction"
            ),
            "rayflink.common.functions.join_functions": (
                "CoGroupFunction FlatJoinFunction JoinFunction ProcessJoinFunction"
            ),
            "rayflink.common.user_code.actor_pool": "ActorPool",
            "rayflink.common.functions.master_hook": "MasterTriggerRestoreHook",
            "rayflink.common.output_tag": "OutputTag",
            "rayflink.datastream.streams.broadcast": "BroadcastConnectedStream BroadcastStream",
            "rayflink.datastream.async_data_stream": "AsyncDataStream",
            "rayflink.datastream.streams.cached": "CachedDataStream",
            "rayflink.datastream.streams.closeable_iterator": "CloseableIterator",
            "rayflink.common.options.registry": "CheckpointingMode ExternalizedCheckpointRetention",
            "rayflink.datastream.checkpoint_config": "CheckpointConfig ExternalizedCheckpointCleanup",
            "rayflink.datastream.checkpoint_storage": (
                "CheckpointStorage FileSystemCheckpointStorage JobManagerCheckpointStorage"
            ),
            "rayflink.datastream.streams.connected": "ConnectedStreams",
            "rayflink.datastream.environment": "RuntimeExecutionMode StreamExecutionEnvironment",
            "rayflink.datastream.streams.iterations": "ConnectedIterativeStreams IterativeStream",
            "rayflink.datastream.streams.interval_joined": "IntervalJoin IntervalJoined",
            "rayflink.datastream.streams.joined": "CoGroupedStreams JoinedStreams",
            "rayflink.datastream.streams.keyed": "KeyedStream",
            "rayflink.datastream.slot_sharing_group": "MemorySize SlotSharingGroup",
            "rayflink.datastream.state_backend": (
                "EmbeddedRocksDBStateBackend FsStateBackend HashMapStateBackend MemoryStateBackend PredefinedOptions "
                "RocksDBStateBackend StateBackend"
            ),
            "rayflink.datastream.streams.split_stream": "SplitStream",
            "rayflink.datastream.streams.stream": "DataStream DataStreamSink",
            "rayflink.datastream.time_characteristic": "TimeCharacteristic",
            "rayflink.datastream.streams.windowed": "AllWindowedStream WindowedStream",
            "rayflink.operators.windows.assigners": "WindowAssigner",
            "rayflink.operators.windows.session_windows": "MergingWindowAssigner",
            "rayflink.operators.windows.triggers": "Trigger TriggerResult",
            "rayflink.operators.windows.window": "CountWindow GlobalWindow TimeWindow Window",
        },
    )
