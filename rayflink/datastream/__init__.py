"""The DataStream API, with PyFlink's names."""
# ruff: noqa: I001 - the imports are a table of names

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.common.broadcast_functions import (
        BaseBroadcastProcessFunction as BaseBroadcastProcessFunction,
        BroadcastProcessFunction as BroadcastProcessFunction,
        KeyedBroadcastProcessFunction as KeyedBroadcastProcessFunction,
        KeyedStateFunction as KeyedStateFunction,
    )
    from rayflink.common.checkpointed_function import (
        CheckpointedFunction as CheckpointedFunction,
        FunctionInitializationContext as FunctionInitializationContext,
        FunctionSnapshotContext as FunctionSnapshotContext,
    )
    from rayflink.common.functions import (
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
    from rayflink.common.join_functions import (
        CoGroupFunction as CoGroupFunction,
        FlatJoinFunction as FlatJoinFunction,
        JoinFunction as JoinFunction,
        ProcessJoinFunction as ProcessJoinFunction,
    )
    from rayflink.common.actor_pool import ActorPool as ActorPool
    from rayflink.common.master_hook import MasterTriggerRestoreHook as MasterTriggerRestoreHook
    from rayflink.common.output_tag import OutputTag as OutputTag
    from rayflink.datastream.broadcast import (
        BroadcastConnectedStream as BroadcastConnectedStream,
        BroadcastStream as BroadcastStream,
    )
    from rayflink.datastream.async_data_stream import AsyncDataStream as AsyncDataStream
    from rayflink.datastream.cached import CachedDataStream as CachedDataStream
    from rayflink.datastream.closeable_iterator import CloseableIterator as CloseableIterator
    from rayflink.common.options import (
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
    from rayflink.datastream.connected import ConnectedStreams as ConnectedStreams
    from rayflink.datastream.environment import (
        RuntimeExecutionMode as RuntimeExecutionMode,
        StreamExecutionEnvironment as StreamExecutionEnvironment,
    )
    from rayflink.datastream.iterations import ConnectedIterativeStreams as ConnectedIterativeStreams
    from rayflink.datastream.iterations import IterativeStream as IterativeStream
    from rayflink.datastream.interval_joined import IntervalJoin as IntervalJoin, IntervalJoined as IntervalJoined
    from rayflink.datastream.joined import CoGroupedStreams as CoGroupedStreams, JoinedStreams as JoinedStreams
    from rayflink.datastream.keyed import KeyedStream as KeyedStream
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
    from rayflink.datastream.split_stream import SplitStream as SplitStream
    from rayflink.datastream.streams import DataStream as DataStream, DataStreamSink as DataStreamSink
    from rayflink.datastream.time_characteristic import TimeCharacteristic as TimeCharacteristic
    from rayflink.datastream.windowed import AllWindowedStream as AllWindowedStream, WindowedStream as WindowedStream
    from rayflink.operators.assigners import WindowAssigner as WindowAssigner
    from rayflink.operators.session_windows import MergingWindowAssigner as MergingWindowAssigner
    from rayflink.operators.triggers import Trigger as Trigger, TriggerResult as TriggerResult
    from rayflink.operators.window import (
        CountWindow as CountWindow,
        GlobalWindow as GlobalWindow,
        TimeWindow as TimeWindow,
        Window as Window,
    )
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.common.broadcast_functions": (
                "BaseBroadcastProcessFunction BroadcastProcessFunction KeyedBroadcastProcessFunction KeyedStateFunction"
            ),
            "rayflink.common.checkpointed_function": (
                "CheckpointedFunction FunctionInitializationContext FunctionSnapshotContext"
            ),
            "rayflink.common.functions": (
                "AggregateFunction AllWindowFunction AsyncFunction AsyncRetryPredicate AsyncRetryStrategy "
                "CoFlatMapFunction CoMapFunction CoProcessFunction "
                "FilterFunction FlatMapFunction FoldFunction Function KeySelector KeyedCoProcessFunction "
                "KeyedProcessFunction "
                "MapFunction NullByteKeySelector OutputSelector Partitioner ProcessAllWindowFunction ProcessFunction "
                "ProcessWindowFunction ReduceFunction RichFunction RuntimeContext SinkFunction SourceFunction "
                "TimeDomain TimerService WindowFunction"
            ),
            "rayflink.common.join_functions": "CoGroupFunction FlatJoinFunction JoinFunction ProcessJoinFunction",
            "rayflink.common.actor_pool": "ActorPool",
            "rayflink.common.master_hook": "MasterTriggerRestoreHook",
            "rayflink.common.output_tag": "OutputTag",
            "rayflink.datastream.broadcast": "BroadcastConnectedStream BroadcastStream",
            "rayflink.datastream.async_data_stream": "AsyncDataStream",
            "rayflink.datastream.cached": "CachedDataStream",
            "rayflink.datastream.closeable_iterator": "CloseableIterator",
            "rayflink.common.options": "CheckpointingMode ExternalizedCheckpointRetention",
            "rayflink.datastream.checkpoint_config": "CheckpointConfig ExternalizedCheckpointCleanup",
            "rayflink.datastream.checkpoint_storage": (
                "CheckpointStorage FileSystemCheckpointStorage JobManagerCheckpointStorage"
            ),
            "rayflink.datastream.connected": "ConnectedStreams",
            "rayflink.datastream.environment": "RuntimeExecutionMode StreamExecutionEnvironment",
            "rayflink.datastream.iterations": "ConnectedIterativeStreams IterativeStream",
            "rayflink.datastream.interval_joined": "IntervalJoin IntervalJoined",
            "rayflink.datastream.joined": "CoGroupedStreams JoinedStreams",
            "rayflink.datastream.keyed": "KeyedStream",
            "rayflink.datastream.slot_sharing_group": "MemorySize SlotSharingGroup",
            "rayflink.datastream.state_backend": (
                "EmbeddedRocksDBStateBackend FsStateBackend HashMapStateBackend MemoryStateBackend PredefinedOptions "
                "RocksDBStateBackend StateBackend"
            ),
            "rayflink.datastream.split_stream": "SplitStream",
            "rayflink.datastream.streams": "DataStream DataStreamSink",
            "rayflink.datastream.time_characteristic": "TimeCharacteristic",
            "rayflink.datastream.windowed": "AllWindowedStream WindowedStream",
            "rayflink.operators.assigners": "WindowAssigner",
            "rayflink.operators.session_windows": "MergingWindowAssigner",
            "rayflink.operators.triggers": "Trigger TriggerResult",
            "rayflink.operators.window": "CountWindow GlobalWindow TimeWindow Window",
        },
    )
