"""The one registry of options: every key rayflink reads, with type, default and help.

``python -m rayflink.common.options.options_page`` prints it as the Markdown of docs/configuration.md. Names are
Flink's where Flink has the option; what is ours begins with ``rayflink.``.
"""

from __future__ import annotations

import functools
from typing import Any

from ..config_options import ConfigOption
from .autoscaler_options import AUTOSCALER
from .cluster_options import *  # noqa: F403
from .flink_jars import JARS_OF_FLINK
from .flink_options import ONE_VALUE as ONE_VALUE
from .flink_options import WITHOUT_EFFECT as WITHOUT_EFFECT
from .gateway_options import GATEWAY
from .gateway_options import GATEWAY_ADDRESS as GATEWAY_ADDRESS
from .gateway_options import GATEWAY_ANSWER_SIZE as GATEWAY_ANSWER_SIZE
from .gateway_options import GATEWAY_CERTIFICATE as GATEWAY_CERTIFICATE
from .gateway_options import GATEWAY_CHECK_INTERVAL as GATEWAY_CHECK_INTERVAL
from .gateway_options import GATEWAY_CONNECTIONS as GATEWAY_CONNECTIONS
from .gateway_options import GATEWAY_IDLE_TIMEOUT as GATEWAY_IDLE_TIMEOUT
from .gateway_options import GATEWAY_KEY as GATEWAY_KEY
from .gateway_options import GATEWAY_OPERATIONS as GATEWAY_OPERATIONS
from .gateway_options import GATEWAY_PORT as GATEWAY_PORT
from .gateway_options import GATEWAY_REQUEST_SIZE as GATEWAY_REQUEST_SIZE
from .gateway_options import GATEWAY_RESULT_ROWS as GATEWAY_RESULT_ROWS
from .gateway_options import GATEWAY_SESSIONS as GATEWAY_SESSIONS
from .gateway_options import GATEWAY_TOKEN as GATEWAY_TOKEN
from .history_options import *  # noqa: F403
from .metric_options import LATENCY_HISTORY as LATENCY_HISTORY
from .metric_options import LATENCY_INTERVAL as LATENCY_INTERVAL
from .metric_options import LOG_FORMAT as LOG_FORMAT
from .metric_options import LOG_LEVEL as LOG_LEVEL
from .metric_options import LOGGER_LEVELS as LOGGER_LEVELS
from .metric_options import METRICS
from .metric_options import NAME_HOT_KEYS as NAME_HOT_KEYS
from .metric_options import PROM_FACTORY as PROM_FACTORY
from .metric_options import PROM_FILTER_LABELS as PROM_FILTER_LABELS
from .metric_options import PROM_INTERVAL as PROM_INTERVAL
from .metric_options import PROM_PORT as PROM_PORT
from .metric_options import REPORTERS as REPORTERS
from .metric_options import SAMPLE_KEY_GROUPS as SAMPLE_KEY_GROUPS
from .metric_options import SCOPE_DELIMITER as SCOPE_DELIMITER
from .metric_options import SCOPE_JM as SCOPE_JM
from .metric_options import SCOPE_JM_JOB as SCOPE_JM_JOB
from .metric_options import SCOPE_OPERATOR as SCOPE_OPERATOR
from .metric_options import SCOPE_TASK as SCOPE_TASK
from .metric_options import SCOPE_TM as SCOPE_TM
from .metric_options import SCOPE_TM_JOB as SCOPE_TM_JOB
from .metric_options import TERMINAL_PROGRESS as TERMINAL_PROGRESS
from .option_declaring import FRACTION as _FRACTION
from .option_declaring import LONGER_THAN_ZERO as _LONGER_THAN_ZERO
from .option_declaring import NO_NEGATIVE_TIME as _NO_NEGATIVE_TIME
from .option_declaring import NOT_EMPTY as _NOT_EMPTY
from .option_declaring import NOT_NEGATIVE as _NOT_NEGATIVE
from .option_declaring import PART as _PART
from .option_declaring import POSITIVE as _POSITIVE
from .option_declaring import SECTIONS as _sections
from .option_declaring import declare as _option
from .option_declaring import millis as _ms
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
    enum_type,
)
from .option_values import AggPhaseStrategy as AggPhaseStrategy
from .option_values import AsyncRetry as AsyncRetry
from .option_values import CatalogPlanCompilation as CatalogPlanCompilation
from .option_values import CatalogPlanRestore as CatalogPlanRestore
from .option_values import CatalogStoreKind as CatalogStoreKind
from .option_values import CheckpointingMode as CheckpointingMode
from .option_values import ClosureCleanerLevel as ClosureCleanerLevel
from .option_values import CompactionStyle as CompactionStyle
from .option_values import ExternalizedCheckpointRetention as ExternalizedCheckpointRetention
from .option_values import FailoverStrategy as FailoverStrategy
from .option_values import LookupOutput as LookupOutput
from .option_values import NonDeterministicUpdates as NonDeterministicUpdates
from .option_values import NotNullEnforcer as NotNullEnforcer
from .option_values import PlacementStrategy as PlacementStrategy
from .option_values import RestartStrategyType as RestartStrategyType
from .option_values import ResultFormat as ResultFormat
from .option_values import ResultMode as ResultMode
from .option_values import RuntimeMode as RuntimeMode
from .option_values import SinkKeyedShuffle as SinkKeyedShuffle
from .option_values import StateBackendType as StateBackendType
from .option_values import Target as Target
from .option_values import TypeLengthEnforcer as TypeLengthEnforcer
from .option_values import UpsertMaterialize as UpsertMaterialize
from .python_options import MODULES_BESIDE as MODULES_BESIDE
from .python_options import PYTHON
from .python_options import PYTHON_ARCHIVES as PYTHON_ARCHIVES
from .python_options import PYTHON_EXECUTABLE as PYTHON_EXECUTABLE
from .python_options import PYTHON_FILES as PYTHON_FILES
from .python_options import PYTHON_REQUIREMENTS as PYTHON_REQUIREMENTS
from .security_options import *  # noqa: F403
from .sql_options import AGG_PHASE_STRATEGY as AGG_PHASE_STRATEGY
from .sql_options import ALLOW_LATENESS as ALLOW_LATENESS
from .sql_options import ASYNC_LOOKUP_CAPACITY as ASYNC_LOOKUP_CAPACITY
from .sql_options import ASYNC_LOOKUP_OUTPUT as ASYNC_LOOKUP_OUTPUT
from .sql_options import ASYNC_LOOKUP_TIMEOUT as ASYNC_LOOKUP_TIMEOUT
from .sql_options import ASYNC_SCALAR_ATTEMPTS as ASYNC_SCALAR_ATTEMPTS
from .sql_options import ASYNC_SCALAR_CALLS as ASYNC_SCALAR_CALLS
from .sql_options import ASYNC_SCALAR_DELAY as ASYNC_SCALAR_DELAY
from .sql_options import ASYNC_SCALAR_RETRY as ASYNC_SCALAR_RETRY
from .sql_options import ASYNC_SCALAR_TIMEOUT as ASYNC_SCALAR_TIMEOUT
from .sql_options import ASYNC_TABLE_ATTEMPTS as ASYNC_TABLE_ATTEMPTS
from .sql_options import ASYNC_TABLE_CALLS as ASYNC_TABLE_CALLS
from .sql_options import ASYNC_TABLE_DELAY as ASYNC_TABLE_DELAY
from .sql_options import ASYNC_TABLE_RETRY as ASYNC_TABLE_RETRY
from .sql_options import ASYNC_TABLE_TIMEOUT as ASYNC_TABLE_TIMEOUT
from .sql_options import BROADCAST_JOIN as BROADCAST_JOIN
from .sql_options import BUILT_IN_CATALOG as BUILT_IN_CATALOG
from .sql_options import BUILT_IN_DATABASE as BUILT_IN_DATABASE
from .sql_options import BUSHY_JOINS as BUSHY_JOINS
from .sql_options import CATALOG_STORE as CATALOG_STORE
from .sql_options import CATALOG_STORE_PATH as CATALOG_STORE_PATH
from .sql_options import DISPLAY_ROWS as DISPLAY_ROWS
from .sql_options import DISPLAY_TIMEOUT as DISPLAY_TIMEOUT
from .sql_options import DISTINCT_BUCKETS as DISTINCT_BUCKETS
from .sql_options import DML_SYNC as DML_SYNC
from .sql_options import DROP_UNREAD_WATERMARKS as DROP_UNREAD_WATERMARKS
from .sql_options import DUPLICATE_CHANGES as DUPLICATE_CHANGES
from .sql_options import EARLY_FIRE_DELAY as EARLY_FIRE_DELAY
from .sql_options import EARLY_FIRE_ENABLED as EARLY_FIRE_ENABLED
from .sql_options import JOIN_REORDER as JOIN_REORDER
from .sql_options import KEYED_SHUFFLE as KEYED_SHUFFLE
from .sql_options import LATE_FIRE_DELAY as LATE_FIRE_DELAY
from .sql_options import LATE_FIRE_ENABLED as LATE_FIRE_ENABLED
from .sql_options import LOCAL_TIME_ZONE as LOCAL_TIME_ZONE
from .sql_options import MAX_RESULT_ROWS as MAX_RESULT_ROWS
from .sql_options import MINI_BATCH as MINI_BATCH
from .sql_options import MINI_BATCH_LATENCY as MINI_BATCH_LATENCY
from .sql_options import MINI_BATCH_SIZE as MINI_BATCH_SIZE
from .sql_options import MULTI_JOIN as MULTI_JOIN
from .sql_options import NON_DETERMINISTIC_UPDATES as NON_DETERMINISTIC_UPDATES
from .sql_options import NOT_NULL_ENFORCER as NOT_NULL_ENFORCER
from .sql_options import PLAN_COMPILE_OBJECTS as PLAN_COMPILE_OBJECTS
from .sql_options import PLAN_FORCE_RECOMPILE as PLAN_FORCE_RECOMPILE
from .sql_options import PLAN_RESTORE_OBJECTS as PLAN_RESTORE_OBJECTS
from .sql_options import PRINT_TIME_COST as PRINT_TIME_COST
from .sql_options import PRINTED_WIDTH as PRINTED_WIDTH
from .sql_options import REQUIRE_ON_CONFLICT as REQUIRE_ON_CONFLICT
from .sql_options import RESULT_FORMAT as RESULT_FORMAT
from .sql_options import RESULT_MODE as RESULT_MODE
from .sql_options import REUSE_SOURCE as REUSE_SOURCE
from .sql_options import REUSE_SUB_PLAN as REUSE_SUB_PLAN
from .sql_options import SOURCE_IDLE_TIMEOUT as SOURCE_IDLE_TIMEOUT
from .sql_options import SPLIT_DISTINCT as SPLIT_DISTINCT
from .sql_options import SQL
from .sql_options import STATE_TTL as STATE_TTL
from .sql_options import TABLE_OPTIONS_HINT as TABLE_OPTIONS_HINT
from .sql_options import TABLE_PARALLELISM as TABLE_PARALLELISM
from .sql_options import TYPE_LENGTH_ENFORCER as TYPE_LENGTH_ENFORCER
from .sql_options import UPSERT_MATERIALIZE as UPSERT_MATERIALIZE
from .trace_options import OTEL_ENDPOINT as OTEL_ENDPOINT
from .trace_options import OTEL_FACTORY as OTEL_FACTORY
from .trace_options import OTEL_PROTOCOL as OTEL_PROTOCOL
from .trace_options import OTEL_QUEUE as OTEL_QUEUE
from .trace_options import OTEL_SERVICE_NAME as OTEL_SERVICE_NAME
from .trace_options import OTEL_SERVICE_VERSION as OTEL_SERVICE_VERSION
from .trace_options import OTEL_TIMEOUT as OTEL_TIMEOUT
from .trace_options import OTEL_VARIABLES as OTEL_VARIABLES
from .trace_options import SPAN_DETAIL as SPAN_DETAIL
from .trace_options import TRACE_REPORTERS as TRACE_REPORTERS
from .trace_options import TRACES

