"""The result of a statement: rows, or a job."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from rayflink.common.records.arrow_values import shaped
from rayflink.common.types import Row

from .conversion.pickled_values import objects_of
from .conversion.row_format import SHORT_KINDS, SqlFormat
from .display.html_tables import html_note, html_rows
from .plan.logical import Attribute
from .resolved_schema import ResolvedSchema
from .result_kind import ResultKind
from .table_schema import TableSchema
from .types import DataType, DataTypes, Root

if TYPE_CHECKING:
    from rayflink.common.job_client import JobClient


@dataclass(frozen=True)
class Printing:
    """The format in which `TableResult.print` shows values.

    Args:
        zone: in which instants are shown.
        widest: characters of a value without a fixed width, where rows are printed as they come.
        is_raw: the one value is shown as it is, without a table around it.
    """

    zone: str = "UTC"
    widest: int = 30
    is_raw: bool = False


PLAIN = Printing()


class TableResult:
    """The result of `execute_sql` and `Table.execute`.

    Args:
        schema: of the rows.
        rows: drawn once.
        job: the job that was started; None: there is none.
        changes: `print` shows what each row does.
        message: what `print` writes in the place of rows.
        printing: how `print` shows values.
    """

    def __init__(
        self, schema: Sequence[Attribute], rows: Iterable[Row], job: JobClient | None = None, changes: bool = False,
        message: str | None = None, printing: Printing = PLAIN,
    ) -> None:  # fmt: skip
        self._schema, self._rows, self._job, self._changes = tuple(schema), rows, job, changes
        self._message, self._printing = message, printing

    @property
    def zone(self) -> str:
        """Return the time zone in which instants are shown."""
        return self._printing.zone

    @property
    def is_message(self) -> bool:
        """Return whether `print` writes a message in the place of rows."""
        return self._message is not None

    def get_job_client(self) -> JobClient | None:
        """Return the job's client; None: no job was started, its rows are drawn, or it is detached (`run -d`)."""
        return self._job

    def get_table_schema(self) -> TableSchema:
        """Return names and types of the columns."""
        return TableSchema([column.name for column in self._schema], [column.type for column in self._schema])

    def get_resolved_schema(self) -> ResolvedSchema:
        """Return the columns."""
        return ResolvedSchema.physical(
            [column.name for column in self._schema], [column.type for column in self._schema]
        )

    def get_result_kind(self) -> int:
        """`ResultKind.SUCCESS` of a statement that was to be done, else `SUCCESS_WITH_CONTENT`."""
        return ResultKind.SUCCESS if self._message is not None else ResultKind.SUCCESS_WITH_CONTENT

    def wait(self, timeout_ms: int | None = None) -> None:
        """Wait until the job has ended; not at all where it goes on alone (`rayflink run -d`).

        Args:
            timeout_ms: at most so long; None: as long as it runs.

        Raises:
            JobFailed: it failed.
            TimeoutError: it has not ended by then.
        """
        if self._job is None:
            return
        future = self._job.get_job_execution_result()
        if timeout_ms is not None and not future.done_within(timeout_ms / 1000):
            raise TimeoutError(f"the job has not ended within {timeout_ms} ms")
        future.result()

    def collect(self) -> CloseableIterator:
        """Return the rows, as they come; an iterator that can be closed, also by `with`."""
        return self._rows if isinstance(self._rows, CloseableIterator) else CloseableIterator(iter(self._rows))

    def _repr_html_(self) -> str:
        """Return rows that are there in HTML, for notebooks; of a query its columns, as its rows are drawn once."""
        if self._message is not None:
            return html_note(self._message)
        if self._job is not None:
            return html_note(f"job {self._job.get_job_id()} writes {', '.join(column.name for column in self._schema)}")
        if not isinstance(self._rows, list):
            return html_rows(self._schema, [], self.zone) + html_note("rows are drawn once, by collect() or print()")
        if self._printing.is_raw:
            return "".join(f"<pre>{escape(str(row[0]))}</pre>" for row in self._rows)
        return html_rows(self._schema, self._rows, self.zone)

    def print(self) -> None:
        """Write the rows to the terminal as Flink's client does.

        >>> from rayflink.table.types import DataTypes
        >>> TableResult([Attribute("n", DataTypes.INT())], iter([Row(1), Row(None)])).print()
        +-------------+
        |           n |
        +-------------+
        |           1 |
        |        NULL |
        +-------------+
        2 rows in set
        """
        if self._message is not None:
            print(self._message)
            return
        if self._printing.is_raw:
            for row in self._rows:
                print(*row)
            return
        for line in printed(self._schema, self._rows, self._changes, self._printing):
            print(line)


