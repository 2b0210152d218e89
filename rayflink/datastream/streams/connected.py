"""Two streams processed by one function object, so that one can steer the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, overload

from rayflink.common.functions.function_classes import CoFlatMapFunction, CoMapFunction, KeyedCoProcessFunction
from rayflink.common.functions.type_variables import Key, Record, Record2, Result, Selected
from rayflink.graph import transformations as graph
from rayflink.graph.errors import PlanError
from rayflink.operators.factory import Factory
from rayflink.operators.keyed.keyed_functions import keyed_co_flat_map, keyed_co_map
from rayflink.operators.keyed.keyed_two_input import KeyedCoProcessOperator
from rayflink.operators.two_input import CoFlatMapOperator, CoMapOperator, CoProcessOperator
from rayflink.user_types import TypeHint, UserCode

from .recording import record_two_inputs
from .step import transformation_of
from .stream import DataStream

if TYPE_CHECKING:
    from ..environment import StreamExecutionEnvironment
    from .function_types import CoFlatMapForm, CoMapForm, CoProcessForm, FieldForm, KeyForm


class ConnectedStreams(Generic[Record, Record2, Key]):
    """Two streams of any types, next to each other.

    Args:
        stream1, stream2: of one environment. State and timers need both to be keyed; a single one is only partitioned.
    """

    def __init__(self, stream1: DataStream[Record], stream2: DataStream[Record2]) -> None:
        self.stream1, self.stream2 = stream1, stream2
        keys = getattr(stream1, "key_selector", None), getattr(stream2, "key_selector", None)
        self._keys = (None, None) if None in keys else keys

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """Return the environment the streams belong to."""
        return self.stream1.get_execution_environment()

    @overload
    def key_by(
        self,
        key_selector1: KeyForm[Record, Selected],
        key_selector2: KeyForm[Record2, Selected],
        key_type: TypeHint = None,
    ) -> ConnectedStreams[Record, Record2, Selected]: ...
    @overload
    def key_by(
        self,
        key_selector1: FieldForm | KeyForm[Record, Any],
        key_selector2: FieldForm | KeyForm[Record2, Any],
        key_type: TypeHint = None,
    ) -> ConnectedStreams[Record, Record2]: ...

    def key_by(
        self, key_selector1: UserCode, key_selector2: UserCode, key_type: TypeHint = None
    ) -> ConnectedStreams[Record, Record2, Any]:
        """Partition both streams by key: records of equal keys meet in one subtask.

        Args:
            key_selector1, key_selector2: of each stream; see `DataStream.key_by`.
            key_type: what every key of both streams must be; None: any key.
        """
        first, second = self.stream1.key_by(key_selector1, key_type), self.stream2.key_by(key_selector2, key_type)
        return ConnectedStreams(first, second)

    @overload
    def map(self, func: CoMapForm[Record, Record2, Result], output_type: None = None) -> DataStream[Result]: ...
    @overload
    def map(self, func: CoMapForm[Record, Record2, Any], output_type: TypeHint) -> DataStream: ...

    def map(self, func: UserCode, output_type: TypeHint = None) -> DataStream[Any]:
        """Apply `map1` to each record of the first stream, `map2` to each of the second.

        Args:
            func: a CoMapFunction or a pair of callables.
            output_type: what every result must be, and is made where it can be: a tuple declared as ROW becomes a Row;
                None: anything.

        >>> from rayflink.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment({"execution.target": "local"})
        >>> numbers, words = env.from_collection([1, 2]), env.from_collection(["a"])
        >>> sorted(numbers.connect(words).map((str, str.upper)).execute_and_collect())
        ['1', '2', 'A']
        """
        if self._is_keyed and isinstance(func, CoMapFunction):
            return self._add_operator("Co-Map", Factory(keyed_co_map, *self._keys, func), output_type)
        return self._add_operator("Co-Map", Factory(CoMapOperator, func), output_type)

    @overload
    def flat_map(
        self, func: CoFlatMapForm[Record, Record2, Result], output_type: None = None
    ) -> DataStream[Result]: ...
    @overload
    def flat_map(self, func: CoFlatMapForm[Record, Record2, Any], output_type: TypeHint) -> DataStream: ...

    def flat_map(self, func: UserCode, output_type: TypeHint = None) -> DataStream[Any]:
        """Apply `flat_map1` to each record of the first stream, `flat_map2` to each of the second.

        Args:
            func: a CoFlatMapFunction or a pair of callables.
            output_type: what every result must be, and is made where it can be: a tuple declared as ROW becomes a Row;
                None: anything.
        """
        if self._is_keyed and isinstance(func, CoFlatMapFunction):
            return self._add_operator("Co-Flat Map", Factory(keyed_co_flat_map, *self._keys, func), output_type)
        return self._add_operator("Co-Flat Map", Factory(CoFlatMapOperator, func), output_type)

    @overload
    def process(
        self, func: CoProcessForm[Record, Record2, Result, Key], output_type: None = None
    ) -> DataStream[Result]: ...
    @overload
    def process(self, func: CoProcessForm[Record, Record2, Any, Key], output_type: TypeHint) -> DataStream: ...

    def process(self, func: UserCode, output_type: TypeHint = None) -> DataStream[Any]:
        """Apply `process_element1` and `process_element2`, with times and side outputs; keyed: with state and timers.

        Args:
            func: a CoProcessFunction, or a KeyedCoProcessFunction where the streams are keyed.
            output_type: what every result must be, and is made where it can be: a tuple declared as ROW becomes a Row;
                None: anything.

        Raises:
            PlanError: it is a KeyedCoProcessFunction and the streams are not keyed.
        """
        if not self._is_keyed and isinstance(func, KeyedCoProcessFunction):
            problem = f"process was given the KeyedCoProcessFunction {type(func).__name__} on streams without keys"
            raise PlanError(problem, "call key_by(...) before process(...)", graph.call_site())
        if self._is_keyed:
            factory = Factory(KeyedCoProcessOperator, *self._keys, func)
            return self._add_operator("Keyed Co-Process", factory, output_type)
        return self._add_operator("Co-Process", Factory(CoProcessOperator, func), output_type)

    @property
    def _is_keyed(self) -> bool:
        return self._keys[0] is not None

    def _add_operator(self, name: str, factory: Factory, output_type: TypeHint) -> DataStream[Any]:
        steps = transformation_of(self.stream1), transformation_of(self.stream2)
        env = self.get_execution_environment()
        return DataStream(env, record_two_inputs(env, steps, name, factory, output_type, self._keys))


__all__ = ["ConnectedStreams"]