_MAX_INT = 2**31 - 1


def _kb(amount: int) -> MemorySize:
    return MemorySize(amount * 1024)


_P = "Pipeline"
PARALLELISM = _option(_P, "parallelism.default", INT, 1, "Parallelism of operators that set none; at least 1.",
                      test=_POSITIVE)
MAX_PARALLELISM = _option(_P, "pipeline.max-parallelism", INT, -1,
                          "Number of key groups of a job, in [1, 32768], which never changes; -1: from the "
                          "parallelism, at least 128.",
                          test=(lambda value: value == -1 or 1 <= value <= 32768, "-1 or a number in [1, 32768]"))
OBJECT_REUSE = _option(_P, "pipeline.object-reuse", BOOLEAN, False,
                       "True passes values to chained functions without copying them. False: every consumer gets a "
                       "copy. Unset: all consumers but one get a copy.")
OPERATOR_CHAINING = _option(_P, "pipeline.operator-chaining.enabled", BOOLEAN, True,
                            "Run operators that forward edges connect in one task.", ("pipeline.operator-chaining",))
CHAIN_DIFFERENT_MAX_PARALLELISM = _option(
    _P, "pipeline.operator-chaining.chain-operators-with-different-max-parallelism", BOOLEAN, True,
    "Chain operators even if their max parallelism differs.", unheeded="always chains them")
