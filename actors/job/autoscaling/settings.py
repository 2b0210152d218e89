"""The options of the autoscaler, parsed once into typed values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rayflink.common.configuration import Configuration
from rayflink.common.errors import ConfigError
from rayflink.common.options import autoscaler_options as options
from rayflink.common.options.autoscaler_options import BusyTimeAggregator, ParallelismAlignment

from .alignment import AlignmentMode
from .excluded_periods import ExcludedPeriod


@dataclass(frozen=True, slots=True)
class RateSettings:
    """The settings by which rates are found; times in seconds."""

    aggregator: BusyTimeAggregator = BusyTimeAggregator.MAX
    target: float = 0.7
    highest: float = 1.0
    """Utilization above which a vertex is scaled up."""
    lowest: float = 0.4
    """Utilization below which it is scaled down."""
    catch_up_s: float = 1_800.0
    backlog_lag_s: float = 300.0
    observed_lag_s: float = 30.0
    observed_switch: float = 0.15
    observed_min: int = 2


@dataclass(frozen=True, slots=True)
class VertexSettings:
    """The settings by which the parallelism of one vertex is found."""

    min_parallelism: int = 1
    max_parallelism: int = 200
    max_down_factor: float = 0.6
    max_up_factor: float = 100_000.0
    scale_down_interval_ms: int = 3_600_000
    detects_ineffective: bool = True
    effectiveness: float = 0.1
    reverts_ineffective: bool = True
    """Subtasks that have not made a vertex faster are taken back."""
    alignment: AlignmentMode = ParallelismAlignment.SUFFICIENT
    scalability_min: int | None = None
    """Past decisions from which scalability is estimated; None: it is not."""
    scalability_least: float = 0.5


@dataclass(frozen=True, slots=True)
class AutoscalerSettings:
    """The settings of a job's autoscaler; times in milliseconds.

    Args:
        enabled: it looks at the metrics.
        acts: it carries out what it decides.
        restart_ms: pause of a rescaling before one was measured.
        restart_limit_ms: most that a measured one counts; None: they do not count.
        heap_usage: share of a slot's managed memory in use above which nothing is rescaled.
        cpu_quota, memory_quota: of all slots; None: no limit. Memory is in bytes.
    """

    enabled: bool = False
    acts: bool = True
    interval_ms: int = 10_000
    window_ms: int = 900_000
    stabilization_ms: int = 300_000
    restart_ms: int = 300_000
    restart_limit_ms: int | None = 900_000
    excluded_periods: tuple[ExcludedPeriod, ...] = ()
    excluded_ids: frozenset[str] = frozenset()
    event_interval_ms: int = 1_800_000
    history_count: int = 3
    history_age_ms: int = 86_400_000
    heap_usage: float = 1.0
    cpu_quota: float | None = None
    memory_quota: int | None = None
    rates: RateSettings = RateSettings()
    vertex: VertexSettings = VertexSettings()

    @classmethod
    def of(cls, config: Mapping[str, object]) -> AutoscalerSettings:
        """Parse the settings from option key -> value.

        Raises:
            ConfigError: a value does not parse, or bounds exclude each other.
        """
        get = Configuration.from_dict(dict(config)).get
        if not get(options.ENABLED):
            return cls()
        quota, periods, excluded = get(options.MEMORY_QUOTA), get(options.EXCLUDED_PERIODS), get(options.EXCLUDE_IDS)
        return cls(
            enabled=True,
            acts=get(options.SCALING_ENABLED),
            interval_ms=get(options.INTERVAL).to_millis(),
            window_ms=get(options.METRICS_WINDOW).to_millis(),
            stabilization_ms=get(options.STABILIZATION).to_millis(),
            restart_ms=get(options.RESTART_TIME).to_millis(),
            restart_limit_ms=get(options.RESTART_LIMIT).to_millis() if get(options.RESTART_TRACKING) else None,
            excluded_periods=tuple(map(ExcludedPeriod.parse, periods)),
            excluded_ids=frozenset(excluded),
            event_interval_ms=get(options.EVENT_INTERVAL).to_millis(),
            history_count=get(options.HISTORY_COUNT),
            history_age_ms=get(options.HISTORY_AGE).to_millis(),
            heap_usage=get(options.HEAP_USAGE),
            cpu_quota=get(options.CPU_QUOTA),
            memory_quota=None if quota is None else quota.bytes,
            rates=_rates(Configuration.from_dict(dict(config))),
            vertex=_vertex(Configuration.from_dict(dict(config))),
        )


def _rates(config: Configuration) -> RateSettings:
    get = config.get
    target, boundary = get(options.UTILIZATION_TARGET), get(options.UTILIZATION_BOUNDARY)
    highest, lowest = get(options.UTILIZATION_MAX), get(options.UTILIZATION_MIN)
    highest = min(1.0, target + boundary) if highest is None else highest
    lowest = max(0.0, target - boundary) if lowest is None else lowest
    if not lowest <= target <= highest:
        bounds = f"a number between {lowest:g} and {highest:g}, the least and the highest utilization"
        raise ConfigError(options.UTILIZATION_TARGET.key, f"{target:g}", bounds, "set the three in their order")
    return RateSettings(
        aggregator=get(options.AGGREGATOR),
        target=target,
        highest=highest,
        lowest=lowest,
        catch_up_s=get(options.CATCH_UP).to_millis() / 1000,
        backlog_lag_s=get(options.BACKLOG_LAG).to_millis() / 1000,
        observed_lag_s=get(options.OBSERVED_LAG).to_millis() / 1000,
        observed_switch=get(options.OBSERVED_SWITCH),
        observed_min=get(options.OBSERVED_MIN),
    )


def _vertex(config: Configuration) -> VertexSettings:
    get = config.get
    least, most = get(options.MIN_PARALLELISM), get(options.MAX_PARALLELISM)
    if least > most:
        bound = f"at most {most}, as {options.MAX_PARALLELISM.key} is"
        raise ConfigError(options.MIN_PARALLELISM.key, str(least), bound, "lower it, or raise the other")
    return VertexSettings(
        min_parallelism=least,
        max_parallelism=most,
        max_down_factor=get(options.MAX_DOWN_FACTOR),
        max_up_factor=get(options.MAX_UP_FACTOR),
        scale_down_interval_ms=get(options.SCALE_DOWN_INTERVAL).to_millis(),
        detects_ineffective=get(options.EFFECTIVENESS),
        effectiveness=get(options.EFFECTIVENESS_THRESHOLD),
        reverts_ineffective=get(options.REVERT_INEFFECTIVE),
        alignment=_alignment(config),
        scalability_min=get(options.SCALABILITY_MIN) if get(options.OBSERVED_SCALABILITY) else None,
        scalability_least=get(options.SCALABILITY_LEAST),
    )


def _alignment(config: Configuration) -> AlignmentMode:
    older, newer = config.get(options.ADJUSTMENT), options.ALIGNMENT
    is_set = any(config.contains_key(key) for key in (newer.key, *newer.fallback_keys))
    return config.get(newer) if older is None or is_set else older


__all__ = ["AutoscalerSettings", "RateSettings", "VertexSettings"]
