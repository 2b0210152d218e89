"""The time to live of the values of a state, with PyFlink's names."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from rayflink.state.expiry import Expiry

from ..time import Duration, Length, to_millis


class TtlCleanupStrategy:
    """One way to remove expired values that are never read."""


class TtlEmptyCleanupStrategy(TtlCleanupStrategy):
    """A way with nothing to set."""


class TtlIncrementalCleanupStrategy(TtlCleanupStrategy):
    """Each access to the state also looks at some other keys.

    Args:
        cleanup_size: how many, at least 1.
        run_cleanup_for_every_record: Flink looks at each record too; here only accesses do.

    Raises:
        ValueError: the size is below 1.
    """

    def __init__(self, cleanup_size: int, run_cleanup_for_every_record: bool) -> None:
        if cleanup_size < 1:
            raise ValueError(f"an incremental cleanup looks at 1 key or more at each access, found {cleanup_size}")
        self._cleanup_size = cleanup_size
        self._run_cleanup_for_every_record = run_cleanup_for_every_record

    def get_cleanup_size(self) -> int:
        """Return the number of keys looked at with each access."""
        return self._cleanup_size

    def run_cleanup_for_every_record(self) -> bool:
        """Return whether Flink would also look at each record."""
        return self._run_cleanup_for_every_record


class TtlRocksdbCompactFilterCleanupStrategy(TtlCleanupStrategy):
    """A sweep in the background walks over all values and drops expired ones.

    In Flink RocksDB does it while it compacts; here it is the same on every backend. The option
    `rayflink.state.ttl.sweep-rate` says how fast it walks.

    Args:
        query_time_after_num_entries: accepted; the sweep asks for the time once for each of its slices.
        periodic_compaction_time: accepted; a round of the sweep begins when half the time to live has passed since the
            one before. None for 30 days.
    """

    def __init__(self, query_time_after_num_entries: int, periodic_compaction_time: Duration | None = None) -> None:
        self._query_time_after_num_entries = query_time_after_num_entries
        self._periodic_compaction_time = periodic_compaction_time or Duration.of_days(30)

    def get_query_time_after_num_entries(self) -> int:
        """Return the number of entries after which Flink's filter asks for the time."""
        return self._query_time_after_num_entries

    def get_periodic_compaction_time(self) -> Duration:
        """Return the age at which Flink has a file compacted."""
        return self._periodic_compaction_time


class TtlStrategies(Enum):
    """The ways there are."""

    FULL_STATE_SCAN_SNAPSHOT = 0
    INCREMENTAL_CLEANUP = 1
    ROCKSDB_COMPACTION_FILTER = 2


class TtlCleanupStrategies:
    """The ways in which a state removes expired values.

    Args:
        strategies: what was asked for.
        is_cleanup_in_background: whether the default ways apply where nothing was asked for.
    """

    Strategies = TtlStrategies
    CleanupStrategy = TtlCleanupStrategy
    EmptyCleanupStrategy = TtlEmptyCleanupStrategy
    IncrementalCleanupStrategy = TtlIncrementalCleanupStrategy
    RocksdbCompactFilterCleanupStrategy = TtlRocksdbCompactFilterCleanupStrategy
    EMPTY_STRATEGY = TtlEmptyCleanupStrategy()

    def __init__(self, strategies: Mapping[TtlStrategies, TtlCleanupStrategy], is_cleanup_in_background: bool) -> None:
        self._strategies = dict(strategies)
        self._is_cleanup_in_background = is_cleanup_in_background

    def is_cleanup_in_background(self) -> bool:
        """Return whether the default ways apply where nothing was asked for."""
        return self._is_cleanup_in_background

    def in_full_snapshot(self) -> bool:
        """Return whether expired values are left out of snapshots."""
        return TtlStrategies.FULL_STATE_SCAN_SNAPSHOT in self._strategies

    def looked_at(self) -> int:
        """Return the number of keys that an access really looks at: none unless asked for, as the sweep is cheaper."""
        chosen = self._strategies.get(TtlStrategies.INCREMENTAL_CLEANUP)
        return chosen.get_cleanup_size() if isinstance(chosen, TtlIncrementalCleanupStrategy) else 0

    def get_incremental_cleanup_strategy(self) -> TtlIncrementalCleanupStrategy | None:
        """Return the number of other keys an access looks at: in Flink by default 5 in the background, else none."""
        chosen = self._strategies.get(TtlStrategies.INCREMENTAL_CLEANUP)
        if isinstance(chosen, TtlIncrementalCleanupStrategy):
            return chosen
        return TtlIncrementalCleanupStrategy(5, False) if self._is_cleanup_in_background else None

    def get_rocksdb_compact_filter_cleanup_strategy(self) -> TtlRocksdbCompactFilterCleanupStrategy | None:
        """Return the settings of the sweep in the background; by default there is one."""
        chosen = self._strategies.get(TtlStrategies.ROCKSDB_COMPACTION_FILTER)
        if isinstance(chosen, TtlRocksdbCompactFilterCleanupStrategy):
            return chosen
        return TtlRocksdbCompactFilterCleanupStrategy(1000) if self._is_cleanup_in_background else None