PIPELINE_NAME = _option(_P, "pipeline.name", STRING, None, "Name of the job if execute() has no argument.")
CACHED_FILES = _option(_P, "pipeline.cached-files", LIST, None,
                       "Files that are copied to every task: `name:n1,path:p1;name:n2,path:p2`.",
                       unheeded="takes these files by register_cached_file() only")
AUTO_WATERMARK_INTERVAL = _option(_P, "pipeline.auto-watermark-interval", DURATION, _ms(200),
                                  "Time between periodic watermarks; 0 turns them off.", test=_NO_NEGATIVE_TIME)
IDLE_ADVANCE_DELAY = _option(_P, "rayflink.watermark.idle-advance-delay", DURATION, None,
                             "When all sources of a task have been idle for this time, event time advances with the "
                             "clock, so that open windows close; records that arrive behind it are late. Sources "
                             "become idle by `with_idleness`. Default: event time does not advance.",
                             test=_LONGER_THAN_ZERO)
GLOBAL_JOB_PARAMETERS = _option(_P, "pipeline.global-job-parameters", MAP, None,
                                "Parameters that every function can read from its runtime context.")
AUTO_GENERATED_UIDS = _option(_P, "pipeline.auto-generate-uids", BOOLEAN, True,
                              "False refuses a program that has an operator without a uid.")
GENERIC_TYPES = _option(_P, "pipeline.generic-types", BOOLEAN, True, "False refuses Java types that Kryo serializes.",
                        unheeded="has no Kryo and pickles values without a declared type")
FORCE_KRYO = _option(_P, "pipeline.force-kryo", BOOLEAN, False, "Write Java's POJOs with Kryo.",
                     unheeded="has no Kryo and no Java types")
FORCE_AVRO = _option(_P, "pipeline.force-avro", BOOLEAN, False, "Write Java's POJOs with Avro.",
                     unheeded="writes no records as Avro and has no Java types")
CLOSURE_CLEANER = _option(_P, "pipeline.closure-cleaner-level", enum_type(ClosureCleanerLevel),
                          ClosureCleanerLevel.RECURSIVE, "How Java closures are cleaned.",
                          unheeded="has no Java closures; Python functions include what they use")
PIPELINE_JARS = _option(_P, "pipeline.jars", LIST, None, "Jars of Flink's connectors and formats; others are refused.",
                        test=JARS_OF_FLINK, unheeded="has no JVM; connectors need extras, such as rayflink[kafka]")
PIPELINE_CLASSPATHS = _option(_P, "pipeline.classpaths", LIST, None, "Not supported: there is no JVM in the data path.",
                              refused="remove it and use the Python connectors of rayflink")

_E = "Execution"
RUNTIME_MODE = _option(_E, "execution.runtime-mode", enum_type(RuntimeMode), RuntimeMode.STREAMING,
                       "STREAMING runs all tasks at once; BATCH runs a task when its input is complete; AUTOMATIC: "
                       "BATCH if bounded.")
SORTED_INPUTS = _option(_E, "execution.sorted-inputs.enabled", BOOLEAN, True,
                        "In batch mode, sort the input of keyed operators by key; false keeps all keys in state.")
SORTED_INPUTS_MEMORY = _option(_E, "execution.sorted-inputs.memory", MEMORY, MemorySize(128 << 20),
                               "Maximum memory of one sorted input, or of one that waits for a broadcast input, if the "
                               "slot has that much managed memory; the rest is on disk.")
BUFFER_TIMEOUT = _option(_E, "execution.buffer-timeout.interval", DURATION, _ms(100),
                         "Longest wait of a record for its batch to fill; 0 sends each record at once; -1 ms only full "
                         "batches.", ("execution.buffer-timeout",))
