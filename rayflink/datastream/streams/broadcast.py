"""A stream whose records every subtask gets, and the stream they are applied to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, overload

from rayflink.common.errors import InvalidFunction, shorten
from rayflink.common.functions.broadcast_functions import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from rayflink.common.functions.type_variables import Key, Record, Record2, Result
from rayflink.graph import transformations as graph
from rayflink.graph.errors import PlanError
from rayflink.operators.broadcast import BroadcastProcessOperator
from rayflink.operators.factory import Factory
from rayflink.operators.keyed.keyed_broadcast import KeyedBroadcastProcessOperator
from rayflink.state.descriptors import MapStateDescriptor
from rayflink.user_types import TypeHint, UserCode

from .recording import record_two_inputs
from .step import transformation_of
from .stream import DataStream

if TYPE_CHECKING:
    from ..environment import StreamExecutionEnvironment
    from .function_types import BroadcastForm


class BroadcastStream(Generic[Record]):
    """A stream that goes whole to every subtask of the step it is connected to, with the states it is kept in.

    Args:
        input_stream: the broadcast records.
        broadcast_state_descriptors: one or more MapStateDescriptors.
    """

    def __init__(
        self, input_stream: DataStream[Record], broadcast_state_descriptors: Sequence[MapStateDescriptor]
    ) -> None:
        self.input_stream = input_stream
        self.broadcast_state_descriptors = checked_descriptors(broadcast_state_descriptors)


class BroadcastConnectedStream(Generic[Record, Record2, Key]):
    """A stream, keyed or not, next to a broadcast one.

    Args:
        non_broadcast_stream, broadcast_stream: of one environment.
        broadcast_state_descriptors: of the states that the function may ask for.
    """

    def __init__(
        self,
        non_broadcast_stream: DataStream[Record],
        broadcast_stream: BroadcastStream[Record2],
        broadcast_state_descriptors: Sequence[MapStateDescriptor],
    ) -> None:
        self.non_broadcast_stream = non_broadcast_stream
        self.broadcast_stream = broadcast_stream
        self.broadcast_state_descriptors = checked_descriptors(broadcast_state_descriptors)

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """Return the environment the streams belong to."""
        return self.non_broadcast_stream.get_execution_environment()

    @overload
    def process(
        self, func: BroadcastForm[Record, Record2, Result, Key], output_type: None = None
    ) -> DataStream[Result]: ...
    @overload
    def process(self, func: BroadcastForm[Record, Record2, Any, Key], output_type: TypeHint) -> DataStream: ...

    def process(self, func: UserCode, output_type: TypeHint = None) -> DataStream[Any]:
        """Apply `process_element` to records of the one stream and `process_broadcast_element` to broadcast records.

        In batch mode all broadcast records are processed before the first of the others.

        Args:
            func: a KeyedBroadcastProcessFunction where the other stream is keyed, else a BroadcastProcessFunction; or
                a pair of callables of record and context, the second for broadcast records.
            output_type: what every result must be, and is made where it can be: a tuple declared as ROW becomes a Row;
                None: anything.

        Raises:
            InvalidFunction: the function is of the other kind.

        >>> from rayflink.datastream import StreamExecutionEnvironment
        >>> from rayflink.datastream.state import MapStateDescriptor
        >>> env = StreamExecutionEnvironment({"execution.target": "local", "execution.runtime-mode": "BATCH"})
        >>> limits = MapStateDescriptor("limits")
        >>> rules = env.from_collection([("a", 10), ("b", 1)]).broadcast(limits)
        >>> def keep(rule, ctx):
        ...     ctx.get_broadcast_state(limits).put(*rule)
        >>> def above(event, ctx):
        ...     if event[1] > ctx.get_broadcast_state(limits).get(event[0]):
        ...         yield event
        >>> events = env.from_collection([("a", 9), ("b", 2), ("a", 11)])
        >>> list(events.connect(rules).process((above, keep)).execute_and_collect())
        [('b', 2), ('a', 11)]
        """
        key_selector = getattr(self.non_broadcast_stream, "key_selector", None)
        descriptors = self.broadcast_state_descriptors
        if key_selector is None:
            if isinstance(func, KeyedBroadcastProcessFunction):
                problem = f"the KeyedBroadcastProcessFunction {type(func).__name__} on streams without keys"
                raise _refusal(problem, "call key_by(...) before connect(...)")
            factory = Factory(BroadcastProcessOperator, func, *descriptors)
            return self._add_operator("Co-Process-Broadcast", factory, output_type)
        if isinstance(func, BroadcastProcessFunction):
            problem = f"the BroadcastProcessFunction {type(func).__name__} on a keyed stream"
            raise _refusal(problem, "derive it from KeyedBroadcastProcessFunction")
        factory = Factory(KeyedBroadcastProcessOperator, key_selector, func, *descriptors)
        return self._add_operator("Keyed-Co-Process-Broadcast", factory, output_type, key_selector)

    def _add_operator(
        self, name: str, factory: Factory, output_type: TypeHint, key_selector: UserCode = None
    ) -> DataStream:
        steps = transformation_of(self.non_broadcast_stream), transformation_of(self.broadcast_stream.input_stream)
        env = self.get_execution_environment()
        return DataStream(env, record_two_inputs(env, steps, name, factory, output_type, (key_selector, None)))


def checked_descriptors(descriptors: Sequence[Any]) -> list[MapStateDescriptor]:
    """Check the descriptors of broadcast states and return them.

    Raises:
        TypeError: one is no MapStateDescriptor.
        PlanError: there is none, two have one name, or one lets values expire.
    """
    for each in descriptors:
        if not isinstance(each, MapStateDescriptor):
            actual = f"{type(each).__name__} {shorten(each, 80)}"
            raise TypeError(f"broadcast_state_descriptor must be MapStateDescriptor, found {actual}")
        if each.expiry is not None:
            problem = f"the broadcast state {each.name!r} has a time to live, which only keyed state supports"
            raise PlanError(problem, "leave enable_time_to_live out, and remove old entries", graph.call_site())
    names = [each.name for each in descriptors]
    if not names:
        raise PlanError("no broadcast state is described", "give broadcast(...) a descriptor", graph.call_site())
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        problem = f"two broadcast states have the name {twice!r}"
        raise PlanError(problem, "give each a name of its own", graph.call_site())
    return list(descriptors)


def _refusal(problem: str, remedy: str) -> InvalidFunction:
    return InvalidFunction(f"process was given {problem}", remedy, graph.call_site())


__all__ = ["BroadcastConnectedStream", "BroadcastStream"]
