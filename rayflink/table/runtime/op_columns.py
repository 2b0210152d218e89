"""Conversion of the kinds of rows to a column of strings, and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rayflink.common.records.batches import ArrowBatch, Batch, Element
from rayflink.common.records.row_kinds import kinds_of, with_kinds, without_kinds
from rayflink.common.types import RowKind
from rayflink.operators.base import Operator
from rayflink.operators.user_function import UserCode

from ..plan.typed import RowError

Codes = Sequence[tuple[str, RowKind]]


class KindsToStrings(Operator):
    """Gives each change as a new row, with a text of what it does before its columns; those without a text not at all.

    Args:
        codes: strings and what they stand for.
        schema: of the result.
    """

    def __init__(self, codes: Codes, schema: pa.Schema) -> None:
        self._strings = [next((code for code, kind_of_code in codes if kind_of_code is kind), None) for kind in RowKind]
        self._schema = schema

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        kinds = kinds_of(batch.data)
        numbers = np.zeros(len(batch), np.int8) if kinds is None else kinds
        strings = pa.array(self._strings, pa.string()).take(pa.array(numbers))
        columns = [strings, *without_kinds(batch.data).columns]
        result = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        if strings.null_count:
            result = result.filter(strings.is_valid())
        if result.num_rows:
            yield ArrowBatch(result)


class StringsToKinds(Operator):
    """Gives each row as the change that the text of a column says, without the column.

    Args:
        op: its number.
        codes: strings and what they stand for.
        schema: of the result.
    """

    def __init__(self, op: int, codes: Codes, schema: pa.Schema) -> None:
        self._op, self._schema = op, schema
        self._strings = [code for code, _ in codes]
        self._kinds = np.array([kind.value for _, kind in codes], np.int8)

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        if not len(batch):
            return
        strings: Any = batch.data.column(self._op)
        with UserCode(self.ctx, "from_changelog"):
            places = pc.index_in(strings, pa.array(self._strings, pa.string()))
            if places.null_count:
                code = strings.filter(places.is_null())[0].as_py()
                name = batch.data.schema.names[self._op]
                problem = f"a row has {code!r} in {name!r}, wanted is one of {', '.join(self._strings)}"
                raise RowError(problem, "leave such rows out, or map the text by op_mapping")
        kinds = self._kinds[places.to_numpy()]
        columns = [column for index, column in enumerate(batch.data.columns) if index != self._op]
        result = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        yield ArrowBatch(with_kinds(result, kinds) if kinds.any() else result)


__all__ = ["KindsToStrings", "StringsToKinds"]