BUFFER_TIMEOUT_ENABLED = _option(_E, "execution.buffer-timeout.enabled", BOOLEAN, True, "False sends full batches.")
ATTACHED = _option(_E, "execution.attached", BOOLEAN, False,
                   "If set to false (command line: -d), execute() submits the job to a running cluster and returns. If "
                   "the option is not set, execute() waits, although the default is false, because Flink's local and "
                   "remote environments and `flink run` set it to true.")
SHUTDOWN_ON_ATTACHED_EXIT = _option(_E, "execution.shutdown-on-attached-exit", BOOLEAN, False,
                                    "Cancel an attached job when the driver ends (Ctrl-C, SIGTERM).")
TARGET = _option(_E, "execution.target", enum_type(Target), None,
                 "local runs the job in this process; ray runs it on the running cluster, else on a local Ray; remote "
                 "submits it to the dispatcher at rest.address.")
RESTORE_PATH = _option(_E, "execution.state-recovery.path", STRING, None,
                       "Checkpoint or savepoint to start from (command line: -s).", ("execution.savepoint.path",))
LOCAL_RECOVERY = _option(_E, "execution.state-recovery.from-local", BOOLEAN, False,
                         "Restart from files that are still on the node of a task, if there are any.",
                         ("state.backend.local-recovery",))
IGNORE_UNCLAIMED_STATE = _option(_E, "execution.state-recovery.ignore-unclaimed-state", BOOLEAN, False,
                                 "Start even if some state of the snapshot belongs to no operator (command line: -n).",
                                 ("execution.savepoint.ignore-unclaimed-state",))

_T = "Tasks"
SLOTS_PER_NODE = _option(_T, "taskmanager.numberOfTaskSlots", INT, 1,
                         "Number of slots of a node; at least 1.", test=_POSITIVE,
                         unheeded="gives a node one slot for each CPU that Ray finds")
FLINK_MEMORY = _option(_T, "taskmanager.memory.flink.size", MEMORY, _kb(1280 * 1024),
                       "Memory of a slot: its managed memory, plus user code and the network buffers in use. The "
                       "managed part is enforced; the rest is only a number for planning.", test=_NOT_EMPTY)
MANAGED_SIZE = _option(_T, "taskmanager.memory.managed.size", MEMORY, None,
                       "Maximum memory of one slot for keyed state in RocksDB and, in batch mode, for blocking "
                       "partitions and sorted inputs; the rest is on disk. It is not allocated in advance. Default: "
                       "`taskmanager.memory.managed.fraction` of `taskmanager.memory.flink.size`.",
                       ("taskmanager.memory.size",))
MANAGED_FRACTION = _option(_T, "taskmanager.memory.managed.fraction", DOUBLE, 0.4,
                           "Fraction of `taskmanager.memory.flink.size` that is managed memory by default.",
                           ("taskmanager.memory.fraction",), test=_FRACTION)
NUMBER_OF_BUFFERS = _option(_T, "taskmanager.network.numberOfBuffers", INT, 2048,
                            "Network buffers that all channels of a task's process share; at least 1.", test=_POSITIVE)
CREDIT_MODEL = _option(_T, "taskmanager.network.credit-model", BOOLEAN, True,
                       "Credit-based flow control, which is always on.",
                       test=(lambda value: value, "true: rayflink has no other flow control"))
BUFFERS_PER_CHANNEL = _option(_T, "taskmanager.network.memory.buffers-per-channel", INT, 2,
                              "Exclusive buffers of a channel; at least 1.", test=_POSITIVE)
FLOATING_BUFFERS_PER_GATE = _option(_T, "taskmanager.network.memory.floating-buffers-per-gate", INT, 8,
                                    "Buffers that the channels of a gate share; at least 0.", test=_NOT_NEGATIVE)
MAX_BUFFERS_PER_CHANNEL = _option(_T, "taskmanager.network.memory.max-buffers-per-channel", INT, 10,
                                  "Maximum number of buffers of an outgoing channel; at least 1.", test=_POSITIVE)
MAX_OVERDRAFT_BUFFERS = _option(_T, "taskmanager.network.memory.max-overdraft-buffers-per-gate", INT, 5,
                                "Additional buffers to finish an element before an unaligned barrier.",
                                test=_NOT_NEGATIVE)
BUFFER_DEBLOAT_ENABLED = _option(
    _T, "taskmanager.network.memory.buffer-debloat.enabled", BOOLEAN, True,
    "Limit the records in flight to a task to those that it processes in the target time, by its measured rate, but at "
    "least one per channel. Flink's default is false. Batch jobs are not limited.")
BUFFER_DEBLOAT_TARGET = _option(
    _T, "taskmanager.network.memory.buffer-debloat.target", DURATION, _ms(1000),
    "Time in which a task should process the records in flight to it.", test=_LONGER_THAN_ZERO)
BUFFER_DEBLOAT_PERIOD = _option(
    _T, "taskmanager.network.memory.buffer-debloat.period", DURATION, _ms(200),
    "Minimum time between two changes of the limit; at the start of a task it grows faster.", test=_LONGER_THAN_ZERO)
BUFFER_DEBLOAT_THRESHOLD = _option(
    _T, "taskmanager.network.memory.buffer-debloat.threshold-percentages", INT, 25,
    "Minimum change of the limit, in percent, that producers are notified of; in [0, 100].",
    test=(lambda value: 0 <= value <= 100, "a number in [0, 100]"))
BUFFER_DEBLOAT_SAMPLES = _option(
    _T, "taskmanager.network.memory.buffer-debloat.samples", INT, 20,
    "Number of measurements over which the rate is averaged; at least 1.",
    test=_POSITIVE, unheeded="averages the rate over the target time")
