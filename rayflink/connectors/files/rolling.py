"""Policies that decide when a file sink ends one part file and begins the next."""

from __future__ import annotations

from rayflink.common.time import Length, to_millis

PART_BYTES = 128 << 20


class RollingPolicy:
    """A policy for ending a part file: by its size, age or inactivity, and at each checkpoint.

    Args:
        part_size: bytes above which it is; None: any size.
        rollover_interval: milliseconds after its begin; None: any age.
        inactivity_interval: milliseconds after its last record; None: any rest.

    Raises:
        ValueError: one of them is below 1.
    """

    def __init__(
        self,
        part_size: int | None = None,
        rollover_interval: Length | None = None,
        inactivity_interval: Length | None = None,
    ) -> None:
        self.part_size = part_size
        self.rollover_ms = None if rollover_interval is None else to_millis(rollover_interval)
        self.inactivity_ms = None if inactivity_interval is None else to_millis(inactivity_interval)
        limits = {"part_size": part_size, "rollover_interval": self.rollover_ms}
        for name, value in {**limits, "inactivity_interval": self.inactivity_ms}.items():
            if value is not None and value < 1:
                raise ValueError(f"{name} must be >= 1, found {value}")

    ends_at_checkpoints = True
    """True if a file ends at each checkpoint; else it goes on, and a restore cuts it to its size at the checkpoint."""

    def is_due(self, now_ms: int, begun_ms: int, touched_ms: int) -> bool:
        """Return whether a part file is too old, or has rested too long."""
        too_old = self.rollover_ms is not None and now_ms - begun_ms >= self.rollover_ms
        return too_old or (self.inactivity_ms is not None and now_ms - touched_ms >= self.inactivity_ms)

    @staticmethod
    def default_rolling_policy(
        part_size: int = PART_BYTES, rollover_interval: Length = 60_000, inactivity_interval: Length = 60_000
    ) -> DefaultRollingPolicy:
        """A policy by size, age and inactivity, across checkpoints; a file that has ended becomes visible after the
        next one.
        """
        return DefaultRollingPolicy(part_size, rollover_interval, inactivity_interval)

    @staticmethod
    def on_checkpoint_rolling_policy() -> OnCheckpointRollingPolicy:
        """Return a policy that rolls at checkpoints only."""
        return OnCheckpointRollingPolicy()


class DefaultRollingPolicy(RollingPolicy):
    """A policy by size, age and inactivity, across checkpoints; a file that has ended becomes visible after the next
    one.
    """

    ends_at_checkpoints = False


class OnCheckpointRollingPolicy(RollingPolicy):
    """At checkpoints only."""

    def __init__(self) -> None:
        super().__init__()
