"""Requests that change the cluster: its end, the disposal of savepoints, and Flink's data sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from rayflink.serving.json_requests import JsonRequest, Refusal, Role, Route
from rayflink.state_processor import dispose_savepoint

from .operations import OperationFailed, OperationResult, Operations, TriggerResponse
from .typed_requests import EMPTY, Empty, TypedEndpoint, hex_id, versioned

__all__ = ["ClusterOperations"]

DISPOSAL, DATA_SET = "savepoint disposal", "data set deletion"


class SavepointDisposal(msgspec.Struct, rename="kebab", frozen=True):
    """The body of a request to delete a savepoint.

    Args:
        savepoint_path: its address.
    """

    savepoint_path: str | None = None


class DataSets(msgspec.Struct, rename="camel", frozen=True):
    """The data sets of the cluster.

    Args:
        data_sets: none: a cached result belongs to the session that cached it.
    """

    data_sets: list[Empty]


class ClusterOperations:
    """Answers the requests that change the cluster.

    Args:
        operations: that are under way.
        shut_down: ends the cluster; called in a thread of the request, and returns at once.
        storage_options: by which savepoints are reached.

    Source: apache/flink SavepointDisposalHandlers, ShutdownHandler, ClusterDataSetListHandler.
    """

    def __init__(
        self, operations: Operations, shut_down: Callable[[], None], storage_options: Mapping[str, str] | None = None
    ) -> None:
        self._operations, self._shut_down, self._storage_options = operations, shut_down, storage_options or {}

    def routes(self) -> list[Route]:
        """Return the functions of the requests."""
        dispose = TypedEndpoint(self._dispose, None, SavepointDisposal, "SavepointDisposalRequest")
        delete = TypedEndpoint(self._delete_data_set, status=202)
        return [
            *versioned("POST", "/savepoint-disposal", dispose, Role.OPERATE),
            *versioned("GET", "/savepoint-disposal/{triggerid}", TypedEndpoint(self._disposal_result), Role.READ),
            *versioned("DELETE", "/cluster", TypedEndpoint(self._end), Role.SUBMIT),
            *versioned("GET", "/datasets", TypedEndpoint(self._data_sets), Role.READ),
            *versioned("GET", "/datasets/delete/{triggerid}", TypedEndpoint(self._deletion_result), Role.READ),
            *versioned("DELETE", "/datasets/{datasetid}", delete, Role.OPERATE),
        ]

    def _dispose(self, request: JsonRequest, body: SavepointDisposal) -> TriggerResponse:
        """Delete a savepoint: its metadata first, then the files that these name, and nothing else."""
        path = body.savepoint_path
        if not path:
            raise Refusal(400, "Field savepoint-path must not be omitted or be null.")

        def work(trigger_id: str) -> Empty:
            dispose_savepoint(path, self._storage_options)
            return EMPTY

        return self._operations.begin(DISPOSAL, "", None, work)

    def _disposal_result(self, request: JsonRequest) -> OperationResult[Empty]:
        """Return how far the disposal of a savepoint is."""
        return self._operations.result(DISPOSAL, "", hex_id(request, "triggerid"))  # type: ignore[return-value]

    def _end(self, request: JsonRequest) -> Empty:
        """Shut the cluster down."""
        self._shut_down()
        return EMPTY

    def _data_sets(self, request: JsonRequest) -> DataSets:
        """Return the data sets of the cluster, of which there are none."""
        return DataSets([])

    def _delete_data_set(self, request: JsonRequest) -> TriggerResponse:
        """Delete a data set."""
        data_set = hex_id(request, "datasetid")

        def work(trigger_id: str) -> Empty:
            remedy = "a cached result belongs to the session that cached it"
            raise OperationFailed(f"no data set {data_set} is known: {remedy}")

        return self._operations.begin(DATA_SET, "", None, work)

    def _deletion_result(self, request: JsonRequest) -> OperationResult[Empty]:
        """Return how far the deletion of a data set is."""
        return self._operations.result(DATA_SET, "", hex_id(request, "triggerid"))  # type: ignore[return-value]
