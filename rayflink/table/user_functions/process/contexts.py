"""The context of `eval` and `on_timer` of a process table function: time, timers, and what the call says."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Protocol, TypeAlias

from rayflink.common.time import Instant

from ...errors import nearest
from ...plan.changelog import ChangelogMode
from ...types import DataType

Moment: TypeAlias = "int | Instant | datetime"
"""A time: milliseconds since 1970, an Instant, or a datetime of UTC without a zone."""
_EPOCH = datetime(1970, 1, 1)
_LATEST_MS = (datetime.max - _EPOCH) // timedelta(milliseconds=1)
_KINDS = (int, Instant, datetime)


class CallInProgress(Protocol):
    """The call of `eval` or `on_timer` that is made now."""

    time_ms: int | None
    timer: str | None

    @property
    def watermark_ms(self) -> int | None:
        """Return the last watermark."""

    def register(self, time_ms: int, name: str | None) -> None:
        """Set a timer of the partition."""

    def clear_timer(self, time_ms: int | None, name: str | None) -> None:
        """Delete a timer of the partition."""

    def clear_timers(self) -> None:
        """Delete all timers of the partition."""

    def clear_states(self, names: Sequence[str] | None) -> None:
        """Clear states of the partition when the call returns; None: all."""

    def semantics(self, argument: str) -> ProcessTableFunctionTableSemantics:
        """Return what the call says of a table argument."""


def to_milliseconds(moment: Moment) -> int:
    """Return a time as milliseconds since 1970.

    >>> to_milliseconds(datetime(1970, 1, 1, 0, 0, 1))
    1000

    Raises:
        TypeError: it is no time.
    """
    if isinstance(moment, int) and not isinstance(moment, bool):
        return moment
    if isinstance(moment, Instant):
        return moment.to_epoch_milli()
    if isinstance(moment, datetime):
        local = moment if moment.tzinfo is None else moment.astimezone(timezone.utc).replace(tzinfo=None)
        return (local - _EPOCH) // timedelta(milliseconds=1)
    raise TypeError(f"a time is an int of milliseconds, an Instant or a datetime, found {moment!r}")


class ProcessTableFunctionTimeContext:
    """Times and timers of a partition, in one class of times; see `ProcessTableFunctionContext.time_context`.

    Args:
        call: that is made now.
        conversion_type: int, Instant or datetime.
    """

    def __init__(self, call: CallInProgress, conversion_type: type) -> None:
        if conversion_type not in _KINDS:
            raise TypeError(f"times are int, Instant or datetime, found {conversion_type!r}")
        self._call, self._kind = call, conversion_type

    def time(self) -> Moment | None:
        """Return the time of the row or of the timer; None: the call has no `on_time`."""
        return self._moment(self._call.time_ms)

    def current_watermark(self) -> Moment | None:
        """Return the last watermark; of a timer the one that lets it fire. None: there was none.

        That of the end of all input is later than a datetime can be; as such it is `datetime.max`.
        """
        return self._moment(self._call.watermark_ms)

    def register_on_time(self, name_or_time: str | Moment, time: Moment | None = None) -> None:
        """Set a timer, which fires when the watermark reaches its time; one of the same name is replaced.

        Args:
            name_or_time: name of the timer; or its time, if it has no name.
            time: of a timer with a name.
        """
        if isinstance(name_or_time, str):
            if time is None:
                raise TypeError(f"timer {name_or_time!r} has no time; call register_on_time(name, time)")
            self._call.register(to_milliseconds(time), name_or_time)
        else:
            self._call.register(to_milliseconds(name_or_time), None)

    def clear_timer(self, name_or_time: str | Moment) -> None:
        """Delete a timer by its name, or one without a name by its time; nothing happens if it is not set."""
        if isinstance(name_or_time, str):
            self._call.clear_timer(None, name_or_time)
        else:
            self._call.clear_timer(to_milliseconds(name_or_time), None)

    def clear_all_timers(self) -> None:
        """Delete all timers of the partition."""
        self._call.clear_timers()

    def _moment(self, time_ms: int | None) -> Moment | None:
        if time_ms is None or self._kind is int:
            return time_ms
        if self._kind is Instant:
            return Instant.of_epoch_milli(time_ms)
        return datetime.max if time_ms > _LATEST_MS else _EPOCH + timedelta(milliseconds=time_ms)


class ProcessTableFunctionTableSemantics:
    """A table argument as a call has it: its columns of PARTITION BY and ORDER BY, and its time.

    Args:
        name: of the argument.
        data_type: of the table's rows.
        partition_by: numbers of the columns of PARTITION BY.
        order_by: numbers of the columns of ORDER BY.
        time: number of the column of `on_time`; -1: there is none.
        mode: the kinds of changes of the table.
    """

    def __init__(
        self, name: str, data_type: DataType, partition_by: tuple[int, ...], order_by: tuple[int, ...], time: int,
        mode: ChangelogMode,
    ) -> None:  # fmt: skip
        self._name, self._data_type, self._mode = name, data_type, mode
        self._partition_by, self._order_by, self._time = partition_by, order_by, time

    def name(self) -> str:
        """Return the name of the argument."""
        return self._name

    def data_type(self) -> DataType:
        """Return the type of the table's rows."""
        return self._data_type

    def partition_by_columns(self) -> tuple[int, ...]:
        """Return the numbers of the columns of PARTITION BY."""
        return self._partition_by

    def order_by_columns(self) -> tuple[int, ...]:
        """Return the numbers of the columns of ORDER BY."""
        return self._order_by

    def time_column(self) -> int:
        """Return the number of the column of `on_time`; -1: there is none."""
        return self._time

    def changelog_mode(self) -> ChangelogMode:
        """Return the kinds of changes of the table."""
        return self._mode


class ProcessTableFunctionContext:
    """The first argument of `eval` and `on_timer`.

    Args:
        call: that is made now.
    """

    def __init__(self, call: CallInProgress) -> None:
        self._call = call

    def time_context(self, conversion_type: type = int) -> ProcessTableFunctionTimeContext:
        """Return times and timers, as int (milliseconds since 1970), Instant, or datetime (UTC, without a zone).

        Raises:
            TypeError: it is another class.
        """
        return ProcessTableFunctionTimeContext(self._call, conversion_type)

    def table_semantics_for(self, argument: str) -> ProcessTableFunctionTableSemantics:
        """Return what the call says of a table argument.

        Raises:
            ValueError: there is none of the name.
        """
        return self._call.semantics(argument)

    def current_timer(self) -> str | None:
        """Return the name of the timer that fires; None: it has none, or no timer fires."""
        return self._call.timer

    def clear_state(self, name: str) -> None:
        """Clear a state of the partition when the call returns.

        Raises:
            ValueError: there is none of the name.
        """
        self._call.clear_states([name])

    def clear_all_state(self) -> None:
        """Clear all states of the partition when the call returns."""
        self._call.clear_states(None)

    def clear_all_timers(self) -> None:
        """Delete all timers of the partition."""
        self._call.clear_timers()

    def clear_all(self) -> None:
        """Clear states and timers of the partition."""
        self.clear_all_state()
        self.clear_all_timers()


def unknown_name(name: str, what: str, known: Sequence[str]) -> ValueError:
    """Return the error for a name that the function has not declared."""
    return ValueError(f"there is no {what} {name!r}{nearest(name, known)}; declared are {', '.join(known) or 'none'}")


__all__ = [
    "CallInProgress", "Moment", "ProcessTableFunctionContext", "ProcessTableFunctionTableSemantics",
    "ProcessTableFunctionTimeContext", "to_milliseconds", "unknown_name",
]  # fmt: skip
