"""The contract between a lookup join and a table whose rows are found by key."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rayflink.common.errors import ConnectorError
from rayflink.common.functions.function_classes import RuntimeContext
from rayflink.connectors.lookup_cache import LookupCache

if TYPE_CHECKING:
    import numpy as np
    import pyarrow
    from numpy.typing import NDArray


class LookupFailed(ConnectorError):
    """The rows of keys could not be looked up."""


@dataclass(frozen=True)
class LookupRows:
    """The rows that were found for the keys of a batch.

    Args:
        rows: with the columns of the table that are asked for, by name.
        keys: int64[n]: for each row the number of its key in the batch; None: the rows contain the key columns, by
            which they are assigned.
    """

    rows: pyarrow.RecordBatch | pyarrow.Table
    keys: NDArray[np.int64] | None = None


class LookupFunction(ABC):
    """Finds the rows of a table by key, for all keys of a batch at once.

    A subtask has one of its own, which is pickled to it.

    >>> import numpy, pyarrow
    >>> class Squares(LookupFunction):
    ...     def look_up(self, keys):
    ...         square = pyarrow.compute.power(keys.column("n"), 2)
    ...         return LookupRows(pyarrow.table({"n": keys.column("n"), "square": square}))
    >>> Squares().look_up(pyarrow.record_batch({"n": [3, 4]})).rows.column("square").to_pylist()
    [9, 16]
    """

    is_async = False
    """True if several calls may be under way at once, unless a hint says otherwise."""
    blocks = True
    """True if a call may take long; then it is made in a thread, unless it is a coroutine."""

    def configure(self, config: Mapping[str, object]) -> None:  # noqa: B027
        """Take what is needed of the job's options; called once, before `open`.

        Args:
            config: option key -> value. Secrets among them belong into no message.
        """

    def open(self, context: RuntimeContext) -> None:  # noqa: B027
        """Prepare for calls; called once, before the first one.

        Raises:
            Exception: the table cannot be used; fails the job.
        """

    def close(self) -> None:  # noqa: B027
        """Release connections; called once."""

    @abstractmethod
    def look_up(self, keys: pyarrow.RecordBatch) -> LookupRows | Awaitable[LookupRows]:
        """Return the rows of some keys; may be `async def`.

        Args:
            keys: at least one, no two of them equal, without nulls; columns with the names and types of the table.

        Raises:
            ConnectionError, TimeoutError: the table is away for a while; the call is repeated `lookup.max-retries`
                times.
            Exception: anything else fails the job at once.
        """


@dataclass(frozen=True)
class TableLookup:
    """The way in which rows of a table are found by key.

    Args:
        function: asks the table.
        cache: the limits of rows that are remembered by key; None: each batch asks for its keys.
        max_retries: repetitions of a call that failed as the table was away.
        is_whole: all rows are in memory once the first were asked for; calls have no time-out then unless a hint says
            so.
    """

    function: LookupFunction
    cache: LookupCache | None = None
    max_retries: int = 3
    is_whole: bool = False


__all__ = ["LookupFailed", "LookupFunction", "LookupRows", "TableLookup"]
