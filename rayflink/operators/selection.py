"""The records of each selected output of a split operator: the run-time half of `split` and `select`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rayflink.common.functions.callables import SplitBy
from rayflink.common.records.batches import ArrowBatch, Batch, RowBatch, rows_of

from .base import UserCodeError, shortened


@dataclass(frozen=True)
class Selection:
    """The records to which one of an operator's output selectors gave one of these names.

    Args:
        selector: position of the output selector in its operator.
        names: wanted names, at least one.
    """

    selector: int
    names: frozenset[str]


class SplitBatch:
    """A batch whose records go to the outputs that the selectors name; each selector is called once a record.

    Args:
        batch: the records.
        selectors: record -> names of outputs.
    """

    def __init__(self, batch: Batch, selectors: tuple[SplitBy, ...]) -> None:
        self._batch, self._selectors = batch, selectors
        self._names: dict[int, list[frozenset[str]]] = {}

    def part(self, selection: Selection | None) -> Batch:
        """Return the records an output gets, in order; without a selection all of them.

        Raises:
            UserCodeError: a selector raised, or gave something that is no name.
        """
        if selection is None:
            return self._batch
        if selection.selector not in self._names:
            self._names[selection.selector] = self._names_by(self._selectors[selection.selector])
        names_of_records = self._names[selection.selector]
        indices = [index for index, names in enumerate(names_of_records) if not selection.names.isdisjoint(names)]
        return self._batch if len(indices) == len(names_of_records) else _rows_at(self._batch, indices)

    def _names_by(self, selector: SplitBy) -> list[frozenset[str]]:
        names = []
        for record in rows_of(self._batch):
            try:
                names.append(_as_names(selector.call(record)))
            except (Exception, SystemExit) as error:
                raise UserCodeError("split", selector.call_site, shortened(record), "select") from error
        return names


def _as_names(selected: Iterable[Any] | None) -> frozenset[str]:
    if selected is None:
        return frozenset()
    names = (selected,) if isinstance(selected, str) else tuple(selected)
    for name in names:
        if not isinstance(name, str):
            problem = f"an output selector gave {name!r:.80} as the name of an output, wanted a str"
            raise TypeError(f"{problem}; return a list of names, an empty one for no output")
    return frozenset(names)


def _rows_at(batch: Batch, indices: list[int]) -> Batch:
    if isinstance(batch, ArrowBatch):
        return ArrowBatch(batch.data.take(indices), None if batch.timestamps is None else batch.timestamps[indices])
    values, stamps = batch.values, batch.timestamps
    return RowBatch([values[i] for i in indices], None if stamps is None else [stamps[i] for i in indices])


__all__ = ["SplitBatch", "Selection"]
