"""Records to the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from rayflink.common.connector_base.sink import Sink, SinkWriter, WriterContext, all_or_named
from rayflink.common.records.batches import Batch, rows_of
from rayflink.common.text_output.safe_write import write_text


class PrintSink(Sink):
    """Writes each record as one line, in Flink's form: `identifier:N> record`.

    `N` is the subtask counted from one and stands there only when the parallelism is above one; without an identifier
    its part is left out.

    Args:
        identifier: put before each line.
        stderr: write to standard error instead of standard output.
        to_text: gives the text of a record.
    """

    def __init__(self, identifier: str = "", stderr: bool = False, to_text: Callable[[Any], str] = str) -> None:
        self._identifier, self._stderr, self._to_text = identifier, stderr, to_text

    @property
    def name(self) -> str:  # type: ignore[override]
        """Return the operator's name where the user gave none."""
        return f"Sink: Print to Std. {'Err' if self._stderr else 'Out'}"

    def create_writer(self, ctx: WriterContext) -> SinkWriter:
        parts = [self._identifier] if self._identifier else []
        if ctx.parallelism > 1:
            parts.append(str(ctx.subtask + 1))
        return _PrintWriter(":".join(parts) + "> " if parts else "", self._stderr, self._to_text)


class _PrintWriter(SinkWriter):
    def __init__(self, prefix: str, stderr: bool, to_text: Callable[[Any], str]) -> None:
        self._prefix, self._stderr, self._to_text = prefix, stderr, to_text

    def write(self, batch: Batch) -> None:
        prefix, to_text = self._prefix, self._to_text
        stream = sys.stderr if self._stderr else sys.stdout
        lines = all_or_named(lambda records: list(map(to_text, records)), to_text, rows_of(batch))
        write_text(stream, "".join([f"{prefix}{text}\n" for text in lines]))
        stream.flush()

    def flush(self, end_of_input: bool) -> None:
        pass

    def close(self) -> None:
        pass