class TtlUpdateType(Enum):
    """The accesses that let the time of a value begin anew."""

    Disabled = 0
    OnCreateAndWrite = 1
    OnReadAndWrite = 2


class TtlStateVisibility(Enum):
    """The visibility of an expired value that is still there."""

    ReturnExpiredIfNotCleanedUp = 0
    NeverReturnExpired = 1


class TtlClock(Enum):
    """The clock by which values age."""

    ProcessingTime = 0


class StateTtlConfig:
    """The time to live of a state's values; made by `new_builder`, passed to a descriptor's `enable_time_to_live`.

    A value expires when the time to live has passed since its last access. Each element of a list and each value of a
    map ages by itself.

    >>> from rayflink.common import Time
    >>> config = StateTtlConfig.new_builder(Time.minutes(1)).update_ttl_on_read_and_write().build()
    >>> config.get_update_type().name, str(config.get_ttl())
    ('OnReadAndWrite', '60000 ms')

    Args:
        update_type: which accesses count.
        state_visibility: whether expired values that are still there are given out.
        ttl_time_characteristic: the clock.
        ttl: the time to live, above 0.
        cleanup_strategies: how expired values that are never read go.

    Raises:
        TypeError: `ttl` is no length of time.
        ValueError: `ttl` is not above 0.
    """

    UpdateType = TtlUpdateType
    StateVisibility = TtlStateVisibility
    TtlTimeCharacteristic = TtlClock
    CleanupStrategies = TtlCleanupStrategies

    def __init__(
        self,
        update_type: TtlUpdateType,
        state_visibility: TtlStateVisibility,
        ttl_time_characteristic: TtlClock,
        ttl: Length,
        cleanup_strategies: TtlCleanupStrategies,
    ) -> None:
        if to_millis(ttl) <= 0:
            raise ValueError(f"the time to live of state is above 0 ms, found {ttl}; leave it out to keep state")
        self._update_type = update_type
        self._state_visibility = state_visibility
        self._ttl_time_characteristic = ttl_time_characteristic
        self._ttl = ttl
        self._cleanup_strategies = cleanup_strategies

    @staticmethod
    def new_builder(ttl: Length) -> StateTtlConfig.Builder:
        """Return a builder with the defaults: create and write count, expired values are never given out."""
        return StateTtlConfig.Builder(ttl)

    def get_update_type(self) -> TtlUpdateType:
        """Return the accesses that let the time begin anew."""
        return self._update_type

    def get_state_visibility(self) -> TtlStateVisibility:
        """Return whether expired values that are still there are given out."""
        return self._state_visibility

    def get_ttl(self) -> Length:
        """Return the time to live, as it was given."""
        return self._ttl

    def get_ttl_time_characteristic(self) -> TtlClock:
        """Return the clock."""
        return self._ttl_time_characteristic

    def is_enabled(self) -> bool:
        """Return whether values expire at all."""
        return self._update_type is not TtlUpdateType.Disabled

    def get_cleanup_strategies(self) -> TtlCleanupStrategies:
        """Return how expired values that are never read are removed."""
        return self._cleanup_strategies

    def expiry(self) -> Expiry | None:
        """Return the rules as state keeps them; None where it is disabled."""
        if not self.is_enabled():
            return None
        cleanup = self._cleanup_strategies
        return Expiry(
            ttl_ms=to_millis(self._ttl),
            on_read=self._update_type is TtlUpdateType.OnReadAndWrite,
            returns_expired=self._state_visibility is TtlStateVisibility.ReturnExpiredIfNotCleanedUp,
            in_snapshots=cleanup.in_full_snapshot(),
            looked_at=cleanup.looked_at(),
            in_background=cleanup.get_rocksdb_compact_filter_cleanup_strategy() is not None,
        )

    def __repr__(self) -> str:
        return (
            f"StateTtlConfig<update_type={self._update_type}, state_visibility={self._state_visibility},"
            f"ttl_time_characteristic ={self._ttl_time_characteristic},ttl={self._ttl}>"
        )

    class Builder:
        """Puts a `StateTtlConfig` together; each setter returns the builder.

        Args:
            ttl: the time to live.
        """

        def __init__(self, ttl: Length) -> None:
            self._ttl = ttl
            self._update_type = TtlUpdateType.OnCreateAndWrite
            self._state_visibility = TtlStateVisibility.NeverReturnExpired
            self._ttl_time_characteristic = TtlClock.ProcessingTime
            self._is_cleanup_in_background = True
            self._strategies: dict[TtlStrategies, TtlCleanupStrategy] = {}

        def set_update_type(self, update_type: TtlUpdateType) -> StateTtlConfig.Builder:
            """Set the accesses that let the time begin anew."""
            self._update_type = update_type
            return self

        def update_ttl_on_create_and_write(self) -> StateTtlConfig.Builder:
            """Let the time of a value begin anew only when it is created or written."""
            return self.set_update_type(TtlUpdateType.OnCreateAndWrite)

        def update_ttl_on_read_and_write(self) -> StateTtlConfig.Builder:
            """Let the time of a value begin anew when it is read, too."""
            return self.set_update_type(TtlUpdateType.OnReadAndWrite)

        def set_state_visibility(self, state_visibility: TtlStateVisibility) -> StateTtlConfig.Builder:
            """Set whether expired values that are still there are given out."""
            self._state_visibility = state_visibility
            return self

        def return_expired_if_not_cleaned_up(self) -> StateTtlConfig.Builder:
            """Give out an expired value that is still there; reading it is the last that is seen of it."""
            return self.set_state_visibility(TtlStateVisibility.ReturnExpiredIfNotCleanedUp)

        def never_return_expired(self) -> StateTtlConfig.Builder:
            """Never give out an expired value."""
            return self.set_state_visibility(TtlStateVisibility.NeverReturnExpired)

        def set_ttl_time_characteristic(self, ttl_time_characteristic: TtlClock) -> StateTtlConfig.Builder:
            """Set the clock by which values age: `TtlTimeCharacteristic.ProcessingTime`, the only one."""
            self._ttl_time_characteristic = ttl_time_characteristic
            return self

        def use_processing_time(self) -> StateTtlConfig.Builder:
            """Let values age by the wall clock."""
            return self.set_ttl_time_characteristic(TtlClock.ProcessingTime)

        def cleanup_full_snapshot(self) -> StateTtlConfig.Builder:
            """Leave expired values out of snapshots; the state itself keeps them."""
            self._strategies[TtlStrategies.FULL_STATE_SCAN_SNAPSHOT] = TtlCleanupStrategies.EMPTY_STRATEGY
            return self

        def cleanup_incrementally(
            self, cleanup_size: int, run_cleanup_for_every_record: bool
        ) -> StateTtlConfig.Builder:
            """Look at some other keys with each access, and forget what expired there.

            Args:
                cleanup_size: how many, at least 1.
                run_cleanup_for_every_record: accepted; only accesses to the state look around here.
            """
            chosen = TtlIncrementalCleanupStrategy(cleanup_size, run_cleanup_for_every_record)
            self._strategies[TtlStrategies.INCREMENTAL_CLEANUP] = chosen
            return self

        def cleanup_in_rocksdb_compact_filter(
            self, query_time_after_num_entries: int, periodic_compaction_time: Duration | None = None
        ) -> StateTtlConfig.Builder:
            """Sweep over all values in the background, on every backend; that is also what is done by default.

            Args:
                query_time_after_num_entries: accepted; the sweep asks for the time once for each of its slices.
                periodic_compaction_time: accepted; rounds of the sweep begin half a time to live after one another.
            """
            chosen = TtlRocksdbCompactFilterCleanupStrategy(query_time_after_num_entries, periodic_compaction_time)
            self._strategies[TtlStrategies.ROCKSDB_COMPACTION_FILTER] = chosen
            return self

        def disable_cleanup_in_background(self) -> StateTtlConfig.Builder:
            """Let expired values go only when they are read, or in the ways asked for."""
            self._is_cleanup_in_background = False
            return self

        def set_ttl(self, ttl: Length) -> StateTtlConfig.Builder:
            """Set the time to live, above 0: milliseconds or a duration."""
            self._ttl = ttl
            return self

        def build(self) -> StateTtlConfig:
            """Return the configuration.

            Raises:
                ValueError: the time to live is not above 0.
            """
            cleanup = TtlCleanupStrategies(self._strategies, self._is_cleanup_in_background)
            chosen = self._update_type, self._state_visibility, self._ttl_time_characteristic
            return StateTtlConfig(*chosen, self._ttl, cleanup)


__all__ = ["StateTtlConfig"]