REQUEST_BACKOFF_INITIAL = _option(_T, "taskmanager.network.request-backoff.initial", INT, 100,
                                  "Milliseconds until a partition that its producer does not know yet is requested "
                                  "again; the wait doubles each time; 0 never requests it again.", test=_NOT_NEGATIVE)
REQUEST_BACKOFF_MAX = _option(_T, "taskmanager.network.request-backoff.max", INT, 10_000,
                              "Longest of these waits, in milliseconds; after it the task fails.", test=_NOT_NEGATIVE)
TMP_DIRS = _option(_T, "io.tmp.dirs", LIST, None,
                   "Folders for spilled files, used in turn. Default: the system's temporary folder.")
FEEDBACK_MEMORY = _option(_T, "rayflink.feedback.memory", MEMORY, MemorySize(32 << 20),
                          "Memory for records that a subtask feeds back until the head takes them; the rest spills.")
BLOCKING_MEMORY = _option(_T, "rayflink.blocking-partition.memory", MEMORY, _kb(4096),
                          "Maximum managed memory of a blocking result partition; the rest is spilled.")
DETAILED_NETWORK_METRICS = _option(_T, "taskmanager.network.detailed-metrics", BOOLEAN, False,
                                   "Report the queue length of inputs and outputs.")
EXIT_ON_OUT_OF_MEMORY = _option(_T, "taskmanager.jvm-exit-on-oom", BOOLEAN, False,
                                "On MemoryError, end the worker process instead of failing only the task.")
CANCELLATION_INTERVAL = _option(_T, "task.cancellation.interval", DURATION, _ms(30_000),
                                "Time between two interrupts of a task that is being cancelled.",
                                test=_LONGER_THAN_ZERO,
                                unheeded="does not interrupt functions; see task.cancellation.timeout")
CANCELLATION_TIMEOUT = _option(_T, "task.cancellation.timeout", DURATION, _ms(180_000),
                               "Time until the process of a task that does not cancel is killed; 0: no limit.",
                               test=_NO_NEGATIVE_TIME)

_C = "Cluster"
HEARTBEAT_INTERVAL = _option(_C, "heartbeat.interval", DURATION, _ms(10_000),
                             "Time between two heartbeats of a task.", test=_LONGER_THAN_ZERO)
HEARTBEAT_TIMEOUT = _option(_C, "heartbeat.timeout", DURATION, _ms(50_000),
                            "Time without a heartbeat after which a task counts as lost.", test=_LONGER_THAN_ZERO)
SLOT_REQUEST_TIMEOUT = _option(_C, "slot.request.timeout", DURATION, _ms(300_000),
                               "Time a job waits for slots before it fails.", test=_LONGER_THAN_ZERO)
ASK_TIMEOUT = _option(_C, "pekko.ask.timeout", DURATION, _ms(10_000),
                      "Timeout of a request to the coordinator or to a task.", ("akka.ask.timeout",),
                      test=_LONGER_THAN_ZERO)

_F = "Failure and restart"
FAILOVER_STRATEGY = _option(_F, "jobmanager.execution.failover-strategy", enum_type(FailoverStrategy),
                            FailoverStrategy.REGION, "Which tasks restart when one fails.")
RESTART_STRATEGY = _option(_F, "restart-strategy.type", enum_type(RestartStrategyType), None,
                           "none, off and disable never restart. Unset: exponential-delay if checkpoints are on; none "
                           "with `execution.target: local`.", ("restart-strategy",))
FIXED_DELAY_ATTEMPTS = _option(_F, "restart-strategy.fixed-delay.attempts", INT, 1,
                               "Number of restarts before the job fails; at least 0.", test=_NOT_NEGATIVE)
FIXED_DELAY_DELAY = _option(_F, "restart-strategy.fixed-delay.delay", DURATION, _ms(1000), "Time before a restart.",
                            test=_NO_NEGATIVE_TIME)
FAILURE_RATE_MAX = _option(_F, "restart-strategy.failure-rate.max-failures-per-interval", INT, 1,
                           "Maximum number of failures within the interval after which the job restarts; at least 0.",
                           test=_NOT_NEGATIVE)
FAILURE_RATE_INTERVAL = _option(_F, "restart-strategy.failure-rate.failure-rate-interval", DURATION, _ms(60_000),
                                "Interval in which failures are counted.", test=_LONGER_THAN_ZERO)
FAILURE_RATE_DELAY = _option(_F, "restart-strategy.failure-rate.delay", DURATION, _ms(1000), "Time before a restart.",
                            test=_NO_NEGATIVE_TIME)
BACKOFF_INITIAL = _option(_F, "restart-strategy.exponential-delay.initial-backoff", DURATION, _ms(1000),
                          "Time before the first restart.", test=_LONGER_THAN_ZERO)
BACKOFF_MAX = _option(_F, "restart-strategy.exponential-delay.max-backoff", DURATION, _ms(60_000),
                      "Longest time before a restart.", test=_LONGER_THAN_ZERO)
BACKOFF_MULTIPLIER = _option(_F, "restart-strategy.exponential-delay.backoff-multiplier", DOUBLE, 1.5,
                             "Factor between two successive waits; at least 1.",
                             test=(lambda value: value >= 1, "a number of at least 1"))
BACKOFF_RESET = _option(_F, "restart-strategy.exponential-delay.reset-backoff-threshold", DURATION, _ms(3_600_000),
                        "Time without failure after which waits start again from the initial one.",
                        test=_LONGER_THAN_ZERO)
BACKOFF_JITTER = _option(_F, "restart-strategy.exponential-delay.jitter-factor", DOUBLE, 0.1,
                         "Random fraction of a wait, in [0, 1].", test=_FRACTION)
