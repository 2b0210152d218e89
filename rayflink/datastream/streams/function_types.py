"""Types of the functions that methods of a stream take: a callable or an object of one of the abstract classes."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

from rayflink.common.connector_base.sink import Sink
from rayflink.common.connector_base.source import Source
from rayflink.common.functions.broadcast_functions import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from rayflink.common.functions.function_classes import (
    AllWindowFunction,
    AsyncFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    FilterFunction,
    FlatMapFunction,
    FoldFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    OutputSelector,
    OutputTag,
    Partitioner,
    ProcessAllWindowFunction,
    ProcessFunction,
    ProcessWindowFunction,
    ReduceFunction,
    SinkFunction,
    SourceFunction,
    WindowFunction,
)
from rayflink.common.functions.join_functions import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    ProcessJoinFunction,
)

T = TypeVar("T")
T2 = TypeVar("T2")
U = TypeVar("U")
K = TypeVar("K")
W = TypeVar("W")

Results = Iterable[U] | None
Tagged = Iterable[U | tuple[OutputTag, Any]] | None
"""Results, and records of side outputs with their tags."""

# The parameters of an alias are its type variables in the order in which they stand.
MapForm = MapFunction[T, U] | Callable[[T], U]
FlatMapForm = FlatMapFunction[T, U] | Callable[[T], Results[U]]
FilterForm = FilterFunction[T] | Callable[[T], object]
KeyForm = KeySelector[T, K] | Callable[[T], K]
FieldForm = str | int | tuple[str | int, ...] | list[str] | list[int]
"""A key by a field's name or position, or by several of them."""
PartitionForm = Partitioner[K] | Callable[[K, int], int]
ReduceForm = ReduceFunction[T] | Callable[[T, T], T]
FoldForm = FoldFunction[T, U] | Callable[[U, T], U]
ProcessForm = ProcessFunction[T, U] | Callable[[T, Any], Tagged[U]]
KeyedProcessForm = ProcessForm[T, U] | KeyedProcessFunction[K, T, U]
SelectForm = OutputSelector[T] | Callable[[T], Iterable[str]]
AsyncForm = AsyncFunction[T, U] | Callable[[T], Coroutine[Any, Any, Iterable[U]]]

ProcessPair = tuple[Callable[[T, Any], Tagged[U]], Callable[[T2, Any], Tagged[U]]]
"""A callable of record and context for each of two streams."""
CoMapForm = CoMapFunction[T, T2, U] | tuple[Callable[[T], U | None], Callable[[T2], U | None]]
CoFlatMapForm = CoFlatMapFunction[T, T2, U] | tuple[Callable[[T], Results[U]], Callable[[T2], Results[U]]]
CoProcessForm = CoProcessFunction[T, T2, U] | KeyedCoProcessFunction[K, T, T2, U] | ProcessPair[T, U, T2]
BroadcastForm = BroadcastProcessFunction[T, T2, U] | KeyedBroadcastProcessFunction[K, T, T2, U] | ProcessPair[T, U, T2]

WindowForm = ProcessWindowFunction[T, U, K, W] | WindowFunction[T, U, K, W] | Callable[[K, W, list[T]], Results[U]]
AllWindowForm = ProcessAllWindowFunction[T, U, W] | AllWindowFunction[T, U, W] | Callable[[W, list[T]], Results[U]]
JoinForm = JoinFunction[T, T2, U] | Callable[[T, T2], U]
FlatJoinForm = FlatJoinFunction[T, T2, U]
CoGroupForm = CoGroupFunction[T, T2, U] | Callable[[list[T], list[T2]], Results[U]]
ProcessJoinForm = ProcessJoinFunction[T, T2, U] | Callable[[T, T2, Any], Tagged[U]]
AnyJoinForm = ProcessJoinForm[T, T2, Any] | FlatJoinForm[T, T2, Any] | JoinForm[T, T2, Any]

RunForm = SourceFunction[U] | Source[U] | Callable[[], Iterable[U] | AsyncIterable[U]]
SinkForm = SinkFunction[T] | Sink[T] | Callable[[T], object]

__all__ = [
    "AllWindowForm", "AnyJoinForm", "AsyncForm", "BroadcastForm", "CoFlatMapForm", "CoGroupForm", "CoMapForm",
    "CoProcessForm", "FieldForm", "FilterForm", "FlatJoinForm", "FlatMapForm", "FoldForm", "JoinForm", "KeyForm",
    "KeyedProcessForm", "MapForm", "PartitionForm", "ProcessForm", "ProcessJoinForm", "ReduceForm", "RunForm",
    "SelectForm", "SinkForm", "WindowForm",
]  # fmt: skip
