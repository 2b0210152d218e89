"""The options of the autoscaler; `registry` has them with all others.

Keys, types and defaults are those of Flink's autoscaler (flink-kubernetes-operator, AutoScalerOptions). Three defaults
are not: measured pauses are used, ineffective scaling is detected, and parallelisms fit key groups by their load.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, TypeVar

from ..config_options import ConfigOption
from .option_declaring import FRACTION as _FRACTION
from .option_declaring import LONGER_THAN_ZERO as _LONGER_THAN_ZERO
from .option_declaring import NO_NEGATIVE_TIME as _NO_NEGATIVE_TIME
from .option_declaring import NOT_EMPTY as _NOT_EMPTY
from .option_declaring import NOT_NEGATIVE as _NOT_NEGATIVE
from .option_declaring import POSITIVE as _POSITIVE
from .option_declaring import Test
from .option_declaring import declare as _option
from .option_declaring import millis as _ms
from .option_types import BOOLEAN, DOUBLE, DURATION, INT, LIST, MEMORY, ValueType, enum_type

T = TypeVar("T")
AUTOSCALER = "Autoscaler"
"""The heading of these options."""


class BusyTimeAggregator(Enum):
    """The busy time of a vertex: that of its busiest subtask, their mean, or that of the least busy one."""

    MAX = "MAX"
    AVG = "AVG"
    MIN = "MIN"


class ParallelismAlignment(Enum):
    """The parallelisms of vertices whose load is divided by key groups or partitions.

    SUFFICIENT takes the least with which the subtask that has most of them is fast enough. BALANCED takes the first
    from the computed one on with which subtasks have fewer of them, or a divisor of their number; EVENLY_SPREAD only
    a divisor, where there is one; OFF takes the computed one.
    """

    SUFFICIENT = "SUFFICIENT"
    BALANCED = "BALANCED"
    EVENLY_SPREAD = "EVENLY_SPREAD"
    OFF = "OFF"


class KeyGroupAdjustment(Enum):
    """The same, by Flink's older option, where the computed parallelism is not taken if none fits.

    EVENLY_SPREAD prefers divisors of their number; MAXIMIZE_UTILISATION takes the least that lowers the load.
    """

    EVENLY_SPREAD = "EVENLY_SPREAD"
    MAXIMIZE_UTILISATION = "MAXIMIZE_UTILISATION"


class SchedulerMode(Enum):
    """The parallelism of a job: as its program says, or as many subtasks as there are slots for."""

    DEFAULT = "DEFAULT"
    REACTIVE = "REACTIVE"


def _declare(
    key: str,
    type: ValueType[T],
    default: T | None,
    help: str,
    test: Test = (lambda value: True, ""),
    older: tuple[str, ...] = (),
) -> ConfigOption[T]:
    name = f"job.autoscaler.{key}"
    fallback = (*older, *(f"kubernetes.operator.{each}" for each in (name, *older)))
    return _option(AUTOSCALER, name, type, default, help, fallback, test=test)


_UTILIZATION: Test = (lambda value: 0 < value <= 1, "a number in (0, 1]")
ENABLED = _declare("enabled", BOOLEAN, False,
                   "Change the parallelism of a job's vertices with its load, while it runs: see "
                   "[Autoscaling](autoscaling.md).")
SCALING_ENABLED = _declare("scaling.enabled", BOOLEAN, True,
                           "Carry out what the autoscaler decides. False: it only says what it would do, and why.")
INTERVAL = _option(AUTOSCALER, "autoscaler.standalone.control-loop.interval", DURATION, _ms(10_000),
                   "Time between two looks at the metrics.", test=_LONGER_THAN_ZERO)
METRICS_WINDOW = _declare("metrics.window", DURATION, _ms(15 * 60_000),
                          "Time over which metrics are averaged. No decision is made before it is full.",
                          test=_LONGER_THAN_ZERO)
STABILIZATION = _declare("stabilization.interval", DURATION, _ms(5 * 60_000),
                         "Time after a start, a restart or a rescaling whose metrics are left out.",
                         test=_NO_NEGATIVE_TIME)
EXCLUDED_PERIODS = _declare("excluded.periods", LIST, [],
                            "Times at which nothing is rescaled: a cron expression in Quartz's form, as `* * 9-11 * * "
                            "?`, hours of a day, as `9:30:30-10:50:20`, or both joined by `&&`; in the time zone of "
                            "the coordinator's process.")
UTILIZATION_TARGET = _declare("utilization.target", DOUBLE, 0.7, "Share of its time that a vertex should be busy.",
                              older=("job.autoscaler.target.utilization",), test=_UTILIZATION)
UTILIZATION_BOUNDARY = _declare("target.utilization.boundary", DOUBLE, 0.3,
                                "Distance from the target within which nothing is rescaled, up and down, where "
                                "utilization.max or utilization.min is not set.", test=_FRACTION)
UTILIZATION_MAX = _declare("utilization.max", DOUBLE, None, "Utilization above which a vertex is scaled up.",
                           test=_UTILIZATION)
UTILIZATION_MIN = _declare("utilization.min", DOUBLE, None, "Utilization below which a vertex is scaled down.",
                           test=_FRACTION)
SCALE_DOWN_INTERVAL = _declare("scale-down.interval", DURATION, _ms(3_600_000),
                               "Time for which a vertex has to need fewer subtasks before it gets as many as it needed "
                               "at most in that time; 0: at once.",
                               older=("job.autoscaler.scale-up.grace-period",), test=_NO_NEGATIVE_TIME)
MIN_PARALLELISM = _declare("vertex.min-parallelism", INT, 1, "Fewest subtasks that the autoscaler gives a vertex.",
                           test=_POSITIVE)
MAX_PARALLELISM = _declare("vertex.max-parallelism", INT, 200,
                           "Most subtasks that the autoscaler gives a vertex, within its max parallelism.",
                           test=_POSITIVE)
MAX_DOWN_FACTOR = _declare("scale-down.max-factor", DOUBLE, 0.6,
                           "Share of its subtasks that a vertex may lose at once.", test=_FRACTION)
MAX_UP_FACTOR = _declare("scale-up.max-factor", DOUBLE, 100_000.0,
                         "Subtasks that a vertex may get at once, as a multiple of those it has.", test=_POSITIVE)
CATCH_UP = _declare("catch-up.duration", DURATION, _ms(30 * 60_000),
                    "Time in which a job should work off what has piled up in its sources; 0: what has piled up is "
                    "left out of account.", test=_NO_NEGATIVE_TIME)
RESTART_TIME = _declare("restart.time", DURATION, _ms(5 * 60_000),
                        "Pause that a rescaling is expected to take, before one was measured.", test=_NO_NEGATIVE_TIME)
RESTART_TRACKING = _declare("restart.time-tracking.enabled", BOOLEAN, True,
                            "Use the longest measured pause instead. Flink's default is false.")
RESTART_LIMIT = _declare("restart.time-tracking.limit", DURATION, _ms(15 * 60_000), "Most that a pause counts.",
                         test=_NO_NEGATIVE_TIME)
BACKLOG_LAG = _declare("backlog-processing.lag-threshold", DURATION, _ms(5 * 60_000),
                       "Lag of a source, as time at its present rate, from which on the job works off a backlog: it "
                       "may then be busy all the time, and is not scaled down.", test=_NO_NEGATIVE_TIME)
OBSERVED_LAG = _declare("observed-true-processing-rate.lag-threshold", DURATION, _ms(30_000),
                        "Lag of a source, as time at its present rate, from which on its rate is taken as all it can.",
                        test=_NO_NEGATIVE_TIME)
OBSERVED_SWITCH = _declare("observed-true-processing-rate.switch-threshold", DOUBLE, 0.15,
                           "The rate so observed is used where that of the busy time is higher by this share.",
                           test=_NOT_NEGATIVE)
OBSERVED_MIN = _declare("observed-true-processing-rate.min-observations", INT, 2, "Observations that it takes.",
                        test=_POSITIVE)
EFFECTIVENESS = _declare("scaling.effectiveness.detection.enabled", BOOLEAN, True,
                         "Scale a vertex up no further when more subtasks have not made it faster, as with one key "
                         "that has most records. Flink's default is false.")
EFFECTIVENESS_THRESHOLD = _declare("scaling.effectiveness.threshold", DOUBLE, 0.1,
                                   "Share of the expected gain below which scaling up counts as ineffective.",
                                   test=_FRACTION)
REVERT_INEFFECTIVE = _option(AUTOSCALER, "rayflink.autoscaler.revert-ineffective", BOOLEAN, True,
                             "Take the subtasks back, once and after `job.autoscaler.scale-down.interval`, that have "
                             "not made a vertex faster. Flink's autoscaler leaves them while there is a backlog.")
HEAP_USAGE = _declare("memory.heap-usage.threshold", DOUBLE, 1.0,
                      "Share of the managed memory of a slot in use, on average, above which nothing is rescaled.",
                      test=_FRACTION)
HISTORY_COUNT = _declare("history.max.count", INT, 3, "Past decisions that are remembered of each vertex.",
                         test=_POSITIVE)
HISTORY_AGE = _declare("history.max.age", DURATION, _ms(24 * 3_600_000), "Time for which they are remembered.",
                       test=_LONGER_THAN_ZERO)
AGGREGATOR = _declare("metrics.busy-time.aggregator", enum_type(BusyTimeAggregator), BusyTimeAggregator.MAX,
                      "The subtasks whose busy time counts: MAX heeds skew, AVG is steadier where there is none.")
EXCLUDE_IDS = _declare("vertex.exclude.ids", LIST, [], "Vertices that are not rescaled, by their ids.")
EVENT_INTERVAL = _declare("scaling.event.interval", DURATION, _ms(30 * 60_000),
                          "Time until the log repeats the same reason not to rescale.", test=_NO_NEGATIVE_TIME)
CPU_QUOTA = _declare("quota.cpu", DOUBLE, None, "CPUs beyond which a job is not scaled up.", test=_POSITIVE)
MEMORY_QUOTA = _declare("quota.memory", MEMORY, None, "Memory of its slots beyond which a job is not scaled up.",
                        test=_NOT_EMPTY)
ALIGNMENT = _declare("scaling.parallelism-alignment.mode", enum_type(ParallelismAlignment),
                     ParallelismAlignment.SUFFICIENT,
                     "How parallelisms fit the number of key groups, or of a source's partitions. SUFFICIENT: the "
                     "least with which the subtask that has most of them is fast enough; BALANCED, Flink's "
                     "default: the first from the computed one on with which subtasks have fewer, or which is a "
                     "divisor; EVENLY_SPREAD: the next divisor; OFF: as computed.")
ADJUSTMENT = _declare("scaling.key-group.partitions.adjust.mode", enum_type(KeyGroupAdjustment), None,
                      "Flink's older option for the same, heeded where the newer one is not set: EVENLY_SPREAD prefers "
                      "divisors, MAXIMIZE_UTILISATION takes the least that lowers the load.")
OBSERVED_SCALABILITY = _declare("observed-scalability.enabled", BOOLEAN, False,
                                "Estimate from past decisions how much faster a vertex gets with more subtasks.")
SCALABILITY_MIN = _declare("observed-scalability.min-observations", INT, 3, "Past decisions that this takes.",
                           test=_POSITIVE)
SCALABILITY_LEAST = _declare("observed-scalability.coefficient-min", DOUBLE, 0.5, "Least such factor.",
                             test=_UTILIZATION)
SCHEDULER_MODE = _option(AUTOSCALER, "scheduler-mode", enum_type(SchedulerMode), SchedulerMode.DEFAULT,
                         "REACTIVE: on Ray, a job takes the slots that the cluster has, and grows and shrinks as nodes "
                         "come and go; see [Reactive mode](autoscaling.md#reactive-mode).")
RESOURCE_STABILIZATION = _option(
    AUTOSCALER, "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout", DURATION, _ms(60_000),
    "In reactive mode, time for which the number of slots has to stay before the job is rescaled.",
    test=_NO_NEGATIVE_TIME,
)  # fmt: skip
RESCALE_COOLDOWN = _option(
    AUTOSCALER, "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling", DURATION, _ms(30_000),
    "In reactive mode, time after a start within which the job does not grow.", test=_NO_NEGATIVE_TIME,
)  # fmt: skip
_NO_JVM = "has no heap of Java; it bounds the memory of slots by their resources"
_UNHEEDED: tuple[tuple[str, ValueType[Any], Any, str, str], ...] = (
    ("memory.gc-pressure.threshold", DOUBLE, 1.0, "Share of time in garbage collection.", _NO_JVM),
    ("memory.tuning.enabled", BOOLEAN, False, "Change the memory of processes.", _NO_JVM),
    ("memory.tuning.overhead", DOUBLE, 0.2, "Memory left free by that.", _NO_JVM),
    ("memory.tuning.scale-down-compensation.enabled", BOOLEAN, True, "Raise it with fewer processes.", _NO_JVM),
    ("memory.tuning.maximize-managed-memory", BOOLEAN, False, "Give the rest to managed memory.", _NO_JVM),
    ("flink.rest-client.timeout", DURATION, _ms(10_000), "Timeout of requests to the job.",
     "decides in the job's coordinator, without requests"),
)  # fmt: skip
for _key, _type, _default, _help, _instead in _UNHEEDED:
    _option(AUTOSCALER, f"job.autoscaler.{_key}", _type, _default, _help, unheeded=_instead)
_REFUSED: tuple[tuple[str, str, str], ...] = (
    ("metrics.custom-evaluators", "Classes of Java that change the metrics.",
     "remove it: there are no classes of Java; sources of your own can report `pendingRecords`"),
    ("scaling.custom-executors", "Classes of Java that change or forbid decisions.",
     "remove it: there are no classes of Java; `job.autoscaler.scaling.enabled: false` and `client.rescale` let a "
     "program of yours decide"),
)  # fmt: skip
for _key, _help, _instead in _REFUSED:
    _option(AUTOSCALER, f"job.autoscaler.{_key}", LIST, None, _help, refused=_instead)
