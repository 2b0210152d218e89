"""Types of lengths of time, and the units between which they reach."""

from __future__ import annotations

import datetime
from enum import Enum
from typing import TYPE_CHECKING

from rayflink.common.errors import InvalidTypesError

from .atomic_types import AtomicType
from .data_type import Root, number_within

if TYPE_CHECKING:
    import pyarrow


class Resolution:
    """A unit of intervals; made by `DataTypes.DAY()` and the like.

    Args:
        unit: one of `Resolution.IntervalUnit`.
        precision: digits of years or days, or of the fraction of a second.
    """

    class IntervalUnit(Enum):
        """The units, from the shortest to the longest."""

        SECOND = 0
        MINUTE = 1
        HOUR = 2
        DAY = 3
        MONTH = 4
        YEAR = 5

    def __init__(self, unit: IntervalUnit, precision: int = -1) -> None:
        self._unit, self._precision = unit, precision

    @property
    def unit(self) -> IntervalUnit:
        """Return the unit."""
        return self._unit

    @property
    def precision(self) -> int:
        """Digits."""
        return self._precision

    def __str__(self) -> str:
        return self._unit.name if self._precision < 0 else f"{self._unit.name}({self._precision})"


class YearMonthIntervalType(AtomicType):
    """A number of months: INTERVAL YEAR TO MONTH, whatever units it is written in.

    Args:
        resolution: one of `YearMonthIntervalType.YearMonthResolution`.
        precision: digits of years, in [1, 4].
        nullable: whether a value may be null.

    Raises:
        InvalidTypesError: the resolution is unknown, or the precision does not fit it.
    """

    class YearMonthResolution:
        """The units that it is written in."""

        YEAR = 1
        MONTH = 2
        YEAR_TO_MONTH = 3

    DEFAULT_PRECISION = 2
    root = Root.INTERVAL_YEAR_MONTH
    arrow_factory = "int32"

    def __init__(self, resolution: int, precision: int = DEFAULT_PRECISION, nullable: bool = True) -> None:
        super().__init__(nullable)
        if resolution not in (1, 2, 3):
            raise InvalidTypesError(f"the resolution of an INTERVAL is {resolution!r}", "give a YearMonthResolution")
        self._resolution = resolution
        digits = number_within(precision, 1, 4, "the digits of an INTERVAL's years")
        if resolution == 2 and digits != self.DEFAULT_PRECISION:
            raise InvalidTypesError(f"an INTERVAL of months has {digits} digits of years", "leave the precision out")
        self._year_digits = digits

    @property
    def resolution(self) -> int:
        """Return the units that it is written in."""
        return self._resolution

    @property
    def precision(self) -> int:  # type: ignore[override]
        """Digits of years."""
        return self._year_digits

    def identity(self) -> tuple[object, ...]:
        return (self.is_nullable, self._resolution, self._year_digits)


