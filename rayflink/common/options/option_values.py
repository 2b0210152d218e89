"""Values of the options that are one of several words."""

from __future__ import annotations

from enum import Enum

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


class LogFormat(Enum):
    """The form of log lines: for people, or a JSON object each."""

    TEXT = "text"
    JSON = "json"


class SpanDetail(Enum):
    """The detail of the trace of a checkpoint: one span, with figures of tasks, or with spans of tasks or subtasks."""

    SPAN_PER_CHECKPOINT = "SPAN_PER_CHECKPOINT"
    SPAN_PER_CHECKPOINT_WITH_TASKS = "SPAN_PER_CHECKPOINT_WITH_TASKS"
    CHILDREN_SPANS_PER_TASK = "CHILDREN_SPANS_PER_TASK"
    CHILDREN_SPANS_PER_SUBTASK = "CHILDREN_SPANS_PER_SUBTASK"


class RuntimeMode(Enum):
    """The mode of a program: as a stream, as a batch, or as its sources allow."""

    STREAMING = "STREAMING"
    BATCH = "BATCH"
    AUTOMATIC = "AUTOMATIC"


class Target(Enum):
    """The place where a job runs: in this process, on Ray actors, or where a dispatcher lets it run."""

    LOCAL = "local"
    RAY = "ray"
    REMOTE = "remote"


class LoopbackRole(Enum):
    """The role of clients on the server's machine that bring no token."""

    NONE = "none"
    READ = "read"
    OPERATE = "operate"


class TlsVersion(Enum):
    """A version of TLS."""

    TLS_1_2 = "TLSv1.2"
    TLS_1_3 = "TLSv1.3"


class PlacementStrategy(Enum):
    """The placement of slots on nodes: as few as possible, one only, evenly, or one node a slot."""

    PACK = "PACK"
    STRICT_PACK = "STRICT_PACK"
    SPREAD = "SPREAD"
    STRICT_SPREAD = "STRICT_SPREAD"


class AggPhaseStrategy(Enum):
    """The phases of an aggregation: where rows come in and again where they are partitioned, or only there."""

    AUTO = "AUTO"
    ONE_PHASE = "ONE_PHASE"
    TWO_PHASE = "TWO_PHASE"


class NotNullEnforcer(Enum):
    """The treatment of NULL where a table allows none."""

    ERROR = "ERROR"
    DROP = "DROP"


class TypeLengthEnforcer(Enum):
    """The treatment of strings and bytes of another length than their column's."""

    IGNORE = "IGNORE"
    TRIM_PAD = "TRIM_PAD"
    ERROR = "ERROR"


class UpsertMaterialize(Enum):
    """The tables before which the rows of each key are stored."""

    NONE = "NONE"
    AUTO = "AUTO"
    FORCE = "FORCE"


class CatalogStoreKind(Enum):
    """The place of the definitions of catalogs."""

    GENERIC_IN_MEMORY = "generic_in_memory"
    FILE = "file"


class ResultMode(Enum):
    """The ways in which the SQL shell shows the rows of a query."""

    TABLE = "table"
    CHANGELOG = "changelog"
    TABLEAU = "tableau"


class ResultFormat(Enum):
    """The formats in which the SQL shell writes rows."""

    TEXT = "text"
    CSV = "csv"
    JSON = "json"


class SinkKeyedShuffle(Enum):
    """The tables before which rows are partitioned by PRIMARY KEY."""

    NONE = "NONE"
    AUTO = "AUTO"
    FORCE = "FORCE"


class LookupOutput(Enum):
    """The order in which the results of lookups leave."""

    ORDERED = "ORDERED"
    ALLOW_UNORDERED = "ALLOW_UNORDERED"


class AsyncRetry(Enum):
    """The treatment of a call of an asynchronous function that fails: none, or another after a pause."""

    NO_RETRY = "NO_RETRY"
    FIXED_DELAY = "FIXED_DELAY"


class NonDeterministicUpdates(Enum):
    """The treatment of rows that change and whose results depend on the time at which they are computed."""

    IGNORE = "IGNORE"
    TRY_RESOLVE = "TRY_RESOLVE"


class FailoverStrategy(Enum):
    """The tasks that restart when one fails: all tasks, or its pipelined region."""

    FULL = "full"
    REGION = "region"


class RestartStrategyType(Enum):
    """The strategy of restarts: how often and how soon a failed job restarts."""

    NONE = "none"
    OFF = "off"
    DISABLE = "disable"
    FIXED_DELAY = "fixed-delay"
    FAILURE_RATE = "failure-rate"
    EXPONENTIAL_DELAY = "exponential-delay"


class CheckpointingMode(Enum):
    """The guarantee that a restore gives about state."""

    EXACTLY_ONCE = "EXACTLY_ONCE"
    AT_LEAST_ONCE = "AT_LEAST_ONCE"


class ExternalizedCheckpointRetention(Enum):
    """The fate of checkpoints when a job is cancelled."""

    DELETE_ON_CANCELLATION = "DELETE_ON_CANCELLATION"
    RETAIN_ON_CANCELLATION = "RETAIN_ON_CANCELLATION"
    NO_EXTERNALIZED_CHECKPOINTS = "NO_EXTERNALIZED_CHECKPOINTS"


class ClosureCleanerLevel(Enum):
    """The depth to which Flink looks into Java's closures for what they need not take along."""

    NONE = "NONE"
    TOP_LEVEL = "TOP_LEVEL"
    RECURSIVE = "RECURSIVE"


class StateBackendType(Enum):
    """The place of keyed state between records."""

    HASHMAP = "hashmap"
    ROCKSDB = "rocksdb"


class CompactionStyle(Enum):
    """The way in which RocksDB joins its files."""

    LEVEL = "LEVEL"
    UNIVERSAL = "UNIVERSAL"


class CatalogPlanCompilation(Enum):
    """The part of what a catalog knows of tables and functions that is written into a compiled plan."""

    ALL = "ALL"
    SCHEMA = "SCHEMA"
    IDENTIFIER = "IDENTIFIER"


class CatalogPlanRestore(Enum):
    """The source of what is known of the tables and functions of a compiled plan when it is loaded."""

    ALL = "ALL"
    ALL_ENFORCED = "ALL_ENFORCED"
    IDENTIFIER = "IDENTIFIER"


__all__ = [
    "AggPhaseStrategy",
    "AsyncRetry",
    "CatalogPlanCompilation",
    "CatalogPlanRestore",
    "CheckpointingMode",
    "ClosureCleanerLevel",
    "CompactionStyle",
    "ExternalizedCheckpointRetention",
    "FailoverStrategy",
    "LookupOutput",
    "NonDeterministicUpdates",
    "NotNullEnforcer",
    "PlacementStrategy",
    "RestartStrategyType",
    "RuntimeMode",
    "CatalogStoreKind",
    "ResultFormat",
    "ResultMode",
    "SinkKeyedShuffle",
    "StateBackendType",
    "Target",
    "TypeLengthEnforcer",
    "UpsertMaterialize",
]
