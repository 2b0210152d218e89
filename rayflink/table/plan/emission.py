"""The options `table.exec.emit.*` of group windows.

Source: apache/flink WindowEmitStrategy.
"""

from __future__ import annotations

from dataclasses import dataclass

from rayflink.common.configuration import Configuration
from rayflink.common.options import registry as options
from rayflink.common.time import Duration

from ..errors import SqlError
from .logical import Emission, Windowing, WindowKind
from .typed import Place

EARLY, LATE = options.EARLY_FIRE_ENABLED.key, options.LATE_FIRE_ENABLED.key


@dataclass(frozen=True)
class EmitOptions:
    """The options as they are set; lengths in milliseconds.

    Args:
        early: whether results are shown before the end of a window.
        late: whether they are shown again when rows come behind it.
        lateness_ms: how late these may be; None: as long as state is kept.
        ttl_ms: how long state is kept that is not used; 0: for ever.
    """

    early: bool = False
    early_ms: int | None = None
    late: bool = False
    late_ms: int | None = None
    lateness_ms: int | None = None
    ttl_ms: int = 0

    @classmethod
    def of(cls, config: Configuration) -> EmitOptions:
        """Return the options of a configuration."""
        get = config.get
        return cls(
            get(options.EARLY_FIRE_ENABLED), _ms(get(options.EARLY_FIRE_DELAY)), get(options.LATE_FIRE_ENABLED),
            _ms(get(options.LATE_FIRE_DELAY)), _ms(get(options.ALLOW_LATENESS)), _ms(get(options.STATE_TTL)) or 0,
        )  # fmt: skip

    def check_table_function(self, place: Place | None) -> None:
        """Check that windows of table functions emit once.

        Raises:
            SqlError: the options want something else.
        """
        if self.early or self.late:
            problem = f"a windowing table function shows results once, and {EARLY if self.early else LATE} is set"
            raise SqlError(problem, "write GROUP BY TUMBLE(ts, INTERVAL ...), or reset the option", "", place)

    def of_window(self, windowing: Windowing, place: Place | None) -> Emission | None:
        """Return when a group window emits before or after its end; None: only at its end.

        Raises:
            SqlError: the options do not go together, or the window cannot do it.
        """
        late = self.late and windowing.is_event_time
        if not (self.early or self.late):
            return None
        if windowing.kind is WindowKind.SESSION:
            problem = f"SESSION shows results once, and {EARLY if self.early else LATE} is set"
            raise SqlError(problem, "take TUMBLE or HOP, or reset the option", "", place)
        lateness = (self.ttl_ms if self.lateness_ms is None else self.lateness_ms) if late else 0
        if self.early and self.early_ms is None:
            raise SqlError(f"{EARLY} is set without a delay", f"set {options.EARLY_FIRE_DELAY.key}", "", place)
        if late and self.late_ms is None:
            raise SqlError(f"{LATE} is set without a delay", f"set {options.LATE_FIRE_DELAY.key}", "", place)
        if late and lateness <= 0:
            raise SqlError(
                f"{LATE} is set, and no rows are taken that are late", f"set {options.ALLOW_LATENESS.key}", "", place
            )
        if late and self.late_ms is not None and self.late_ms > lateness:
            problem = f"{options.LATE_FIRE_DELAY.key} is {self.late_ms} ms, and rows may be {lateness} ms late"
            raise SqlError(problem, f"set {options.ALLOW_LATENESS.key} to as much at least", "", place)
        if not (self.early or late):
            return None
        return Emission(self.early_ms if self.early else None, self.late_ms if late else None, lateness)


def _ms(duration: Duration | None) -> int | None:
    return None if duration is None else duration.to_millis()


__all__ = ["EmitOptions"]