class DayTimeIntervalType(AtomicType):
    """A length of time in milliseconds: INTERVAL DAY TO SECOND, whatever units it is written in.

    Args:
        resolution: one of `DayTimeIntervalType.DayTimeResolution`.
        day_precision: digits of days, in [1, 6].
        fractional_precision: digits of a second's fraction, in [0, 9].
        nullable: whether a value may be null.

    Raises:
        InvalidTypesError: the resolution is unknown, or a precision does not fit it.
    """

    class DayTimeResolution(Enum):
        """The units that it is written in."""

        DAY = 1
        DAY_TO_HOUR = 2
        DAY_TO_MINUTE = 3
        DAY_TO_SECOND = 4
        HOUR = 5
        HOUR_TO_MINUTE = 6
        HOUR_TO_SECOND = 7
        MINUTE = 8
        MINUTE_TO_SECOND = 9
        SECOND = 10

    DEFAULT_DAY_PRECISION = 2
    DEFAULT_FRACTIONAL_PRECISION = 6
    root = Root.INTERVAL_DAY_TIME

    def __init__(
        self, resolution: DayTimeResolution, day_precision: int = DEFAULT_DAY_PRECISION,
        fractional_precision: int = DEFAULT_FRACTIONAL_PRECISION, nullable: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(nullable)
        if not isinstance(resolution, DayTimeIntervalType.DayTimeResolution):
            raise InvalidTypesError(f"the resolution of an INTERVAL is {resolution!r}", "give a DayTimeResolution")
        self._resolution = resolution
        self._day_digits = number_within(day_precision, 1, 6, "the digits of an INTERVAL's days")
        self.precision = number_within(fractional_precision, 0, 9, "the digits of an INTERVAL's fraction of a second")
        units = resolution.name
        if not units.startswith("DAY") and day_precision != self.DEFAULT_DAY_PRECISION:
            raise InvalidTypesError(f"an INTERVAL of {units} has no digits of days", "leave day_precision out")
        if not units.endswith("SECOND") and fractional_precision != self.DEFAULT_FRACTIONAL_PRECISION:
            raise InvalidTypesError(f"an INTERVAL of {units} has no fraction of a second", "leave it out")

    @property
    def resolution(self) -> DayTimeResolution:
        """Return the units that it is written in."""
        return self._resolution

    @property
    def day_precision(self) -> int:
        """Digits of days."""
        return self._day_digits

    @property
    def fractional_precision(self) -> int:
        """Digits of a second's fraction."""
        return self.precision

    def to_arrow(self) -> pyarrow.DataType:
        import pyarrow

        return pyarrow.duration("ms")

    def need_conversion(self) -> bool:
        return True

    def to_sql_type(self, timedelta: datetime.timedelta | None) -> int | None:
        """Return the microseconds of a length of time."""
        return None if timedelta is None else timedelta // datetime.timedelta(microseconds=1)

    def from_sql_type(self, ts: int | None) -> datetime.timedelta | None:
        """Return the length of time of a number of microseconds."""
        return None if ts is None else datetime.timedelta(microseconds=ts)

    def identity(self) -> tuple[object, ...]:
        return (self.is_nullable, self._resolution, self._day_digits, self.precision)

    def to_sql(self) -> str:
        return f"INTERVAL DAY TO SECOND({self.precision})"


def interval_between(upper: Resolution, lower: Resolution | None) -> DayTimeIntervalType | YearMonthIntervalType:
    """Return the type of lengths of time from one unit down to another.

    Raises:
        InvalidTypesError: there is no such interval.
    """
    if not isinstance(upper, Resolution) or not isinstance(lower, (Resolution, type(None))):
        raise InvalidTypesError(f"INTERVAL of {upper!r} and {lower!r}", "give units, as DataTypes.DAY()")
    name = upper.unit.name if lower is None else f"{upper.unit.name}_TO_{lower.unit.name}"
    months = vars(YearMonthIntervalType.YearMonthResolution)
    if name in ("YEAR", "MONTH", "YEAR_TO_MONTH"):
        has_years = name == "YEAR" and upper.precision > 0
        digits = upper.precision if has_years else YearMonthIntervalType.DEFAULT_PRECISION
        return YearMonthIntervalType(months[name], digits)
    if name not in DayTimeIntervalType.DayTimeResolution.__members__:
        problem = f"INTERVAL from {upper} to {lower}"
        raise InvalidTypesError(problem, "give units from DAY down to SECOND, or from YEAR down to MONTH")
    days = upper.precision if name.startswith("DAY") else DayTimeIntervalType.DEFAULT_DAY_PRECISION
    seconds = (lower or upper).precision if name.endswith("SECOND") else -1
    fraction = DayTimeIntervalType.DEFAULT_FRACTIONAL_PRECISION if seconds < 0 else seconds
    return DayTimeIntervalType(DayTimeIntervalType.DayTimeResolution[name], days, fraction)


__all__ = ["DayTimeIntervalType", "Resolution", "YearMonthIntervalType", "interval_between"]
