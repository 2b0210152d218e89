"""The one registry of options: every key rayflink reads, with type, default and help.

``python -m rayflink.common.options.registry`` prints it as the Markdown of docs/configuration.md. Names are
Flink's where Flink has the option; what is ours begins with ``rayflink.``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from ..config_options import ConfigOption
from ..time import Duration
from .option_types import (
    BOOLEAN,
    DOUBLE,
    DURATION,
    INT,
    LIST,
    LONG,
    MAP,
    MEMORY,
    STRING,
    MemorySize,
    ValueType,
    enum_type,
)
from .option_values import LOG_LEVELS
from .option_values import AggPhaseStrategy as AggPhaseStrategy
from .option_values import CheckpointingMode as CheckpointingMode
from .option_values import ClosureCleanerLevel as ClosureCleanerLevel
from .option_values import CompactionStyle as CompactionStyle
from .option_values import ExternalizedCheckpointRetention as ExternalizedCheckpointRetention
from .option_values import FailoverStrategy as FailoverStrategy
from .option_values import NotNullEnforcer as NotNullEnforcer
from .option_values import PlacementStrategy as PlacementStrategy
from .option_values import RestartStrategyType as RestartStrategyType
from .option_values import RuntimeMode as RuntimeMode
from .option_values import StateBackendType as StateBackendType
from .option_values import Target as Target
from .option_values import TypeLengthEnforcer as TypeLengthEnforcer

T = TypeVar("T")
_sections: dict[str, list[ConfigOption[Any]]] = {}
_MAX_INT = 2**31 - 1
_Test = tuple[Callable[[Any], bool], str]
_POSITIVE: _Test = (lambda value: value > 0, "a number above 0")
_NOT_NEGATIVE: _Test = (lambda value: value >= 0, "a number of at least 0")
_LONGER_THAN_ZERO: _Test = (lambda value: value.to_nanos() > 0, "a duration above 0")
_NOT_EMPTY: _Test = (lambda value: value.bytes > 0, "a size above 0 bytes")
_NAME: _Test = (bool, "a name")
_PART: _Test = (lambda value: 0 < value < 1, "a number between 0 and 1")
_FRACTION: _Test = (lambda value: 0 <= value <= 1, "a number in [0, 1]")
_NO_NEGATIVE_TIME: _Test = (lambda value: value.to_nanos() >= 0, "a duration of at least 0")


def _option(
    section: str,
    key: str,
    type: ValueType[T],
    default: T | None,
    help: str,
    *fallback: tuple[str, ...],
    **more: Any,
) -> ConfigOption[T]:
    """Register an option; `more` may hold the `test` of its values, why it is `refused` or how `unheeded`."""
    accepts, wanted = more.pop("test", (None, ""))
    older = fallback[0] if fallback else ()
    option = ConfigOption(key, type, default, help, older, accepts, wanted, **more)
    _sections.setdefault(section, []).append(option)
    return option


def _ms(amount: int) -> Duration:
    return Duration.of_millis(amount)


def _kb(amount: int) -> MemorySize:
    return MemorySize(amount * 1024)


_P = "Pipeline"
PARALLELISM = _option(_P, "parallelism.default", INT, 1, "Subtasks of an operator that sets none; at least 1.",
                      test=_POSITIVE)
MAX_PARALLELISM = _option(_P, "pipeline.max-parallelism", INT, -1,
                          "Key groups of a job, in [1, 32768], fixed for its life; -1 derives it from the parallelism: "
                          "at least 128.",
                          test=(lambda value: value == -1 or 1 <= value <= 32768, "-1 or a number in [1, 32768]"))
OBJECT_REUSE = _option(_P, "pipeline.object-reuse", BOOLEAN, False,
                       "Hand values to chained functions as they are. Unset: copies to all but one; false: to all.")
OPERATOR_CHAINING = _option(_P, "pipeline.operator-chaining.enabled", BOOLEAN, True,
                            "Run operators joined by forward edges in one task.", ("pipeline.operator-chaining",))
CHAIN_DIFFERENT_MAX_PARALLELISM = _option(
    _P, "pipeline.operator-chaining.chain-operators-with-different-max-parallelism", BOOLEAN, True,
    "Chain operators even where their max parallelism differs.", unheeded="always chains them")
PIPELINE_NAME = _option(_P, "pipeline.name", STRING, None, "Name of the job where execute() gives none.")
CACHED_FILES = _option(_P, "pipeline.cached-files", LIST, None,
                       "Files every task finds locally: `name:n1,path:p1;name:n2,path:p2`.",
                       unheeded="takes these files by register_cached_file() only")
AUTO_WATERMARK_INTERVAL = _option(_P, "pipeline.auto-watermark-interval", DURATION, _ms(200),
                                  "Time between periodic watermarks; 0 turns them off.",
                                  test=_NO_NEGATIVE_TIME)
IDLE_ADVANCE_DELAY = _option(_P, "rayflink.watermark.idle-advance-delay", DURATION, None,
                             "After all sources of a task have been idle for so long, event time goes on by the clock, "
                             "so that open windows close; records that come later than that are late. Sources are idle "
                             "by `with_idleness`. Default: event time stands still.", test=_LONGER_THAN_ZERO)
GLOBAL_JOB_PARAMETERS = _option(_P, "pipeline.global-job-parameters", MAP, None,
                                "Parameters every function can read from its runtime context.")
AUTO_GENERATED_UIDS = _option(_P, "pipeline.auto-generate-uids", BOOLEAN, True,
                              "False refuses a program with an operator that has no uid.")
GENERIC_TYPES = _option(_P, "pipeline.generic-types", BOOLEAN, True,
                        "False refuses Java types that go through Kryo.",
                        unheeded="has no Kryo and pickles values without a declared type")
FORCE_KRYO = _option(_P, "pipeline.force-kryo", BOOLEAN, False, "Write Java's POJOs with Kryo.",
                     unheeded="has no Kryo and no Java types")
FORCE_AVRO = _option(_P, "pipeline.force-avro", BOOLEAN, False, "Write Java's POJOs with Avro.",
                     unheeded="writes no records as Avro and has no Java types")
CLOSURE_CLEANER = _option(_P, "pipeline.closure-cleaner-level", enum_type(ClosureCleanerLevel),
                          ClosureCleanerLevel.RECURSIVE, "What is taken out of Java's closures.",
                          unheeded="has no Java closures; Python's functions take along what they use")
PYTHON_FILES = _option(_P, "python.files", STRING, None,
                       "Modules the program takes along: .py files, folders, .zip and .egg files, with commas between. "
                       "On Ray they are copied to every node.")
MODULES_BESIDE = _option(_P, "rayflink.python.modules-beside", BOOLEAN, True,
                         "On Ray, the modules and packages in the program's folder that it imports are copied to every "
                         "node, too.")
PIPELINE_JARS = _option(_P, "pipeline.jars", LIST, None, "Not supported: there is no JVM in the data path.",
                        refused="remove it and use the Python connectors of rayflink")
PIPELINE_CLASSPATHS = _option(_P, "pipeline.classpaths", LIST, None, "Not supported: there is no JVM in the data path.",
                              refused="remove it and use the Python connectors of rayflink")

_E = "Execution"
RUNTIME_MODE = _option(_E, "execution.runtime-mode", enum_type(RuntimeMode), RuntimeMode.STREAMING,
                       "STREAMING schedules all tasks at once; BATCH starts a task when its input is complete; "
                       "AUTOMATIC is BATCH where all sources end.")
SORTED_INPUTS = _option(_E, "execution.sorted-inputs.enabled", BOOLEAN, True,
                        "In batch mode the input of keyed operators is sorted by key; False keeps all keys in state.")
SORTED_INPUTS_MEMORY = _option(_E, "execution.sorted-inputs.memory", MEMORY, MemorySize(128 << 20),
                               "Most that one sorted input, or one that waits for a broadcast one, keeps in memory, "
                               "while the slot has managed memory for it; the rest goes to disk.")
BUFFER_TIMEOUT = _option(_E, "execution.buffer-timeout.interval", DURATION, _ms(100),
                         "Longest a record waits for its batch to fill; 0 sends each record at once; -1 ms sends full "
                         "batches only.", ("execution.buffer-timeout",))
BUFFER_TIMEOUT_ENABLED = _option(_E, "execution.buffer-timeout.enabled", BOOLEAN, True,
                                 "False sends full batches only.")
ATTACHED = _option(_E, "execution.attached", BOOLEAN, False,
                   "Set to false (command line: -d), execute() submits the job and goes on; the job needs a running "
                   "cluster. Flink sets it to true in its local and remote environments and in `flink run`, and so "
                   "execute() waits here where it is not set, although the default is false.")
SHUTDOWN_ON_ATTACHED_EXIT = _option(_E, "execution.shutdown-on-attached-exit", BOOLEAN, False,
                                    "An attached job is cancelled when the driver ends (Ctrl-C, SIGTERM).")
TARGET = _option(_E, "execution.target", enum_type(Target), None,
                 "local runs in this process; ray runs on actors of the running cluster, else of a local Ray.")
RESTORE_PATH = _option(_E, "execution.state-recovery.path", STRING, None,
                       "Checkpoint or savepoint to start from (command line: -s).", ("execution.savepoint.path",))
LOCAL_RECOVERY = _option(_E, "execution.state-recovery.from-local", BOOLEAN, False, "Restart from files that stayed "
                         "on the node of a task, where they did.", ("state.backend.local-recovery",))
IGNORE_UNCLAIMED_STATE = _option(_E, "execution.state-recovery.ignore-unclaimed-state", BOOLEAN, False,
                                 "Start although the snapshot holds state no operator claims (command line: -n).",
                                 ("execution.savepoint.ignore-unclaimed-state",))

_T = "Tasks"
SLOTS_PER_NODE = _option(_T, "taskmanager.numberOfTaskSlots", INT, 1, "Slots on one node; at least 1.", test=_POSITIVE,
                         unheeded="gives a node as many slots as Ray finds CPUs on it")
FLINK_MEMORY = _option(_T, "taskmanager.memory.flink.size", MEMORY, _kb(1280 * 1024),
                       "Memory of a slot: its managed memory, and the rest for user code and network buffers in use. "
                       "The managed part is kept to; the rest is a number to plan with, which nothing enforces.",
                       test=_NOT_EMPTY)
MANAGED_SIZE = _option(_T, "taskmanager.memory.managed.size", MEMORY, None,
                       "Most that keyed state in RocksDB, or in batch mode blocking partitions and sorted inputs, keep "
                       "in memory in one slot together; the rest is on disk. Never allocated ahead. Default: "
                       "`taskmanager.memory.managed.fraction` of `taskmanager.memory.flink.size`.",
                       ("taskmanager.memory.size",))
MANAGED_FRACTION = _option(_T, "taskmanager.memory.managed.fraction", DOUBLE, 0.4,
                           "Share of `taskmanager.memory.flink.size` that is managed memory where "
                           "`taskmanager.memory.managed.size` is not set.", ("taskmanager.memory.fraction",),
                           test=_FRACTION)
NUMBER_OF_BUFFERS = _option(_T, "taskmanager.network.numberOfBuffers", INT, 2048,
                            "Network buffers all channels of a task's process share; at least 1.", test=_POSITIVE)
CREDIT_MODEL = _option(_T, "taskmanager.network.credit-model", BOOLEAN, True,
                       "Credit-based flow control; it is always on.",
                       test=(lambda value: value, "true: rayflink has no other flow control"))
BUFFERS_PER_CHANNEL = _option(_T, "taskmanager.network.memory.buffers-per-channel", INT, 2,
                              "Exclusive buffers of one channel; at least 1.", test=_POSITIVE)
FLOATING_BUFFERS_PER_GATE = _option(_T, "taskmanager.network.memory.floating-buffers-per-gate", INT, 8,
                                    "Buffers the channels of one gate share; at least 0.", test=_NOT_NEGATIVE)
MAX_BUFFERS_PER_CHANNEL = _option(_T, "taskmanager.network.memory.max-buffers-per-channel", INT, 10,
                                  "Most buffers one outgoing channel may hold; at least 1.", test=_POSITIVE)
MAX_OVERDRAFT_BUFFERS = _option(_T, "taskmanager.network.memory.max-overdraft-buffers-per-gate", INT, 5,
                                "More buffers to end an element in front of an unaligned barrier.", test=_NOT_NEGATIVE)
BUFFER_DEBLOAT_ENABLED = _option(
    _T, "taskmanager.network.memory.buffer-debloat.enabled", BOOLEAN, True,
    "Let no more records be in flight to a task than it works off in the target time, by its measured rate; always at "
    "least one a channel. Flink's default is false. Batch jobs are not bounded by it.")
BUFFER_DEBLOAT_TARGET = _option(
    _T, "taskmanager.network.memory.buffer-debloat.target", DURATION, _ms(1000),
    "Time in which a task should work off what is in flight to it.", test=_LONGER_THAN_ZERO)
BUFFER_DEBLOAT_PERIOD = _option(
    _T, "taskmanager.network.memory.buffer-debloat.period", DURATION, _ms(200),
    "Least time between two sizes of what may be in flight; at the start of a task it grows faster.",
    test=_LONGER_THAN_ZERO)
BUFFER_DEBLOAT_THRESHOLD = _option(
    _T, "taskmanager.network.memory.buffer-debloat.threshold-percentages", INT, 25,
    "Least change of it, in percent, that is announced to producers; in [0, 100].",
    test=(lambda value: 0 <= value <= 100, "a number in [0, 100]"))
BUFFER_DEBLOAT_SAMPLES = _option(
    _T, "taskmanager.network.memory.buffer-debloat.samples", INT, 20,
    "Measurements over which the rate is averaged; at least 1.",
    test=_POSITIVE, unheeded="averages the rate over the target time")
REQUEST_BACKOFF_INITIAL = _option(_T, "taskmanager.network.request-backoff.initial", INT, 100,
                                  "Milliseconds until a partition its producer does not know yet is asked for again; "
                                  "the wait doubles each time; 0 never asks again.", test=_NOT_NEGATIVE)
REQUEST_BACKOFF_MAX = _option(_T, "taskmanager.network.request-backoff.max", INT, 10_000,
                              "Longest of these waits, in milliseconds; after it the task fails.", test=_NOT_NEGATIVE)
TMP_DIRS = _option(_T, "io.tmp.dirs", LIST, None, "Folders for spill files, used in turn. Default: the system's.")
FEEDBACK_MEMORY = _option(_T, "rayflink.feedback.memory", MEMORY, MemorySize(32 << 20),
                          "Of the records that one subtask feeds back and its head has not taken yet, kept in memory; "
                          "the rest is spilled.")
BLOCKING_MEMORY = _option(_T, "rayflink.blocking-partition.memory", MEMORY, _kb(4096),
                          "Most of a blocking result partition that is kept in memory, while the slot has managed "
                          "memory for it; the rest is spilled.")
DETAILED_NETWORK_METRICS = _option(_T, "taskmanager.network.detailed-metrics", BOOLEAN, False,
                                   "Report the queue length of inputs and outputs.")
EXIT_ON_OUT_OF_MEMORY = _option(_T, "taskmanager.jvm-exit-on-oom", BOOLEAN, False,
                                "End the worker process on MemoryError instead of failing the task alone.")
CANCELLATION_INTERVAL = _option(_T, "task.cancellation.interval", DURATION, _ms(30_000),
                                "Time between two interrupts of a task that is being cancelled.",
                                test=_LONGER_THAN_ZERO,
                                unheeded="interrupts no function that runs; see task.cancellation.timeout")
CANCELLATION_TIMEOUT = _option(_T, "task.cancellation.timeout", DURATION, _ms(180_000),
                               "After this time the process of a task that does not cancel is ended; 0 waits for ever.",
                               test=_NO_NEGATIVE_TIME)

_C = "Cluster"
HEARTBEAT_INTERVAL = _option(_C, "heartbeat.interval", DURATION, _ms(10_000),
                             "Time between two heartbeats of a task.", test=_LONGER_THAN_ZERO)
HEARTBEAT_TIMEOUT = _option(_C, "heartbeat.timeout", DURATION, _ms(50_000),
                            "Silence after which a task counts as lost.", test=_LONGER_THAN_ZERO)
SLOT_REQUEST_TIMEOUT = _option(_C, "slot.request.timeout", DURATION, _ms(300_000),
                               "Time a job waits for slots before it fails.", test=_LONGER_THAN_ZERO)
ASK_TIMEOUT = _option(_C, "pekko.ask.timeout", DURATION, _ms(10_000),
                      "Time a request to the coordinator or a task may take.", ("akka.ask.timeout",),
                      test=_LONGER_THAN_ZERO)

_F = "Failure and restart"
FAILOVER_STRATEGY = _option(_F, "jobmanager.execution.failover-strategy", enum_type(FailoverStrategy),
                            FailoverStrategy.REGION, "What restarts when a task fails.")
RESTART_STRATEGY = _option(_F, "restart-strategy.type", enum_type(RestartStrategyType), None,
                           "none, off and disable never restart; absent: exponential-delay with checkpoints on, "
                           "and none with `execution.target: local`.", ("restart-strategy",))
FIXED_DELAY_ATTEMPTS = _option(_F, "restart-strategy.fixed-delay.attempts", INT, 1,
                               "Restarts before the job fails; at least 0.", test=_NOT_NEGATIVE)
FIXED_DELAY_DELAY = _option(_F, "restart-strategy.fixed-delay.delay", DURATION, _ms(1000), "Time before a restart.",
                            test=_NO_NEGATIVE_TIME)
FAILURE_RATE_MAX = _option(_F, "restart-strategy.failure-rate.max-failures-per-interval", INT, 1,
                           "Failures within the interval that still restart; at least 0.", test=_NOT_NEGATIVE)
FAILURE_RATE_INTERVAL = _option(_F, "restart-strategy.failure-rate.failure-rate-interval", DURATION, _ms(60_000),
                                "Interval in which failures are counted.", test=_LONGER_THAN_ZERO)
FAILURE_RATE_DELAY = _option(_F, "restart-strategy.failure-rate.delay", DURATION, _ms(1000), "Time before a restart.",
                            test=_NO_NEGATIVE_TIME)
BACKOFF_INITIAL = _option(_F, "restart-strategy.exponential-delay.initial-backoff", DURATION, _ms(1000),
                          "Time before the first restart.", test=_LONGER_THAN_ZERO)
BACKOFF_MAX = _option(_F, "restart-strategy.exponential-delay.max-backoff", DURATION, _ms(60_000),
                      "Longest time before a restart.", test=_LONGER_THAN_ZERO)
BACKOFF_MULTIPLIER = _option(_F, "restart-strategy.exponential-delay.backoff-multiplier", DOUBLE, 1.5,
                             "Factor between one wait and the next; at least 1.",
                             test=(lambda value: value >= 1, "a number of at least 1"))
BACKOFF_RESET = _option(_F, "restart-strategy.exponential-delay.reset-backoff-threshold", DURATION, _ms(3_600_000),
                        "Time without failure after which waits begin anew.", test=_LONGER_THAN_ZERO)
BACKOFF_JITTER = _option(_F, "restart-strategy.exponential-delay.jitter-factor", DOUBLE, 0.1,
                         "Share of a wait that is random, in [0, 1].", test=_FRACTION)
BACKOFF_ATTEMPTS = _option(_F, "restart-strategy.exponential-delay.attempts-before-reset-backoff", INT, _MAX_INT,
                           "Restarts without reset before the job fails; at least 0.", test=_NOT_NEGATIVE)
SAME_FAILURE_ATTEMPTS = _option(_F, "rayflink.restart-strategy.same-failure.attempts", INT, 3, "Failures of the same "
                                "place with no complete checkpoint between that end the job, whatever the strategy; "
                                "lost processes and connections do not count; 0: no limit.", test=_NOT_NEGATIVE)

_K = "Checkpoints and state"
CHECKPOINT_INTERVAL = _option(_K, "execution.checkpointing.interval", DURATION, None,
                              "Time between two checkpoints; absent: no periodic checkpoints.", test=_LONGER_THAN_ZERO)
CHECKPOINT_INTERVAL_DURING_BACKLOG = _option(_K, "execution.checkpointing.interval-during-backlog", DURATION, None,
                                             "Time between two while a source has a backlog.",
                                             unheeded="has one interval")
CHECKPOINT_MODE = _option(_K, "execution.checkpointing.mode", enum_type(CheckpointingMode),
                          CheckpointingMode.EXACTLY_ONCE, "What a restore guarantees about state.")
CHECKPOINT_TIMEOUT = _option(_K, "execution.checkpointing.timeout", DURATION, _ms(600_000),
                             "Time after which a checkpoint that is not complete is given up.", test=_LONGER_THAN_ZERO)
CHECKPOINT_MIN_PAUSE = _option(_K, "execution.checkpointing.min-pause", DURATION, _ms(0), "Least time from the end of "
                               "one checkpoint to the start of the next.", test=_NO_NEGATIVE_TIME)
CHECKPOINT_MAX_CONCURRENT = _option(_K, "execution.checkpointing.max-concurrent-checkpoints", INT, 1,
                                    "Checkpoints under way at the same time; at least 1, and not more where barriers "
                                    "overtake data.", test=_POSITIVE)
CHECKPOINT_UNALIGNED = _option(_K, "execution.checkpointing.unaligned.enabled", BOOLEAN, False,
                               "Barriers overtake data, which becomes part of the checkpoint; with EXACTLY_ONCE alone.",
                               ("execution.checkpointing.unaligned",))
CHECKPOINT_FORCE_UNALIGNED = _option(_K, "execution.checkpointing.unaligned.forced", BOOLEAN, False,
                                     "With unaligned.enabled: in a job with iterations too, where they wait else.")
CHECKPOINT_ALIGNED_TIMEOUT = _option(_K, "execution.checkpointing.aligned-checkpoint-timeout", DURATION, _ms(0),
                                     "With unaligned.enabled: time a checkpoint stays aligned; 0 starts unaligned.",
                                     ("execution.checkpointing.alignment-timeout",), test=_NO_NEGATIVE_TIME)
CHECKPOINT_TOLERABLE_FAILURES = _option(_K, "execution.checkpointing.tolerable-failed-checkpoints", INT, 0,
                                        "Checkpoint failures in a row before the job fails; at least 0.",
                                        test=_NOT_NEGATIVE)
CHECKPOINTS_AFTER_TASKS_FINISH = _option(
    _K, "execution.checkpointing.checkpoints-after-tasks-finish", BOOLEAN, True, "Go on once tasks have finished.",
    ("execution.checkpointing.checkpoints-after-tasks-finish.enabled",), unheeded="always does: sinks would lose rows")
CHECKPOINTS_RETAINED = _option(_K, "execution.checkpointing.num-retained", INT, 1,
                               "Complete checkpoints to keep; at least 1.", ("state.checkpoints.num-retained",),
                               test=_POSITIVE)
CHECKPOINT_RETENTION = _option(_K, "execution.checkpointing.externalized-checkpoint-retention",
                               enum_type(ExternalizedCheckpointRetention),
                               ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS,
                               "What becomes of checkpoints when the job is cancelled.")
CHECKPOINT_INCREMENTAL = _option(_K, "execution.checkpointing.incremental", BOOLEAN, False,
                                 "Store only what changed since the last checkpoint.", ("state.backend.incremental",),
                                 unheeded="writes what suits the state backend")
SNAPSHOT_COMPRESSION = _option(_K, "execution.checkpointing.snapshot-compression", BOOLEAN, False,
                               "Compress snapshots of keyed state.", unheeded="does not compress snapshots")
CHECKPOINT_DIRECTORY = _option(_K, "execution.checkpointing.dir", STRING, None, "Directory of checkpoints, a path or "
                               "URL every node reaches.", ("state.checkpoints.dir",))
SAVEPOINT_DIRECTORY = _option(_K, "execution.checkpointing.savepoint-dir", STRING, None, "Directory of savepoints that "
                              "name none.", ("state.savepoints.dir",))
HA_STORAGE_DIR = _option(_K, "high-availability.storageDir", STRING, None, "Directory in which a job with checkpoints "
                         "is stored, to go on when its coordinator or cluster is lost. Default: that of checkpoints.")
S3_ENDPOINT = _option(_K, "s3.endpoint", STRING, None, "URL of the server of `s3://` directories. Default: the "
                      "environment's, else Amazon's.")
S3_ACCESS_KEY = _option(_K, "s3.access-key", STRING, None, "Access key for it. Default: the environment's credentials.")
S3_SECRET_KEY = _option(_K, "s3.secret-key", STRING, None, "Secret of that key.")
S3_PATH_STYLE = _option(_K, "s3.path.style.access", BOOLEAN, True, "Name the bucket in the path, not in the host.")
S3_REGION = _option(_K, "s3.region", STRING, None, "Region of the bucket. Default: that of the environment.",
                    ("s3.endpoint.region",))
STATE_BACKEND = _option(_K, "state.backend.type", enum_type(StateBackendType), StateBackendType.ROCKSDB,
                        "Where keyed state lives between records: as objects in memory, or in RocksDB behind a cache, "
                        "which writes nothing to disk before the cache is full. Batch jobs keep one key's state, in "
                        "memory.", ("state.backend",))
ROCKSDB_DIRS = _option(_K, "state.backend.rocksdb.localdir", LIST, None,
                       "Folders for RocksDB's files, used in turn. Default: those of `io.tmp.dirs`.")
STATE_MEMORY = _option(_K, "state.backend.rocksdb.memory.fixed-per-slot", MEMORY, None,
                       "Memory of all RocksDB state of a slot, its cache included. Default: its managed memory.",
                       test=_NOT_EMPTY)
STATE_CACHE_RATIO = _option(_K, "rayflink.state.cache-ratio", DOUBLE, 0.5,
                            "Share of that memory for decoded values; the rest is RocksDB's own.", test=_PART)
WRITE_BUFFER_RATIO = _option(_K, "state.backend.rocksdb.memory.write-buffer-ratio", DOUBLE, 0.5,
                             "Share of RocksDB's own memory that what is not yet on disk may fill.", test=_PART)
ROCKSDB_MANAGED = _option(_K, "state.backend.rocksdb.memory.managed", BOOLEAN, True,
                          "Keep RocksDB's memory within the managed memory of the slot.", unheeded="always does")
ROCKSDB_BLOOM = _option(_K, "state.backend.rocksdb.use-bloom-filter", BOOLEAN, True,
                        "Keep filters that tell which files cannot hold a key.")
ROCKSDB_BLOOM_BITS = _option(_K, "state.backend.rocksdb.bloom-filter.bits-per-key", DOUBLE, 10.0,
                             "Size of these filters, in bits a key.", test=_POSITIVE)
ROCKSDB_BLOCK_SIZE = _option(_K, "state.backend.rocksdb.block.blocksize", MEMORY, _kb(4),
                             "Size of a block of RocksDB's files before compression.", test=_NOT_EMPTY)
ROCKSDB_BUFFER_SIZE = _option(_K, "state.backend.rocksdb.writebuffer.size", MEMORY, None,
                              "Size of a write buffer of one state. Default: an eighth of RocksDB's memory, 64 mb at "
                              "most.", test=_NOT_EMPTY)
ROCKSDB_BUFFERS = _option(_K, "state.backend.rocksdb.writebuffer.count", INT, None,
                          "Most write buffers of one state. Default: RocksDB's own.", test=_POSITIVE)
ROCKSDB_FILES = _option(_K, "state.backend.rocksdb.files.open", INT, -1,
                        "Most files a database has open; -1 for all.")
ROCKSDB_THREADS = _option(_K, "state.backend.rocksdb.thread.num", INT, 2,
                          "Threads of a database that write buffers to disk and compact files.", test=_POSITIVE)
ROCKSDB_COMPACTION = _option(_K, "state.backend.rocksdb.compaction.style", enum_type(CompactionStyle),
                             CompactionStyle.LEVEL,
                             "LEVEL: least space on disk. UNIVERSAL: files are rewritten less often, so that "
                             "incremental checkpoints store less, at up to three times the space.")
ROCKSDB_READERS = _option(_K, "rayflink.state.rocksdb.read-threads", INT, 8,
                          "Threads of a slot that read the state of one batch at the same time, each waiting for the "
                          "disk.", test=_POSITIVE)
ROCKSDB_DIRECT_IO = _option(_K, "rayflink.state.rocksdb.direct-io", BOOLEAN, False,
                            "Read and write RocksDB's files past the page cache of the operating system.")
CHANGELOG_STATE_BACKEND = _option(_K, "state.changelog.enabled", BOOLEAN, False,
                                  "Write each change of state to a log, so that checkpoints are short.",
                                  unheeded="writes no log of changes")
MOVED_CLASSES = _option(_K, "rayflink.state.moved-classes", MAP, None, "Dotted names of classes that moved: old:new.")
TTL_SWEEP_RATE = _option(_K, "rayflink.state.ttl.sweep-rate", INT, 5_000,
                         "Most entries a second that the background clean-up looks at, of each state with a time to "
                         "live in each subtask; 0: no clean-up. Ten times a second it works for about 5 ms at most.",
                         test=_NOT_NEGATIVE)
CHECKPOINT_INLINE_THRESHOLD = _option(_K, "execution.checkpointing.data-inline-threshold", MEMORY, _kb(20),
                                      "Parts of a snapshot up to this size are in its metadata and not in files.",
                                      ("state.storage.fs.memory-threshold",))
CHECKPOINT_HISTORY = _option(_K, "web.checkpoints.history", INT, 10, "Checkpoints the statistics remember; at least 0.",
                             test=_NOT_NEGATIVE)
MAX_INLINE_STATE = _option(_K, "rayflink.checkpointing.max-inline-state-size", MEMORY, _kb(5 * 1024),
                           "Most bytes of a task's snapshot the coordinator keeps in memory where no directory is set.",
                           test=_NOT_EMPTY)

COMMITTER_RETRIES = _option(_K, "sink.committer.retries", INT, 10,
                            "How often a sink tries again to commit what cannot be committed, after pauses of 0.1 to "
                            "10 seconds, before the task fails.", test=_NOT_NEGATIVE)

_M = "Metrics"
LATENCY_INTERVAL = _option(_M, "metrics.latency.interval", DURATION, _ms(0),
                           "Time between two latency markers of a source; 0 sends none. Each operator reports how old "
                           "they were, in milliseconds, as `latency.source_id.<operator id>.latency`.",
                           test=_NO_NEGATIVE_TIME)
LATENCY_HISTORY = _option(_M, "metrics.latency.history-size", INT, 128,
                          "Latencies a histogram remembers; at least 1.", test=_POSITIVE)


def _scope(key: str, default: str, of: str, variables: str, older: str = "") -> ConfigOption[str]:
    """Register a scope format whose components in angle brackets must be of `variables`."""
    known = {f"<{name}>" for name in variables.split()}

    def accepts(form: str) -> bool:
        named = {part for part in form.split(".") if part.startswith("<") and part.endswith(">")}
        return bool(form) and named <= known and (form.split(".")[0] != "*" or "job" in variables)

    help = f"Scope of the metrics of {of}. Variables: {', '.join(f'`<{name}>`' for name in variables.split())}."
    if "job" in variables:
        help += " A leading `*` stands for the scope above."
    wanted = f"components joined by dots, variables among {', '.join(sorted(known))}"
    return _option(_M, key, STRING, default, help, *([(older,)] if older else []), test=(accepts, wanted))


_OF_JOB, _OF_TASK = "job_id job_name", "task_id task_name task_attempt_id task_attempt_num subtask_index"
SCOPE_JM = _scope("metrics.scope.jm", "<host>.jobmanager", "the coordinator's process", "host")
SCOPE_JM_JOB = _scope("metrics.scope.jm-job", "<host>.jobmanager.<job_name>", "a job", f"host {_OF_JOB}",
                      "metrics.scope.jm.job")
SCOPE_TM = _scope("metrics.scope.tm", "<host>.taskmanager.<tm_id>", "a slot's process", "host tm_id")
SCOPE_TM_JOB = _scope("metrics.scope.tm-job", "<host>.taskmanager.<tm_id>.<job_name>", "a job in a slot's process",
                      f"host tm_id {_OF_JOB}", "metrics.scope.tm.job")
SCOPE_TASK = _scope("metrics.scope.task", "<host>.taskmanager.<tm_id>.<job_name>.<task_name>.<subtask_index>",
                    "a subtask", f"host tm_id {_OF_JOB} {_OF_TASK}")
SCOPE_OPERATOR = _scope("metrics.scope.operator",
                        "<host>.taskmanager.<tm_id>.<job_name>.<operator_name>.<subtask_index>",
                        "a subtask's operator", f"host tm_id {_OF_JOB} {_OF_TASK} operator_id operator_name")
SCOPE_DELIMITER = _option(_M, "metrics.scope.delimiter", STRING, ".",
                          "Stands between the components of a metric's identifier.",
                          test=(lambda value: len(value) == 1, "one character"))
REPORTERS = _option(_M, "metrics.reporters", LIST, ["prom"],
                    "Reporters of a job on Ray. There is one, `prom`: metrics under the names of Flink's "
                    "PrometheusReporter, in lower case and after `ray_`, on the metrics port of each Ray node. Ray "
                    "serves it where `rayflink[cluster]` is installed. An empty list turns it off.",
                    test=(lambda value: set(value) <= {"prom"}, "`prom`, or an empty list"))
PROM_INTERVAL = _option(_M, "metrics.reporter.prom.interval", DURATION, _ms(5_000),
                        "Time between two reports of a task; Ray itself passes them on every 10 s.",
                        test=_LONGER_THAN_ZERO)
PROM_FILTER_LABELS = _option(_M, "metrics.reporter.prom.filterLabelValueCharacters", BOOLEAN, True,
                             "Write what is no letter, digit, `:` or `_` in the value of a label as `_`.")
PROM_FACTORY = _option(_M, "metrics.reporter.prom.factory.class", STRING, None, "The Java class of the reporter.",
                       unheeded="has one reporter of that name, and no Java class")
PROM_PORT = _option(_M, "metrics.reporter.prom.port", STRING, None, "Port of Flink's reporter.",
                    unheeded="reports on the metrics port of Ray: `ray start --metrics-export-port`")
TERMINAL_PROGRESS = _option(_M, "rayflink.terminal.progress", BOOLEAN, True,
                            "While a program waits for its job and standard error is a terminal, show a table there: "
                            "per vertex its rate, how far its watermark is behind, and how busy and back-pressured it "
                            "is. It is erased at the end.")
LOG_LEVEL = _option(_M, "rayflink.log.level", STRING, None, "Least level of the lines that a job on Ray keeps in its "
                    "log, INFO where it is not set; in the program's own process the level of its root logger, where "
                    "it is set.",
                    test=(lambda value: value.upper() in LOG_LEVELS, f"one of {', '.join(LOG_LEVELS)}"))
LOGGER_LEVELS = _option(_M, "rayflink.log.loggers", MAP, None, "The same for single loggers: `my_job:DEBUG`.")

_R = "Rayflink"
BATCH_MAX_ROWS = _option(_R, "rayflink.batch.max-rows", INT, 1 << 20,
                         "Most records of one network buffer; at least 1. Buffers to a slow consumer hold fewer, see "
                         "taskmanager.network.memory.buffer-debloat.enabled.", test=_POSITIVE)
BATCH_MAX_BYTES = _option(_R, "rayflink.batch.max-bytes", MEMORY, _kb(1024),
                          "Size of one network buffer of rows, the unit of credit; a larger record goes alone. Flink's "
                          "32 kb would make 32 times as many calls between actors.",
                          ("taskmanager.memory.segment-size",), test=_NOT_EMPTY)
BATCH_MAX_ARROW_BYTES = _option(_R, "rayflink.batch.max-arrow-bytes", MEMORY, _kb(8192),
                                "Size of one network buffer of Arrow data; smaller where more than 8 channels share "
                                "64 mb, but not below 1 mb.", test=_NOT_EMPTY)
TIME_SLICE = _option(_R, "rayflink.task.time-slice", DURATION, _ms(10),
                     "Time a task works on records before it looks at mail, timers and barriers.",
                     test=_LONGER_THAN_ZERO)
MAX_IN_FLIGHT_CALLS = _option(_R, "rayflink.exchange.max-in-flight-calls", INT, 2,
                              "Calls from one actor to another that wait for their answer; at least 1.", test=_POSITIVE)
MISSING_MESSAGE_TIMEOUT = _option(_R, "rayflink.exchange.missing-message-timeout", DURATION, _ms(30_000),
                                  "Time a channel waits for a missing sequence number before the task fails.",
                                  test=_LONGER_THAN_ZERO)
RAY_NAMESPACE = _option(_R, "rayflink.ray.namespace", STRING, "rayflink",
                        "Ray namespace in which the actors of all jobs are named.",
                        test=(lambda value: bool(value.strip()), "a name that is not empty"))
WAIT_UNTIL_RUNNING = _option(_R, "rayflink.detached.wait-until-running", BOOLEAN, False,
                             "With `execution.attached: false`, wait until all tasks run; an end before is an error.")
ALLOW_WAITING = _option(_R, "rayflink.detached.allow-waiting", BOOLEAN, False,
                        "With `execution.attached: false`, let a job wait for nodes where the cluster is too small.")
PLACEMENT_STRATEGY = _option(_R, "rayflink.ray.placement-strategy", enum_type(PlacementStrategy),
                             PlacementStrategy.PACK,
                             "How Ray lays the slots of a job on nodes; STRICT_SPREAD gives each a node of its own.")
SHARE_PANES = _option(_R, "rayflink.window.share-panes", BOOLEAN, True,
                      "Sliding windows add a record of an aggregation to one pane, and join panes to fire; false "
                      "adds it to each of its windows, for functions to which the order of records counts that come "
                      "out of order. State of the one is not restored as that of the other.")
KEY_CACHE_SIZE = _option(_R, "rayflink.partitioner.key-cache-size", LONG, 65_536,
                         "Keys whose channel a sender remembers; at least 0.", test=_NOT_NEGATIVE)


_S = "SQL"
_BATCHES = "works the rows of a batch as they come, and holds none back"
BUILT_IN_CATALOG = _option(_S, "table.builtin-catalog-name", STRING, "default_catalog",
                           "Name of the catalog that is there at the beginning; read when the environment is created.",
                           test=_NAME)
BUILT_IN_DATABASE = _option(_S, "table.builtin-database-name", STRING, "default_database",
                            "Name of that catalog's first database; read when the environment is created.",
                            test=_NAME)
LOCAL_TIME_ZONE = _option(_S, "table.local-time-zone", STRING, "default",
                          "Time zone of the session, a name of the IANA database; default: that of the machine.")
AGG_PHASE_STRATEGY = _option(_S, "table.optimizer.agg-phase-strategy", enum_type(AggPhaseStrategy),
                             AggPhaseStrategy.AUTO,
                             "Whether windows and groups are aggregated before rows are distributed, too; AUTO: yes, "
                             "where possible, but not groups of whole tables that leave more than half of the rows.")
SPLIT_DISTINCT = _option(_S, "table.optimizer.distinct-agg.split.enabled", BOOLEAN, False,
                         "DISTINCT aggregates of windows are made in two steps, the first by a bucket of the distinct "
                         "column beside the key, so that a key with many rows is no single subtask's work.")
DISTINCT_BUCKETS = _option(_S, "table.optimizer.distinct-agg.split.bucket-num", INT, 1024,
                           "Buckets of these; at least 1.", test=_POSITIVE)
JOIN_REORDER = _option(_S, "table.optimizer.join-reorder-enabled", BOOLEAN, False,
                       "In batch mode, inner joins of three tables and more are run in the order that makes the fewest "
                       "rows, as far as the tables tell how many they have.")
BUSHY_JOINS = _option(_S, "table.optimizer.bushy-join-reorder-threshold", INT, 12,
                      "Up to this many tables are ordered by looking at all orders, at most 14; of more, the two whose "
                      "join is the smallest are joined first.", test=_NOT_NEGATIVE)
BROADCAST_JOIN = _option(_S, "table.optimizer.join.broadcast-threshold", LONG, 1 << 20,
                         "In batch mode, a side of a join that has at most this many bytes is sent to all subtasks, "
                         "and the other is not exchanged; -1: none is.",
                         test=(lambda value: value >= -1, "-1, or 0 and more"))
REUSE_SUB_PLAN = _option(_S, "table.optimizer.reuse-sub-plan-enabled", BOOLEAN, True,
                         "What parts of a program have in common is computed once.")
REUSE_SOURCE = _option(_S, "table.optimizer.reuse-source-enabled", BOOLEAN, True,
                       "A table that parts of a program read is read once; only with reuse-sub-plan-enabled.")

STATE_TTL = _option(_S, "table.exec.state.ttl", DURATION, _ms(0),
                    "How long a key of a stream is known of which nothing comes, by the clock: of SELECT DISTINCT, "
                    "UNION and GROUP BY without aggregates, and of first rows by ROW_NUMBER, whose time later rows "
                    "do not prolong; 0: for ever. Windows and joins forget their state themselves, so it counts for "
                    "them only as the lateness of late fire where allow-lateness is not set.",
                    test=_NO_NEGATIVE_TIME)
EARLY_FIRE_ENABLED = _option(_S, "table.exec.emit.early-fire.enabled", BOOLEAN, False,
                             "Group windows show results before their end; these are updated later.")
EARLY_FIRE_DELAY = _option(_S, "table.exec.emit.early-fire.delay", DURATION, None,
                           "A window shows results so long after its first row, and again by this interval where they "
                           "have changed; 0: by each row.", test=_NO_NEGATIVE_TIME)
LATE_FIRE_ENABLED = _option(_S, "table.exec.emit.late-fire.enabled", BOOLEAN, False,
                            "Group windows show results again when rows come behind their end.")
LATE_FIRE_DELAY = _option(_S, "table.exec.emit.late-fire.delay", DURATION, None,
                          "The same as early-fire.delay, behind a window's end.", test=_NO_NEGATIVE_TIME)
ALLOW_LATENESS = _option(_S, "table.exec.emit.allow-lateness", DURATION, None,
                         "How long behind their end group windows take rows, with late fire. Default: "
                         "table.exec.state.ttl.", test=_NO_NEGATIVE_TIME)

SOURCE_IDLE_TIMEOUT = _option(_S, "table.exec.source.idle-timeout", DURATION, _ms(0),
                              "A source without rows for so long does not hold event time back; 0: it always does.",
                              test=_NO_NEGATIVE_TIME)
NOT_NULL_ENFORCER = _option(_S, "table.exec.sink.not-null-enforcer", enum_type(NotNullEnforcer), NotNullEnforcer.ERROR,
                            "What becomes of a row with NULL for a NOT NULL column of the table it is written to: it "
                            "is an error, or left out and counted in numNullRecordsDropped.")
TYPE_LENGTH_ENFORCER = _option(_S, "table.exec.sink.type-length-enforcer", enum_type(TypeLengthEnforcer),
                               TypeLengthEnforcer.IGNORE,
                               "What becomes of strings and bytes whose length is not that of their column's type, "
                               "where they are written: nothing, they are cut and filled up, or it is an error.")
PRINTED_WIDTH = _option(_S, "table.display.max-column-width", INT, 30,
                        "Characters that print() shows of a text or another value of no fixed length, where rows are "
                        "printed as they come; longer ones end in dots.", test=_POSITIVE)
TABLE_PARALLELISM = _option(_S, "table.exec.resource.default-parallelism", INT, -1,
                            "Subtasks of the steps of queries; -1: parallelism.default.",
                            test=(lambda value: value == -1 or value > 0, "-1, or 1 and more"))
MINI_BATCH = _option(_S, "table.exec.mini-batch.enabled", BOOLEAN, False,
                     "Work rows in batches; they always are, in those in which they come.", unheeded=_BATCHES)
MINI_BATCH_LATENCY = _option(_S, "table.exec.mini-batch.allow-latency", DURATION, _ms(0),
                             "How long rows may wait for a batch.", unheeded=_BATCHES)
MINI_BATCH_SIZE = _option(_S, "table.exec.mini-batch.size", LONG, -1, "Rows of a batch at most.", unheeded=_BATCHES)


def all_options() -> list[ConfigOption[Any]]:
    """Every registered option, in the order of the table."""
    return [option for section in _sections.values() for option in section]


@functools.lru_cache(maxsize=1)
def by_key() -> dict[str, ConfigOption[Any]]:
    """Options by key and by fallback key."""
    options = all_options()
    older = {key: option for option in options for key in option.fallback_keys}
    return {**older, **{option.key: option for option in options}}


def known_keys() -> list[str]:
    """Keys and fallback keys of all options."""
    return list(by_key())


def takes_any_suffix(key: str) -> bool:
    """Return whether `key` is an entry of a map option, written as ``<option key>.<entry>``."""
    return any(key.startswith(f"{option.key}.") for option in all_options() if option.type is MAP)


def sections() -> dict[str, list[ConfigOption[Any]]]:
    """The options by the headings under which they are documented."""
    return _sections


if __name__ == "__main__":
    from .options_page import markdown

    print(markdown(), end="")