BACKOFF_ATTEMPTS = _option(_F, "restart-strategy.exponential-delay.attempts-before-reset-backoff", INT, _MAX_INT,
                           "Number of restarts without a reset before the job fails; at least 0.", test=_NOT_NEGATIVE)
SAME_FAILURE_ATTEMPTS = _option(_F, "rayflink.restart-strategy.same-failure.attempts", INT, 3,
                                "Failures at the same place, without a completed checkpoint in between, that end the "
                                "job whatever the strategy; lost processes and connections do not count; 0: no limit.",
                                test=_NOT_NEGATIVE)

_K = "Checkpoints and state"
CHECKPOINT_INTERVAL = _option(_K, "execution.checkpointing.interval", DURATION, None,
                              "Time between two checkpoints; unset: no periodic checkpoints.", test=_LONGER_THAN_ZERO)
CHECKPOINT_INTERVAL_DURING_BACKLOG = _option(_K, "execution.checkpointing.interval-during-backlog", DURATION, None,
                                             "Interval while a source has a backlog.", unheeded="has a single interval")
CHECKPOINT_MODE = _option(_K, "execution.checkpointing.mode", enum_type(CheckpointingMode),
                          CheckpointingMode.EXACTLY_ONCE, "How often state counts a record after a restore.")
CHECKPOINT_TIMEOUT = _option(_K, "execution.checkpointing.timeout", DURATION, _ms(600_000),
                             "Time after which a checkpoint that is not complete fails.", test=_LONGER_THAN_ZERO)
CHECKPOINT_MIN_PAUSE = _option(_K, "execution.checkpointing.min-pause", DURATION, _ms(0),
                               "Minimum time between the end of one checkpoint and the start of the next.",
                               test=_NO_NEGATIVE_TIME)
CHECKPOINT_MAX_CONCURRENT = _option(_K, "execution.checkpointing.max-concurrent-checkpoints", INT, 1,
                                    "Maximum number of concurrent checkpoints; at least 1, and 1 if unaligned.",
                                    test=_POSITIVE)
CHECKPOINT_UNALIGNED = _option(_K, "execution.checkpointing.unaligned.enabled", BOOLEAN, False,
                               "Barriers overtake records, which become part of the checkpoint; requires EXACTLY_ONCE.",
                               ("execution.checkpointing.unaligned",))
CHECKPOINT_FORCE_UNALIGNED = _option(_K, "execution.checkpointing.unaligned.forced", BOOLEAN, False,
                                     "With unaligned.enabled: barriers also overtake in jobs with iterations.")
CHECKPOINT_ALIGNED_TIMEOUT = _option(_K, "execution.checkpointing.aligned-checkpoint-timeout", DURATION, _ms(0),
                                     "With unaligned.enabled: how long a checkpoint stays aligned; 0: not at all.",
                                     ("execution.checkpointing.alignment-timeout",), test=_NO_NEGATIVE_TIME)
CHECKPOINT_TOLERABLE_FAILURES = _option(_K, "execution.checkpointing.tolerable-failed-checkpoints", INT, 0,
                                        "Number of consecutive checkpoint failures that the job tolerates; at least 0.",
                                        test=_NOT_NEGATIVE)
CHECKPOINTS_AFTER_TASKS_FINISH = _option(
    _K, "execution.checkpointing.checkpoints-after-tasks-finish", BOOLEAN, True,
                                         "Take checkpoints after some tasks have finished.",
    ("execution.checkpointing.checkpoints-after-tasks-finish.enabled",), unheeded="always does: sinks would lose rows")
CHECKPOINTS_RETAINED = _option(_K, "execution.checkpointing.num-retained", INT, 1,
                               "Number of completed checkpoints to retain; at least 1.",
                               ("state.checkpoints.num-retained",), test=_POSITIVE)
CHECKPOINT_RETENTION = _option(_K, "execution.checkpointing.externalized-checkpoint-retention",
                               enum_type(ExternalizedCheckpointRetention),
                               ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS,
                               "Whether checkpoints are deleted when the job is cancelled or fails.")
CHECKPOINT_INCREMENTAL = _option(_K, "execution.checkpointing.incremental", BOOLEAN, False,
                                 "Store only the changes since the last checkpoint.", ("state.backend.incremental",),
                                 unheeded="decides by the state backend")
SNAPSHOT_COMPRESSION = _option(_K, "execution.checkpointing.snapshot-compression", BOOLEAN, False,
                               "Compress snapshots of keyed state.", unheeded="does not compress snapshots")
CHECKPOINT_DIRECTORY = _option(_K, "execution.checkpointing.dir", STRING, None,
                               "Directory for checkpoints: a path or URL that every node can reach.",
                               ("state.checkpoints.dir",))
SAVEPOINT_DIRECTORY = _option(_K, "execution.checkpointing.savepoint-dir", STRING, None,
                              "Default directory for savepoints.", ("state.savepoints.dir",))
HA_STORAGE_DIR = _option(_K, "high-availability.storageDir", STRING, None,
                         "Directory in which a job with checkpoints is stored, so that it can resume when its "
                         "coordinator or cluster is lost. Default: the directory of checkpoints.")
S3_ENDPOINT = _option(_K, "s3.endpoint", STRING, None, "URL of the server for `s3://`. Default: from the "
                      "environment, else Amazon's.", ("fs.s3a.endpoint",))
S3_ACCESS_KEY = _option(_K, "s3.access-key", STRING, None,
                        "Access key for this server. Default: the environment's credentials.", ("fs.s3a.access.key",))
