"""What options may be that are one of several words."""

from __future__ import annotations

from enum import Enum

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


class RuntimeMode(Enum):
    """How a program runs: as a stream, as a batch, or as its sources allow."""

    STREAMING = "STREAMING"
    BATCH = "BATCH"
    AUTOMATIC = "AUTOMATIC"


class Target(Enum):
    """Where a job runs: in this process, or on Ray actors."""

    LOCAL = "local"
    RAY = "ray"


class PlacementStrategy(Enum):
    """How slots are laid on nodes: as few as possible, one only, evenly, or one node a slot."""

    PACK = "PACK"
    STRICT_PACK = "STRICT_PACK"
    SPREAD = "SPREAD"
    STRICT_SPREAD = "STRICT_SPREAD"


class AggPhaseStrategy(Enum):
    """Aggregate where rows come in and again where they are dealt to, or only there."""

    AUTO = "AUTO"
    ONE_PHASE = "ONE_PHASE"
    TWO_PHASE = "TWO_PHASE"


class NotNullEnforcer(Enum):
    """What becomes of NULL where a table has none."""

    ERROR = "ERROR"
    DROP = "DROP"


class TypeLengthEnforcer(Enum):
    """What becomes of texts and bytes of another length than their column's."""

    IGNORE = "IGNORE"
    TRIM_PAD = "TRIM_PAD"
    ERROR = "ERROR"


class FailoverStrategy(Enum):
    """What restarts when a task fails: all tasks, or its pipelined region."""

    FULL = "full"
    REGION = "region"


class RestartStrategyType(Enum):
    """How often and how soon a failed job restarts."""

    NONE = "none"
    OFF = "off"
    DISABLE = "disable"
    FIXED_DELAY = "fixed-delay"
    FAILURE_RATE = "failure-rate"
    EXPONENTIAL_DELAY = "exponential-delay"


class CheckpointingMode(Enum):
    """What a restore guarantees about state."""

    EXACTLY_ONCE = "EXACTLY_ONCE"
    AT_LEAST_ONCE = "AT_LEAST_ONCE"


class ExternalizedCheckpointRetention(Enum):
    """What becomes of checkpoints when a job is cancelled."""

    DELETE_ON_CANCELLATION = "DELETE_ON_CANCELLATION"
    RETAIN_ON_CANCELLATION = "RETAIN_ON_CANCELLATION"
    NO_EXTERNALIZED_CHECKPOINTS = "NO_EXTERNALIZED_CHECKPOINTS"


class ClosureCleanerLevel(Enum):
    """How deep Flink looks into Java's closures for what they need not take along."""

    NONE = "NONE"
    TOP_LEVEL = "TOP_LEVEL"
    RECURSIVE = "RECURSIVE"


class StateBackendType(Enum):
    """Where keyed state lives between records."""

    HASHMAP = "hashmap"
    ROCKSDB = "rocksdb"


class CompactionStyle(Enum):
    """How RocksDB joins its files."""

    LEVEL = "LEVEL"
    UNIVERSAL = "UNIVERSAL"


__all__ = [
    "AggPhaseStrategy",
    "CheckpointingMode",
    "ClosureCleanerLevel",
    "CompactionStyle",
    "ExternalizedCheckpointRetention",
    "FailoverStrategy",
    "NotNullEnforcer",
    "PlacementStrategy",
    "RestartStrategyType",
    "RuntimeMode",
    "StateBackendType",
    "Target",
    "TypeLengthEnforcer",
]
