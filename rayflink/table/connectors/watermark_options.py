"""The options of the watermarks that a source generates: idleness, emission and alignment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rayflink.common.options.option_types import DURATION
from rayflink.common.time import Duration
from rayflink.common.watermarks import WatermarkStrategy

from ..errors import SqlError
from .contract import Option, OptionValues
from .option_values import one_of, typed

_GROUP = "scan.watermark.alignment.group"
_DRIFT = "scan.watermark.alignment.max-drift"
_UPDATE = "scan.watermark.alignment.update-interval"
WATERMARK_OPTIONS: Final[Mapping[str, Option]] = {
    "scan.watermark.emit.strategy": Option(one_of("on-periodic", "on-event"), "on-periodic"),
    "scan.watermark.idle-timeout": Option(typed(DURATION)),
    _GROUP: Option(str),
    _DRIFT: Option(typed(DURATION)),
    _UPDATE: Option(typed(DURATION)),
}


@dataclass(frozen=True)
class WatermarkOptions:
    """The options of a table's watermarks.

    Args:
        on_event: watermarks follow each batch of rows, rather than the interval of the job alone.
        idle_ms: a split without rows for this long holds back no other; None: as the job says.
        group: of sources that are aligned with each other; None: it is in none.
        drift_ms: how far the source may be ahead of its group, in event time.
        update_ms: how often it reports to its group.
    """

    on_event: bool = False
    idle_ms: int | None = None
    group: str | None = None
    drift_ms: int = 0
    update_ms: int = 1000

    def apply(self, strategy: WatermarkStrategy | None) -> WatermarkStrategy | None:
        """Return the strategy of a table with these options; None: it has no watermarks."""
        if strategy is None:
            return None
        if self.on_event:
            strategy = strategy.with_emit_every(1)
        if self.idle_ms is not None:
            strategy = strategy.with_idleness(Duration.of_millis(self.idle_ms))
        if self.group is None:
            return strategy
        drift, update = Duration.of_millis(self.drift_ms), Duration.of_millis(self.update_ms)
        return strategy.with_watermark_alignment(self.group, drift, update)


def watermark_options(table: str, options: OptionValues) -> WatermarkOptions:
    """Return the options of a table's watermarks.

    Args:
        table: full name, for errors.
        options: of the connector, parsed.

    Raises:
        SqlError: they do not go together, or a duration must be above 0.
    """
    for key in ("scan.watermark.idle-timeout", _UPDATE):
        if options[key] is not None and options[key].to_millis() <= 0:
            problem = f"option {key!r} of {table} is {options[key].to_millis()} ms"
            raise SqlError(problem, "write a duration above 0, such as '10 s', or leave it out")
    group, drift, update = options[_GROUP], options[_DRIFT], options[_UPDATE]
    if (group is None) != (drift is None) or (group is None and update is not None):
        option = _GROUP if group is not None else _DRIFT if drift is not None else _UPDATE
        raise SqlError(f"{table} has {option!r} alone", f"watermark alignment needs {_GROUP!r} and {_DRIFT!r}")
    idle = options["scan.watermark.idle-timeout"]
    return WatermarkOptions(
        options["scan.watermark.emit.strategy"] == "on-event",
        None if idle is None else idle.to_millis(),
        group,
        0 if drift is None else drift.to_millis(),
        1000 if update is None else update.to_millis(),
    )


__all__ = ["WATERMARK_OPTIONS", "WatermarkOptions", "watermark_options"]