S3_SECRET_KEY = _option(_K, "s3.secret-key", STRING, None, "Secret of the access key.", ("fs.s3a.secret.key",))
S3_TOKEN = _option(_K, "s3.session-token", STRING, None, "Token of a temporary key.", ("fs.s3a.session.token",))
S3_PATH_STYLE = _option(_K, "s3.path.style.access", BOOLEAN, True,
                        "Put the bucket into the path, not into the host name.", ("fs.s3a.path.style.access",))
S3_REGION = _option(_K, "s3.region", STRING, None, "Region of the bucket. Default: from the environment.",
                    ("s3.endpoint.region", "fs.s3a.endpoint.region"))
GS_KEY_FILE = _option(_K, "fs.gs.auth.service.account.json.keyfile", STRING, None,
                      "Key file of the account for `gs://`. Default: the environment's, else the machine's account.")
GS_ENDPOINT = _option(_K, "fs.gs.storage.root.url", STRING, None, "URL of the server for `gs://`. Default: Google's.")
AZURE_ACCOUNT = _option(_K, "fs.azure.account.name", STRING, None, "Account of `az://`. Default: the environment's.")
AZURE_KEY = _option(_K, "fs.azure.account.key", STRING, None, "Key of the account. Default: the environment's.")
AZURE_ENDPOINT = _option(_K, "fs.azure.endpoint", STRING, None, "URL of the server for `az://`. Default: Azure's.")
STATE_BACKEND = _option(_K, "state.backend.type", enum_type(StateBackendType), StateBackendType.ROCKSDB,
                        "State backend for keyed state: hashmap stores objects in memory; rocksdb stores them behind a "
                        "cache and writes nothing to disk before the cache is full. Batch jobs store the state of one "
                        "key at a time, in memory.", ("state.backend",))
ROCKSDB_DIRS = _option(_K, "state.backend.rocksdb.localdir", LIST, None,
                       "Folders for RocksDB's files, used in turn. Default: the folders of `io.tmp.dirs`.")
STATE_MEMORY = _option(_K, "state.backend.rocksdb.memory.fixed-per-slot", MEMORY, None,
                       "Memory for all RocksDB state of a slot and its cache. Default: its managed memory.",
                       test=_NOT_EMPTY)
STATE_CACHE_RATIO = _option(_K, "rayflink.state.cache-ratio", DOUBLE, 0.5,
                            "Fraction of the state memory for decoded values; RocksDB uses the rest.", test=_PART)
WRITE_BUFFER_RATIO = _option(_K, "state.backend.rocksdb.memory.write-buffer-ratio", DOUBLE, 0.5,
                             "Fraction of RocksDB's own memory for data that is not on disk yet.", test=_PART)
ROCKSDB_MANAGED = _option(_K, "state.backend.rocksdb.memory.managed", BOOLEAN, True,
                          "Keep RocksDB's memory within the managed memory of the slot.", unheeded="always does")
ROCKSDB_BLOOM = _option(_K, "state.backend.rocksdb.use-bloom-filter", BOOLEAN, True,
                        "Use Bloom filters, which exclude files that cannot contain a key.")
ROCKSDB_BLOOM_BITS = _option(_K, "state.backend.rocksdb.bloom-filter.bits-per-key", DOUBLE, 10.0,
                             "Size of the Bloom filters, in bits per key.", test=_POSITIVE)
ROCKSDB_BLOCK_SIZE = _option(_K, "state.backend.rocksdb.block.blocksize", MEMORY, _kb(4),
                             "Size of a block of RocksDB's files before compression.", test=_NOT_EMPTY)
ROCKSDB_BUFFER_SIZE = _option(_K, "state.backend.rocksdb.writebuffer.size", MEMORY, None,
                              "Size of a write buffer of one state. Default: 1/8 of RocksDB's memory, at most 64 mb.",
                              test=_NOT_EMPTY)
ROCKSDB_BUFFERS = _option(_K, "state.backend.rocksdb.writebuffer.count", INT, None,
                          "Maximum number of write buffers of one state. Default: RocksDB's own.", test=_POSITIVE)
ROCKSDB_FILES = _option(_K, "state.backend.rocksdb.files.open", INT, -1,
                        "Maximum number of open files of a database; -1: all.")
ROCKSDB_THREADS = _option(_K, "state.backend.rocksdb.thread.num", INT, 2,
                          "Number of threads of a database that write buffers to disk and compact files.",
                          test=_POSITIVE)
ROCKSDB_COMPACTION = _option(_K, "state.backend.rocksdb.compaction.style", enum_type(CompactionStyle),
                             CompactionStyle.LEVEL,
                             "LEVEL uses the least disk space. UNIVERSAL rewrites files less often, so incremental "
                             "checkpoints store less, with up to three times the space.")
ROCKSDB_READERS = _option(_K, "rayflink.state.rocksdb.read-threads", INT, 8,
                          "Number of threads of a slot that read the state of one batch concurrently.", test=_POSITIVE)
ROCKSDB_DIRECT_IO = _option(_K, "rayflink.state.rocksdb.direct-io", BOOLEAN, False,
                            "Bypass the operating system's page cache when reading and writing RocksDB's files.")
CHANGELOG_STATE_BACKEND = _option(_K, "state.changelog.enabled", BOOLEAN, False,
                                  "Write each state change to a log, so that checkpoints are short.",
                                  unheeded="writes no log of changes")
MOVED_CLASSES = _option(_K, "rayflink.state.moved-classes", MAP, None,
                        "Dotted names of classes that were moved or renamed: old:new.")
TTL_SWEEP_RATE = _option(_K, "rayflink.state.ttl.sweep-rate", INT, 5_000,
                         "Maximum number of entries per second that the background cleanup checks, for each state with "
                         "a time to live in each subtask; 0: no cleanup. It runs ten times a second, for 5 ms or so.",
                         test=_NOT_NEGATIVE)