class CloseableIterator:
    """Rows without the names of their fields, at any depth; drawn once, and can be closed.

    Args:
        rows: of the job.
        schema: their columns.
    """

    def __init__(self, rows: Any, schema: Sequence[Attribute] = ()) -> None:
        self._rows = rows
        shapes = [(index, shape) for index, column in enumerate(schema)
                  for shape in (objects_of(column.type), _unnamed_of(column.type))]  # fmt: skip
        self._nested = [(index, shape) for index, shape in shapes if shape is not None]

    @property
    def job(self) -> JobClient | None:
        """Return the client of the job that gives the rows; None: they are all there."""
        return getattr(self._rows, "job", None)

    def __iter__(self) -> CloseableIterator:
        return self

    def __next__(self) -> Row:
        row = next(self._rows)
        if not self._nested:
            return Row.of_kind(row.get_row_kind(), *row._values)
        values = list(row._values)
        for index, shape in self._nested:
            values[index] = shaped(shape, values[index])
        return Row.of_kind(row.get_row_kind(), *values)

    def next(self) -> Row:
        """Return the next row; raises StopIteration behind the last."""
        return next(self)

    def __enter__(self) -> CloseableIterator:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Cancel the job, where it has not ended."""
        close = getattr(self._rows, "close", None)
        if close is not None:
            close()


def _unnamed_of(kind: DataType) -> Callable[[Any], Any] | None:
    """Return the function that takes the names from the rows within a value; None: there are none."""
    if kind.root is Root.ROW:
        fields = [_unnamed_of(field.type) for field in kind.fields]
        return lambda row: Row(*(shaped(shape, value) for shape, value in zip(fields, row, strict=True)))
    if kind.root is Root.ARRAY:
        element = _unnamed_of(kind.items[0])
        return None if element is None else lambda values: [shaped(element, value) for value in values]
    if kind.root is Root.MAP:
        key, item = map(_unnamed_of, kind.items)
        if key is None and item is None:
            return None
        return lambda pairs: {shaped(key, name): shaped(item, value) for name, value in pairs.items()}
    return None


def done(message: str = "OK") -> TableResult:
    """Return the result of a statement that gives no rows."""
    return TableResult([Attribute("result", DataTypes.STRING())], [Row(message)], message=message)


def raw(text: str) -> TableResult:
    """Return a text of several lines, which is printed as it is."""
    return TableResult([Attribute("result", DataTypes.STRING())], [Row(text)], printing=Printing(is_raw=True))


def printed(schema: Sequence[Attribute], rows: Iterable[Row], changes: bool, printing: Printing) -> Iterator[str]:
    """Yield the lines of a printed table.

    Columns are as wide as their values where these are known, else as their types, so rows are printed as they come.
    """
    strings = [SqlFormat(zone=printing.zone).of(column.type) for column in schema]
    widths = [max(_width(column.type, printing.widest), len(column.name)) for column in schema]
    if isinstance(rows, list):
        shown = [[text(value) for text, value in zip(strings, row, strict=True)] for row in rows]
        widths = [max([len(column.name), *(len(row[index]) for row in shown)]) for index, column in enumerate(schema)]
    names = [column.name for column in schema]
    if changes:
        widths, names = [2, *widths], ["op", *names]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    yield rule
    yield "|" + "|".join(f" {_cut(name, width):>{width}} " for name, width in zip(names, widths, strict=True)) + "|"
    yield rule
    count = 0
    for row in rows:
        count += 1
        values = [text(value) for text, value in zip(strings, row, strict=True)]
        if changes:
            values = [SHORT_KINDS[row.get_row_kind()], *values]
        yield (
            "|"
            + "|".join(f" {_cut(value, width):>{width}} " for value, width in zip(values, widths, strict=True))
            + "|"
        )
    if not count:
        yield "Empty set"
        return
    yield rule
    yield f"{count} row{'s' if count != 1 else ''} in set"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(0, width - 3)] + "..."


def _width(kind: DataType, widest: int) -> int:
    """Characters that a column takes.

    Source: apache/flink PrintStyle and TableauStyle.columnWidthsByType.
    """
    fixed = {Root.BOOLEAN: 7, Root.TINYINT: 4, Root.SMALLINT: 6, Root.INT: 11, Root.BIGINT: 20, Root.DATE: 10,
             Root.TIME: 8}  # fmt: skip
    if kind.root in fixed:
        return fixed[kind.root]
    if kind.root is Root.DECIMAL:
        return kind.precision + 2
    if kind.is_timestamp:
        return 20 + kind.precision if kind.precision else 19
    return widest
