"""Lines of a file that cannot be read: the search for them in a block, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rayflink.common.connector_base.malformed_records import MalformedRecord, MalformedRecords
from rayflink.common.errors import described
from rayflink.common.metrics.metric_group import Counter, MetricGroup
from rayflink.common.metrics.metric_names import NUM_RECORDS_IN_ERRORS
from rayflink.common.records.batches import RowBatch, Tagged
from rayflink.common.text_output.logs import get_logger

from ..files.file_blocks import line_number

log = get_logger(__name__)


@dataclass(frozen=True)
class MalformedLine:
    """A line that cannot be read.

    Args:
        index: of the line in its block, from 0.
        line: its bytes, without the line end.
        error: the reason.
    """

    index: int
    line: bytes
    error: str


@dataclass(frozen=True)
class MalformedLines:
    """The policy for such lines, and the counter of them.

    Args:
        policy: by default they fail the job.
        errors: counts them; None: they are not counted.
    """

    policy: MalformedRecords = MalformedRecords()
    errors: Counter | None = None

    @property
    def fails(self) -> bool:
        """True if such a line is an error."""
        return self.policy.fails

    def counting(self, metrics: MetricGroup) -> MalformedLines:
        """Return the same with a counter of a reader's."""
        return self if self.fails else replace(self, errors=metrics.counter(NUM_RECORDS_IN_ERRORS))

    def report(self, path: str, offset: int, lines: Sequence[MalformedLine]) -> Tagged | None:
        """Count lines of a block, and return the records for the side output; None: there are none.

        Args:
            offset: of the block in the file, in bytes.
        """
        if not lines:
            return None
        is_first = self.errors is None or not self.errors.get_count()
        if self.errors is not None:
            self.errors.inc(len(lines))
        if self.policy.tag is None and not is_first:
            return None
        first = line_number(path, offset)
        if is_first:
            log.warning("the first malformed line is in %s, line %d: %s", path, first + lines[0].index, lines[0].error)
        if self.policy.tag is None:
            return None
        records = [MalformedRecord(each.line, each.error, f"{path!r}, line {first + each.index}") for each in lines]
        return Tagged(self.policy.tag.tag_id, RowBatch(records))


def search(indices: Sequence[int], attempt: Callable[[Sequence[int]], object]) -> dict[int, Exception]:
    """Return the lines that fail alone, with their errors; halves are tried, not each.

    >>> search(range(9), lambda part: [1 / (number - 6) for number in part])
    {6: ZeroDivisionError('division by zero')}

    Args:
        indices: of the lines of a block.
        attempt: raises ValueError or ArithmeticError where one of some lines cannot be read.
    """
    try:
        attempt(indices)
    except (ValueError, ArithmeticError) as error:
        if len(indices) == 1:
            return {indices[0]: error}
        middle = len(indices) // 2
        return {**search(indices[:middle], attempt), **search(indices[middle:], attempt)}
    return {}


def malformed(lines: Sequence[bytes], failures: dict[int, Exception]) -> list[MalformedLine]:
    """Return the lines of a block that failed."""
    ordered = sorted(failures.items())
    return [MalformedLine(index, lines[index].removesuffix(b"\r"), described(error)) for index, error in ordered]


__all__ = ["MalformedLine", "MalformedLines", "malformed", "search"]
