"""`nexmark`: persons, auctions and bids as one table of events, with the columns and options of Flink's connector."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rayflink.common.watermarks import WatermarkStrategy
from rayflink.connectors.nexmark import AUCTION, BID, PERSON, Nexmark, NexmarkNumbers

from ..conversion.arrow_columns import arrow_schema
from ..errors import SqlError, nearest
from ..plan.logical import Attribute
from .contract import Connected, Connector, Option, TableSource
from .numbered_rows import NumberedRows
from .print_and_blackhole import truth

if TYPE_CHECKING:
    import numpy as np
    import pyarrow
    from numpy.typing import NDArray

    from rayflink.datastream import StreamExecutionEnvironment
    from rayflink.datastream.streams.stream import DataStream

_KINDS = {"person": PERSON, "auction": AUCTION, "bid": BID}
_EVENT_TYPE = "event_type"


class NexmarkEvents(NumberedRows):
    """Events by their numbers.

    Args:
        rules: of the events.
        schema: `event_type`, and a struct for each wanted kind, which is null where the event is of another.
    """

    def __init__(self, rules: Nexmark, schema: pyarrow.Schema) -> None:
        self._rules, self._schema = rules, schema

    def rows(self, numbers: NDArray[np.int64], now_ms: int) -> pyarrow.RecordBatch:
        import pyarrow

        kinds = self._rules.kinds(numbers)
        events = [
            pyarrow.array(kinds)
            if field.name == _EVENT_TYPE
            else self._events(field.type, numbers, kinds == _KINDS[field.name], _KINDS[field.name])
            for field in self._schema
        ]
        return pyarrow.RecordBatch.from_arrays(events, schema=self._schema)

    def _events(self, struct: pyarrow.StructType, numbers: Any, of_kind: Any, kind: int) -> pyarrow.Array:
        """Events of a kind, in their places."""
        import numpy
        import pyarrow

        columns = _columns(self._rules, kind)(numbers[of_kind])
        fields = [struct.field(index) for index in range(struct.num_fields)]
        events = pyarrow.StructArray.from_arrays([columns[field.name] for field in fields], fields=fields)
        return events.take(pyarrow.array(numpy.cumsum(of_kind) - 1, mask=~of_kind))


def _columns(rules: Nexmark, kind: int) -> Callable[[Any], dict[str, pyarrow.Array]]:
    return (rules.persons, rules.auctions, rules.bids)[kind]


@dataclass(frozen=True)
class NexmarkSource(TableSource):
    """Events.

    Args:
        count: how many; None: no end.
        per_second: at most this many; None: as fast as they are taken.
    """

    schema: tuple[Attribute, ...]
    rules: Nexmark
    count: int | None
    per_second: int | None

    @property
    def is_bounded(self) -> bool:  # type: ignore[override]
        """Return whether the events end."""
        return self.count is not None

    def projected(self, names: Sequence[str]) -> TableSource:
        return replace(
            self, schema=tuple(next(column for column in self.schema if column.name == name) for name in names)
        )

    def stream(self, env: StreamExecutionEnvironment, strategy: WatermarkStrategy | None, name: str) -> DataStream:
        numbers = NexmarkNumbers(self.count, self.per_second)
        return NexmarkEvents(self.rules, arrow_schema(self.schema)).stream(env, numbers, strategy, name, "Events")


def _count(text: str) -> int:
    if not text.isdecimal():
        raise ValueError("a whole number from 0 on")
    return int(text)


def _size(text: str) -> int:
    return _count(text.strip().lower().removesuffix("b").strip())


def _at_least_one(text: str) -> int:
    if not _count(text):
        raise ValueError("a whole number from 1 on")
    return int(text)


class NexmarkConnector(Connector):
    """Tables of Nexmark's events."""

    name = "nexmark"
    options: Mapping[str, Option] = {
        "events.num": Option(_count, 0, about="0: no end"),
        "first-event.rate": Option(_at_least_one, 10_000, about="events a second of event time"),
        "next-event.rate": Option(_at_least_one, None, about="the same"),
        "max-emit-speed": Option(truth, True, about="false: by event time"),
        "person.proportion": Option(_count, 1),
        "auction.proportion": Option(_count, 3),
        "bid.proportion": Option(_count, 46),
        "person.avg-size": Option(_size, 200),
        "auction.avg-size": Option(_size, 500),
        "bid.avg-size": Option(_size, 100),
        "bid.hot-ratio.auctions": Option(_at_least_one, 2),
        "auction.hot-ratio.sellers": Option(_at_least_one, 4),
        "bid.hot-ratio.bidders": Option(_at_least_one, 4),
        "seed": Option(_count, 0, about="another one gives other events"),
    }

    def source(self, table: Connected) -> TableSource:
        options = table.options
        rate = options["first-event.rate"]
        if options["next-event.rate"] not in (None, rate):
            problem = f"{table.table} has a next-event.rate of {options['next-event.rate']} and a first of {rate}"
            raise SqlError(problem, "give both the same value: the rate does not change")
        proportions = tuple(options[f"{kind}.proportion"] for kind in _KINDS)
        if not proportions[PERSON] or not proportions[AUCTION]:
            remedy = "give person.proportion and auction.proportion at least 1: there are none to bid for otherwise"
            raise SqlError(f"the events of {table.table} have the proportions {proportions}", remedy)
        rules = Nexmark(
            proportions=proportions,
            events_per_second=rate,
            sizes=tuple(options[f"{kind}.avg-size"] for kind in _KINDS),
            hot=tuple(options[key] for key in options if ".hot-ratio." in key),
            seed=options["seed"],
        )
        _check(table, rules)
        return NexmarkSource(
            table.schema, rules, options["events.num"] or None, None if options["max-emit-speed"] else rate
        )


def _check(table: Connected, rules: Nexmark) -> None:
    """Check whether the columns are those of the events.

    Raises:
        SqlError: they are not.
    """
    for column in table.schema:
        if column.name == _EVENT_TYPE and str(column.type.nullable()) == "INT":
            continue
        if column.name not in _KINDS:
            names = (_EVENT_TYPE, *_KINDS)
            problem = f"{table.table} has a column {column.name!r} of type {column.type}{nearest(column.name, names)}"
            raise SqlError(problem, "the columns of 'nexmark' are event_type INT, and person, auction and bid as ROW")
        kind = _KINDS[column.name]
        there = {
            name: values.type for name, values in _columns(rules, kind)(rules.numbers(kind, 0, rules.epoch)).items()
        }
        for field in column.type.fields:
            if there.get(field.name) != field.type.to_arrow():
                described = ", ".join(f"{name} {there[name]}" for name in there)
                problem = f"{table.table} has a field {field.name!r} of type {field.type} in {column.name!r}"
                raise SqlError(problem + nearest(field.name, there), f"the fields are {described}")
