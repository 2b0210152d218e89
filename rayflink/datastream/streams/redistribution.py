"""Methods that choose the subtask which gets each record of a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, overload

from rayflink.common.functions.function_classes import KeyBy, as_key_selector, as_partitioner
from rayflink.common.functions.type_variables import Record, Selected
from rayflink.graph import partitioners
from rayflink.graph import transformations as graph
from rayflink.user_types import UserCode

from .fields import check_fields
from .selectors import field_selector
from .step import Step

if TYPE_CHECKING:
    from .function_types import FieldForm, KeyForm, PartitionForm
    from .stream import DataStream


class Redistribution(Step, Generic[Record]):
    """The methods of a stream that say which subtask gets which record, whatever its key."""

    def shuffle(self) -> DataStream[Record]:
        """Send each record to a subtask drawn at random."""
        return self._partitioned(partitioners.Shuffle())

    def rebalance(self) -> DataStream[Record]:
        """Send records to all subtasks in turn."""
        return self._partitioned(partitioners.Rebalance())

    def rescale(self) -> DataStream[Record]:
        """Send records in turn to a few subtasks near by."""
        return self._partitioned(partitioners.Rescale())

    def forward(self) -> DataStream[Record]:
        """Send records to the subtask of the same index; needs equal parallelism."""
        return self._partitioned(partitioners.Forward())

    def global_(self) -> DataStream[Record]:
        """Send everything to the first subtask."""
        return self._partitioned(partitioners.Global())

    @overload
    def partition_custom(self, partitioner: PartitionForm[Any], key_selector: FieldForm) -> DataStream[Record]: ...
    @overload
    def partition_custom(
        self, partitioner: PartitionForm[Selected], key_selector: KeyForm[Record, Selected]
    ) -> DataStream[Record]: ...

    def partition_custom(self, partitioner: Any, key_selector: UserCode) -> DataStream[Record]:
        """Send each record to the subtask that `partitioner(key, number of subtasks)` names.

        Args:
            partitioner: a callable or a Partitioner; gives an index in [0, number of subtasks).
            key_selector: as of `key_by`.
        """
        as_partitioner(partitioner)  # refuses what is none here, in the user's line
        check_fields("partition_custom", key_selector, self._transformation.declared_type())
        key_of = KeyBy(field_selector(key_selector), graph.call_site(), step="partition_custom")
        as_key_selector(key_of)
        return self._partitioned(partitioners.Custom(partitioner, key_of))

    def _partitioned(self, strategy: partitioners.Partitioner) -> DataStream[Record]:
        raise NotImplementedError


__all__ = ["Redistribution"]
