"""Streams whose records have names, by which consumers select them."""

from __future__ import annotations

from rayflink.common.functions.type_variables import Record
from rayflink.graph import transformations as graph
from rayflink.graph.errors import PlanError

from .stream import DataStream


class SplitStream(DataStream[Record]):
    """A stream that `DataStream.split` returns: all records, and `select` for those with certain names."""

    def select(self, *output_names: str) -> DataStream[Record]:
        """Return the records to which the output selector gave one of these names.

        Args:
            output_names: at least one.

        Raises:
            PlanError: there is no name.
            TypeError: a name is no str.

        >>> from rayflink.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment({"execution.target": "local"})
        >>> numbers = env.from_collection([1, 2, 3, 4]).split(lambda n: ["even" if n % 2 == 0 else "odd"])
        >>> list(numbers.select("even").execute_and_collect())
        [2, 4]
        """
        if not output_names:
            raise PlanError("select() was called without a name", "pass names of the split", graph.call_site())
        for name in output_names:
            if not isinstance(name, str):
                raise TypeError(f"select() takes names of outputs as str, found {name!r:.80}")
        step = graph.Select(self._transformation, output_names, output_type=self._transformation.output_type)
        return DataStream(self._env, step)


__all__ = ["SplitStream"]
