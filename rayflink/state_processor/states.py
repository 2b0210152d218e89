"""One state of a savepoint: its rows as Python objects and as Arrow tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from rayflink.operators.windows.window import TimeWindow
from rayflink.state.errors import StateError
from rayflink.state.storage.manifest import StateSummary
from rayflink.state.storage.state_report import ENUMERATOR, RAW_KEYED, USER

from .columns import NoColumnError, array, common_field
from .contents import OperatorContents, entry_value
from .rows import EXPIRING, TIMERS, StateRow, rows_in

if TYPE_CHECKING:
    import pyarrow

_BATCH_ROWS = 65_536
_COLUMNS = ("subtask", "key", "window_start", "window_end", "namespace", "position", "map_key", "value", "time",
            "domain", "last_access", "expires")  # fmt: skip
_SPLITS = "source-splits"
KEYED_KINDS = frozenset({"value", "list", "map", "reducing", "aggregating", TIMERS})


class UnfitValueError(StateError):
    """Raised when state does not fit into the requested columns.

    Args:
        state: its name.
        actual: the value, and whose it is; or the columns that there are.
        wanted: the column.
    """

    def __init__(self, state: str, actual: str, wanted: str) -> None:
        super().__init__(state, actual, wanted)
        self.state, self.actual, self.wanted = state, actual, wanted

    def __str__(self) -> str:
        return (
            f"state {self.state!r} does not fit into the column {self.wanted}: found {self.actual}; give another "
            "schema, or none, and the columns are those of the values that there are"
        )


class SavedState:
    """One state of an operator, read lazily.

    Its rows are `StateRow`s. As a table it has the columns `key`, then `window_start` and `window_end` (epoch
    milliseconds) where it belongs to time windows, `namespace` where it belongs to anything else; `position` of lists,
    `map_key` of maps; `value`; `last_access` and, where the savepoint says the time to live, `expires` (epoch
    milliseconds) of state that expires. Timers have `time` and `domain` ("event" or "processing") instead of `value`;
    operator state has `subtask` instead of `key`, broadcast state neither.

    Args:
        summary: name, kind and what is known of its values.
        read: gives its rows, the same each time.
    """

    def __init__(self, summary: StateSummary, read: Callable[[], Iterator[StateRow]]) -> None:
        self.summary, self._read = summary, read
        self._schema: pyarrow.Schema | None = None

    @property
    def name(self) -> str:
        """Return the name of the state, as its descriptor has it."""
        return self.summary.name

    @property
    def kind(self) -> str:
        """Return the kind: for keyed state "value", "list", "map", "reducing", "aggregating" or "timers"; for
        operator state "split list", "union list" or "broadcast"; "splits" and "enumerator" for a source; "raw keyed"
        for the user's bytes.
        """
        return self.summary.kind.removeprefix(EXPIRING)

    @property
    def is_keyed(self) -> bool:
        """Return whether the state is keyed state or timers."""
        return self.kind in KEYED_KINDS

    @property
    def expires(self) -> bool:
        """Return whether the state has a time to live."""
        return self.summary.kind.startswith(EXPIRING)

    @property
    def ttl_ms(self) -> int | None:
        """Return its time to live in milliseconds; None where it has none, or the savepoint does not say."""
        text = self.summary.ttl.partition(" ")[0]
        return int(text) if text.isdigit() else None

    def rows(self) -> Iterator[StateRow]:
        """Yield all rows, key group by key group, as they are stored: values are of the program's classes."""
        return self._read()

    def count(self) -> int:
        """Return the number of rows."""
        return sum(1 for _ in self._read())

    @property
    def schema(self) -> pyarrow.Schema:
        """Return the columns; all rows are read once to find them."""
        import pyarrow as pa

        if self._schema is None:
            self._schema = joined_schema(
                pa.schema([array(values)[1].with_name(name) for name, values in columns.items() if values is not None])
                for _, columns in self._column_lists(_BATCH_ROWS)
            )
        return self._schema

    def batches(self, schema: pyarrow.Schema | None = None, most: int = _BATCH_ROWS) -> Iterator[pyarrow.RecordBatch]:
        """Yield the table in parts; only a part, and one key group, is in memory at a time.

        Args:
            schema: the columns that are wanted; None: all, of types that fit the values.
            most: rows of a part.

        Raises:
            UnfitValueError: there is no such column, or a value does not fit into it.
        """
        import pyarrow as pa

        wanted: pyarrow.Schema = self.schema if schema is None else schema
        for size, columns in self._column_lists(most):
            arrays = []
            for field in wanted:
                if field.name not in columns:
                    there = ", ".join(columns)
                    raise UnfitValueError(self.name, f"{self.kind} state with the columns {there}", repr(field.name))
                values = columns[field.name]
                try:
                    arrays.append(array([None] * size if values is None else values, field)[0])
                except (NoColumnError, pa.ArrowException, OverflowError) as error:
                    whose = columns["key"] or columns["subtask"] or values or ()
                    raise self._unfit(values or (), whose, field) from error
            yield pa.RecordBatch.from_arrays(arrays, schema=wanted)

    def to_arrow(self) -> pyarrow.Table:
        """Return the whole table."""
        import pyarrow as pa

        schema = self.schema
        return pa.Table.from_batches(self.batches(), schema)

    def to_polars(self) -> Any:
        """Return the whole table as a polars DataFrame; polars must be installed."""
        try:
            import polars
        except ImportError as error:
            raise ImportError("to_polars() needs polars, which is not installed; `pip install polars`") from error
        return polars.from_arrow(self.to_arrow())

    def __repr__(self) -> str:
        return f"<{self.summary.kind} state {self.name!r}>"

    def _unfit(self, values: Sequence[Any], whose: Sequence[Any], field: pyarrow.Field) -> UnfitValueError:
        """Return the error for the first of the values that is not of the field's type."""
        import pyarrow as pa

        actual = "values that have no type in common"
        for key, value in zip(whose, values, strict=True):
            try:
                array([value], field)
            except (NoColumnError, pa.ArrowException, OverflowError):
                actual = f"{value!r:.100} ({type(value).__qualname__}) of key {key!r:.100}"
                break
        return UnfitValueError(self.name, actual, f"{field.name!r} of type {field.type}")

    def _column_lists(self, most: int) -> Iterator[tuple[int, dict[str, list[Any] | None]]]:
        """Yield rows in parts: their number, and column -> values, None where all of them have none."""
        rows = self._read()
        part = list(islice(rows, most))
        yield len(part), self._columns(part)
        while part := list(islice(rows, most)):
            yield len(part), self._columns(part)

    def _columns(self, rows: list[StateRow]) -> dict[str, list[Any] | None]:
        columns: dict[str, list[Any] | None] = dict.fromkeys(_COLUMNS)
        kind, values = self.kind, [row.value for row in rows]
        if self.is_keyed:
            columns["key"] = [row.key for row in rows]
        elif kind not in ("broadcast", "enumerator"):
            columns["key" if kind == "raw keyed" else "subtask"] = [row.key for row in rows]
        if kind in ("map", "broadcast"):
            columns["map_key"] = [row.part for row in rows]
        elif kind == "list" or not self.is_keyed and kind not in ("enumerator", "raw keyed"):
            columns["position"] = [row.part for row in rows]
        columns["value"] = values
        if kind == TIMERS:
            columns["value"], columns["time"] = None, values
            columns["domain"] = [domain_of(self.name)] * len(rows)
        windows = [row.namespace if isinstance(row.namespace, TimeWindow) else None for row in rows]
        if any(window is not None for window in windows):
            columns["window_start"] = [None if window is None else window.start for window in windows]
            columns["window_end"] = [None if window is None else window.end for window in windows]
        others = [None if isinstance(row.namespace, TimeWindow) else row.namespace for row in rows]
        if any(other is not None for other in others):
            columns["namespace"] = others
        if self.expires:
            columns["last_access"] = [row.last_access for row in rows]
            if self.ttl_ms is not None:
                ttl = self.ttl_ms
                columns["expires"] = [None if row.last_access is None else row.last_access + ttl for row in rows]
        return columns


