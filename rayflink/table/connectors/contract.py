"""The interface of table connectors: options in, columns in or out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from rayflink.common.configuration import shown_value
from rayflink.common.watermarks import WatermarkStrategy

from ..errors import SqlError, nearest
from ..plan.changelog import Change
from ..plan.logical import Schema
from ..plan.typed import Expr
from ..runtime.lookups.lookup_function import TableLookup
from ..types import DataType
from .statistics.table_statistics import TableStatistics

if TYPE_CHECKING:
    from rayflink.datastream import StreamExecutionEnvironment
    from rayflink.datastream.streams.step import Step
    from rayflink.datastream.streams.stream import DataStream


OptionValues: TypeAlias = dict[str, Any]
"""Name of an option -> its parsed value."""


class TableSource(ABC):
    """Gives the rows of a table as columns.

    Frozen: what is pushed into it makes another one.
    """

    is_bounded = True
    rows: int | None = None
    """Their number, where it is known."""
    changes = Change.INSERT
    """The kinds of change of its rows."""
    produces_update_before = True
    """True if updates include the row before."""
    key: tuple[str, ...] = ()
    """Names of the columns by which updates find the row that they replace, where they lack the row before."""
    takes_constant_keys = True
    """True if rows are looked up by constants, too; else these are conditions, where there is another key."""
    aligns_watermarks = False
    """True if its watermarks also say how fast it and others read, as those of an alignment group do."""
    instead = "let the stream have UPDATE_BEFORE rows, too: ChangelogMode.all()"
    """The remedy where a query needs the row before an update, which the source does not have."""

    @abstractmethod
    def stream(self, env: StreamExecutionEnvironment, strategy: WatermarkStrategy | None, name: str) -> DataStream:
        """Return a stream of Arrow batches with the columns of the source, in their order and types."""

    def projected(self, names: Sequence[str]) -> TableSource | None:
        """Return the source with these columns alone, in this order; None: it cannot leave columns out.

        Args:
            names: of the table's columns, also of those that the source leaves out already.
        """
        return None

    def narrowed(self, types: Mapping[str, DataType]) -> TableSource | None:
        """Return the source with fewer fields in the rows of some columns; None: it can only read all fields.

        Args:
            types: name of a column -> its type in the table with some of the fields only, which replaces what an
                earlier call said of the column.
        """
        return None

    def filtered(self, conditions: Sequence[Expr]) -> tuple[TableSource, Sequence[Expr]] | None:
        """Return the same without rows for which one of the conditions is false or NULL; None: it can leave none out.

        A source need not leave out all of them: conditions that it gives back are checked behind it. No watermarks
        are made of its rows.

        Args:
            conditions: all of them hold; deterministic. Their columns have the names of the source's; the numbers are
                those in the scan's schema.
        """
        return None

    def limited(self, rows: int) -> TableSource | None:
        """Return the same with at least this many of its rows, if it has them; None: it gives all in any case."""
        return None

    def lookup(self, keys: Sequence[str]) -> TableLookup | None:
        """Return how rows are found by key, for a join with FOR SYSTEM_TIME AS OF; None: they are only read as a whole.

        The rows that are found have the columns of the source, in their types. What was pushed into it as a filter
        holds for them, too.

        Args:
            keys: names of columns of the table, also of those that the source leaves out.
        """
        return None

    def statistics(self) -> TableStatistics | None:
        """Return statistics of the rows without reading them; None: there are none."""
        return None if self.rows is None else TableStatistics(float(self.rows), "counted")

    def in_order(self) -> TableSource:
        """Return the same, with rows in the order in which each of its readers gives them."""
        return self

    def pushed(self) -> tuple[str, ...]:
        """Return the parts of the query that were pushed into the source, as EXPLAIN shows them."""
        return ()


class TableSink(ABC):
    """Takes the rows of a query as columns."""

    is_append_only = True
    """True if it takes new rows only, and no changes of rows."""
    requires_update_before = True
    """True if updates must include the row before; false where rows have a key."""
    key: tuple[str, ...] = ()
    """Names of the columns by which a row replaces another; (): none does, or the whole row says which."""
    row_key: tuple[str, ...] = ()
    """Names of the columns of the PRIMARY KEY, by which the changes of a row may be kept together."""
    parallelism: int | None = None
    """Subtasks that write, as 'sink.parallelism' says; None: as many as the query has."""
    loses_order = False
    """True if it has a parallelism of its own, and the changes of a row may get to several of its subtasks."""
    reads_watermarks = True
    """False if watermarks and event time are nothing to it, so that a query may do without them."""
    instead = "write into a table that takes changes, such as one of 'print'"
    """The remedy where it does not take the changes of a query."""

    def overwriting(self, partition: Mapping[str, Any]) -> TableSink | None:
        """Return the same sink replacing existing rows once all new ones have come; None: it cannot.

        Args:
            partition: values of the first partition keys, as pyarrow's scalars, where INSERT gives them.
        """
        return None

    @abstractmethod
    def attach(self, stream: DataStream, name: str) -> Step:
        """End a stream of Arrow batches here, and return the last step."""


@dataclass(frozen=True)
class Option:
    """An option of a connector.

    Args:
        parse: text -> value; raises ValueError.
        default: None where it is required or has none.
        required: whether it must be given.
    """

    parse: Callable[[str], Any]
    default: Any = None
    required: bool = False
    about: str = ""


@dataclass(frozen=True)
class Connected:
    """The table and environment that a connector makes a source or sink for.

    Args:
        table: full name, for messages.
        schema: the physical and metadata columns, in their order.
        options: by name, parsed; absent ones have their defaults.
        formats: options of the format, without its name before them.
        partition_keys: columns by which the table is divided.
        metadata: numbers of the metadata columns, with their keys.
        primary_key: names of the columns of the primary key.
        zone: the session's time zone.
    """

    table: str
    schema: Schema
    options: OptionValues
    formats: Mapping[str, str]
    partition_keys: tuple[str, ...] = ()
    metadata: Mapping[int, str] = field(default_factory=dict)
    primary_key: tuple[str, ...] = ()
    zone: str = "UTC"


class Connector:
    """A kind of tables; its `name` is what the option `connector` says."""

    name = ""
    options: Mapping[str, Option] = {}
    """Name -> option."""
    metadata_keys: frozenset[str] = frozenset()
    """The metadata that it provides beside rows."""
    prefixes: tuple[str, ...] = ()
    """Options that begin so are passed on as they are."""

    def source(self, table: Connected) -> TableSource:
        """Return a source that reads the table.

        Raises:
            SqlError: it can only be written.
        """
        remedy = f"connector {self.name!r} only writes: read another table"
        raise SqlError(f"{table.table} cannot be read", remedy)

    def sink(self, table: Connected) -> TableSink:
        """Return a sink that writes the table.

        Raises:
            SqlError: it can only be read.
        """
        remedy = f"connector {self.name!r} only reads: insert into another table"
        raise SqlError(f"{table.table} cannot be written", remedy)

    def check(self, table: Connected) -> None:
        """Check a definition when it is made: its columns and options together.

        Raises:
            SqlError: the table can be neither read nor written.
        """

    def known_metadata(self, options: OptionValues) -> frozenset[str]:
        """Return the metadata of a table with these options, which are parsed."""
        return self.metadata_keys

    def passed_prefixes(self, options: Mapping[str, str]) -> tuple[str, ...]:
        """Return the beginnings of options that are passed on, for a table with these options as they are written."""
        return self.prefixes

    def parsed(self, table: str, options: Mapping[str, str]) -> tuple[OptionValues, dict[str, str]]:
        """Return the options, and those that are passed on.

        Raises:
            SqlError: one is missing, unknown, or of another form.
        """
        values: OptionValues = {}
        passed: dict[str, str] = {}
        prefixes = self.passed_prefixes(options)
        for key, text in options.items():
            if key == "connector":
                continue
            option = self.options.get(key)
            if option is None:
                if not prefixes or not key.startswith(prefixes):
                    names = sorted(self.options)
                    problem = f"{table} has an option {key!r}, which {self.name!r} does not know{nearest(key, names)}"
                    raise SqlError(problem, f"its options are {', '.join(names)}")
                passed[key] = text
                continue
            try:
                values[key] = option.parse(text)
            except ValueError as error:
                problem = f"option {key!r} of {table} is {shown_value(key, text)!r}"
                raise SqlError(problem, f"expected {error}") from error
        missing = [key for key, option in self.options.items() if option.required and key not in values]
        if missing:
            raise SqlError(f"{table} has no option {missing[0]!r}", f"connector {self.name!r} needs it")
        defaults = {key: option.default for key, option in self.options.items()}
        return {**defaults, **values}, passed