CHECKPOINT_INLINE_THRESHOLD = _option(_K, "execution.checkpointing.data-inline-threshold", MEMORY, _kb(20),
                                      "Parts of a snapshot up to this size are stored in its metadata, not in files.",
                                      ("state.storage.fs.memory-threshold",))
CHECKPOINT_HISTORY = _option(_K, "web.checkpoints.history", INT, 10,
                             "Number of checkpoints in the statistics; at least 0.", test=_NOT_NEGATIVE)
MAX_INLINE_STATE = _option(_K, "rayflink.checkpointing.max-inline-state-size", MEMORY, _kb(5 * 1024),
                           "Maximum size of a task's snapshot in the coordinator's memory if no directory is set.",
                           test=_NOT_EMPTY)

COMMITTER_RETRIES = _option(_K, "sink.committer.retries", INT, 10,
                            "Retries of a failed commit, with pauses of 0.1 to 10 seconds, before the task fails.",
                            test=_NOT_NEGATIVE)

_R = "Rayflink"
BATCH_MAX_ROWS = _option(_R, "rayflink.batch.max-rows", INT, 1 << 20,
                         "Maximum number of records in a network buffer; at least 1. Buffers for a slow consumer "
                         "contain fewer: see taskmanager.network.memory.buffer-debloat.enabled.", test=_POSITIVE)
BATCH_MAX_BYTES = _option(_R, "rayflink.batch.max-bytes", MEMORY, _kb(1024),
                          "Size of a network buffer of rows, the unit of credit; a larger record is sent alone. "
                          "Flink's 32 kb would cause 32 times as many calls between actors.",
                          ("taskmanager.memory.segment-size",), test=_NOT_EMPTY)
BATCH_MAX_ARROW_BYTES = _option(_R, "rayflink.batch.max-arrow-bytes", MEMORY, _kb(8192),
                                "Size of a network buffer of Arrow data; less, but 1 mb or more, with over 8 channels.",
                                test=_NOT_EMPTY)
TIME_SLICE = _option(_R, "rayflink.task.time-slice", DURATION, _ms(10),
                     "Time that a task processes records before it checks its mailbox, timers and barriers.",
                     test=_LONGER_THAN_ZERO)
MAX_IN_FLIGHT_CALLS = _option(_R, "rayflink.exchange.max-in-flight-calls", INT, 2,
                              "Maximum number of unanswered calls from one actor to another; at least 1.",
                              test=_POSITIVE)
MISSING_MESSAGE_TIMEOUT = _option(_R, "rayflink.exchange.missing-message-timeout", DURATION, _ms(30_000),
                                  "How long a channel waits for a missing sequence number before the task fails.",
                                  test=_LONGER_THAN_ZERO)
RAY_NAMESPACE = _option(_R, "rayflink.ray.namespace", STRING, "rayflink", "Ray namespace of the actors of all jobs.",
                        test=(lambda value: bool(value.strip()), "a name that is not empty"))
IDLE_PROCESS_TIMEOUT = _option(_R, "rayflink.ray.idle-process-timeout", DURATION, _ms(0),
                               "How long the processes of a finished job wait for the next job of the same program, "
                               "which then starts at once if it has the same slots and no module has changed. They "
                               "keep their CPUs. Only on a Ray that the program has started; 0: they end.")
SLOTS_PER_PROCESS = _option(_R, "rayflink.ray.slots-per-process", INT, 1,
                            "Number of slots that share a process on a node of Ray; at least 1. They share its "
                            "interpreter lock, so they have one core's worth of Python together, and its end. Slots of "
                            "several jobs share one where their coordinators do (`rayflink.ray.share-coordinators`); "
                            "one that asks for more than CPUs has its own.", test=_POSITIVE)
SLOT_CPUS = _option(_R, "rayflink.ray.slot-cpus", DOUBLE, 1.0,
                    "CPUs that a slot reserves with Ray, where its slot sharing group says nothing; at least 0.0001. "
                    "It bounds how many slots a node has, not what they use.",
                    test=(lambda cpus: cpus >= 0.0001, "a number of at least 0.0001"))
SHARE_COORDINATORS = _option(_R, "rayflink.ray.share-coordinators", BOOLEAN, True,
                             "Let the coordinator of a detached job of a session cluster, which takes checkpoints, "
                             "share a process with those of other jobs that have the same packages and log levels. "
                             "False gives it one of its own, as jobs have whose own script has classes.")
WAIT_UNTIL_RUNNING = _option(_R, "rayflink.detached.wait-until-running", BOOLEAN, False,
                             "With `execution.attached: false`, wait until all tasks run; an earlier end is an error.")
ALLOW_WAITING = _option(_R, "rayflink.detached.allow-waiting", BOOLEAN, False,
                        "With `execution.attached: false`, let a job wait for nodes if the cluster is too small.")
PLACEMENT_STRATEGY = _option(_R, "rayflink.ray.placement-strategy", enum_type(PlacementStrategy),
                             PlacementStrategy.PACK,
                             "How Ray distributes the slots of a job; STRICT_SPREAD gives each a node of its own.")
SHARE_PANES = _option(_R, "rayflink.window.share-panes", BOOLEAN, True,
                      "With aggregations, sliding windows add a record to one pane, and merge panes when they fire. "
                      "False adds it to each of its windows, for functions that depend on the order of records that "
                      "arrive out of order. A state of one kind cannot be restored as the other.")
KEY_CACHE_SIZE = _option(_R, "rayflink.partitioner.key-cache-size", LONG, 65_536,
                         "Number of keys whose channel a sender caches; at least 0.", test=_NOT_NEGATIVE)

for _last in (AUTOSCALER, METRICS, TRACES, _R, PYTHON, SQL, GATEWAY):  # in this order on the page of options
    _sections[_last] = _sections.pop(_last)


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