def joined_schema(parts: Iterable[pyarrow.Schema]) -> pyarrow.Schema:
    """Return the columns of a table, from the columns of its parts."""
    import pyarrow as pa

    fields: dict[str, Any] = {}
    for part in parts:
        for field in part:
            fields[field.name] = common_field(field.name, fields.get(field.name), field)
    return pa.schema([fields[name] for name in _COLUMNS if name in fields])


def domain_of(queue: str) -> str:
    """Return the clock of a queue of timers: "event" or "processing"."""
    return "processing" if queue.endswith("/processing") else "event"


def keyed_state(summary: StateSummary, contents: OperatorContents) -> SavedState:
    """Return a keyed state, or a queue of timers."""
    kind = summary.kind.removeprefix(EXPIRING)

    def read() -> Iterator[StateRow]:
        for _, content in contents.groups():
            yield from rows_in(content, summary.name, kind)

    return SavedState(summary, read)


def list_state(name: str, contents: OperatorContents, said: StateSummary | None = None) -> SavedState:
    """Return the state of an operator in one of its lists.

    Args:
        said: what the savepoint says of it.
    """
    mode, _ = contents.lists()[name]
    kind = "splits" if name == _SPLITS else "broadcast" if mode == "broadcast" else f"{mode} list"

    def read() -> Iterator[StateRow]:
        _, entry_lists = contents.lists()[name]
        if kind == "broadcast":
            copy = next((entries for entries in entry_lists if entries), ())
            for part, value in (entry_value(name, entry) for entry in copy):
                yield StateRow(None, value, None, part)
            return
        for subtask, entries in enumerate(entry_lists):
            for position, entry in enumerate(entries):
                yield StateRow(subtask, entry_value(name, entry), None, position)

    return SavedState(said or StateSummary(name.removeprefix(USER), kind, ""), read)


def single_state(name: str, kind: str, rows: Iterable[StateRow]) -> SavedState:
    """Return a state that is in memory."""
    rows = tuple(rows)
    return SavedState(StateSummary(name, kind, ""), lambda: iter(rows))


__all__ = ["ENUMERATOR", "KEYED_KINDS", "RAW_KEYED", "SavedState", "USER", "UnfitValueError", "domain_of",
           "joined_schema", "keyed_state", "list_state", "single_state"]  # fmt: skip
