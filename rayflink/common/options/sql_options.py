"""The options of SQL and the Table API; `registry` has them with all others."""

from __future__ import annotations

from .option_declaring import LONGER_THAN_ZERO as _LONGER_THAN_ZERO
from .option_declaring import NAME as _NAME
from .option_declaring import NO_NEGATIVE_TIME as _NO_NEGATIVE_TIME
from .option_declaring import NOT_NEGATIVE as _NOT_NEGATIVE
from .option_declaring import POSITIVE as _POSITIVE
from .option_declaring import declare as _option
from .option_declaring import millis as _ms
from .option_types import BOOLEAN, DURATION, INT, LONG, STRING, enum_type
from .option_values import (
    AggPhaseStrategy,
    AsyncRetry,
    CatalogPlanCompilation,
    CatalogPlanRestore,
    CatalogStoreKind,
    LookupOutput,
    NonDeterministicUpdates,
    NotNullEnforcer,
    ResultFormat,
    ResultMode,
    SinkKeyedShuffle,
    TypeLengthEnforcer,
    UpsertMaterialize,
)

SQL = "SQL"
"""The heading of these options."""
BUILT_IN_CATALOG = _option(SQL, "table.builtin-catalog-name", STRING, "default_catalog",
                           "Name of the initial catalog; read when the environment is created.", test=_NAME)
BUILT_IN_DATABASE = _option(SQL, "table.builtin-database-name", STRING, "default_database",
                            "Name of its initial database; read when the environment is created.", test=_NAME)
TABLE_OPTIONS_HINT = _option(SQL, "table.dynamic-table-options.enabled", BOOLEAN, True,
                             "Take the hint `/*+ OPTIONS(...) */`; false refuses it.")
CATALOG_STORE = _option(SQL, "table.catalog-store.kind", enum_type(CatalogStoreKind),
                        CatalogStoreKind.GENERIC_IN_MEMORY,
                        "Where the definitions of catalogs are stored: in the environment, or in files, from which "
                        "later programs open them; read when the environment is created.")
CATALOG_STORE_PATH = _option(SQL, "table.catalog-store.file.path", STRING, None,
                             "Folder of these files, created when it is missing.")
LOCAL_TIME_ZONE = _option(SQL, "table.local-time-zone", STRING, "default",
                          "Time zone of the session, a name of the IANA database; default: the machine's time zone.")
AGG_PHASE_STRATEGY = _option(SQL, "table.optimizer.agg-phase-strategy", enum_type(AggPhaseStrategy),
                             AggPhaseStrategy.AUTO,
                             "Whether windows, and groups in batch mode or with mini-batches, are also aggregated "
                             "before the exchange. AUTO: unless groups in batch mode leave more than half the rows.")
SPLIT_DISTINCT = _option(SQL, "table.optimizer.distinct-agg.split.enabled", BOOLEAN, False,
                         "Compute DISTINCT aggregates in two steps, the first by key and value (in windows: by key and "
                         "a hash bucket of the value), so that several subtasks share the work of a hot key.")
DISTINCT_BUCKETS = _option(SQL, "table.optimizer.distinct-agg.split.bucket-num", INT, 1024,
                           "Number of these hash buckets; at least 1.", test=_POSITIVE)
JOIN_REORDER = _option(SQL, "table.optimizer.join-reorder-enabled", BOOLEAN, False,
                       "In batch mode, run three and more inner joins in the order with the fewest estimated rows, as "
                       "far as the row counts of the tables are known.")
BUSHY_JOINS = _option(SQL, "table.optimizer.bushy-join-reorder-threshold", INT, 12,
                      "Up to this number of tables, at most 14, all join orders are compared; with more tables, the "
                      "two with the smallest join are joined first.", test=_NOT_NEGATIVE)
BROADCAST_JOIN = _option(SQL, "table.optimizer.join.broadcast-threshold", LONG, 1 << 20,
                         "In batch mode, broadcast a join side of at most this many bytes to all subtasks, and do not "
                         "exchange the other side; -1: never.", test=(lambda value: value >= -1, "-1, or 0 and more"))
MULTI_JOIN = _option(SQL, "table.optimizer.multi-join.enabled", BOOLEAN, False,
                     "Run three and more regular joins of streams, inner and left ones, that have a key in common as "
                     "one step, which stores the rows of the tables and no result between them.")
DROP_UNREAD_WATERMARKS = _option(SQL, "rayflink.table.optimizer.drop-unread-watermarks", BOOLEAN, True,
                                 "Make no watermarks of a table in a streaming query where no step reads them: no "
                                 "window, join or order by event time. False: where their metric is of interest.")
REUSE_SUB_PLAN = _option(SQL, "table.optimizer.reuse-sub-plan-enabled", BOOLEAN, True,
                         "Compute common parts of a program once.")
REUSE_SOURCE = _option(SQL, "table.optimizer.reuse-source-enabled", BOOLEAN, True,
                       "Read a table once if several parts of a program read it; requires reuse-sub-plan-enabled.")

STATE_TTL = _option(SQL, "table.exec.state.ttl", DURATION, _ms(0),
                    "Processing time after which unused state of a query on streams expires: groups, DISTINCT, joins, "
                    "first and last rows of a key, upserts, OVER and row patterns; 0: never. Windows, and joins and "
                    "OVER with bounds of time, clean up their state themselves; for windows the option is only the "
                    "default of allow-lateness.", test=_NO_NEGATIVE_TIME)
EARLY_FIRE_ENABLED = _option(SQL, "table.exec.emit.early-fire.enabled", BOOLEAN, False,
                             "Group windows emit results before their end and update them later.")
EARLY_FIRE_DELAY = _option(SQL, "table.exec.emit.early-fire.delay", DURATION, None,
                           "Time from a window's first row to its first early result, and the interval at which "
                           "changed results are emitted; 0: at each row.", test=_NO_NEGATIVE_TIME)
LATE_FIRE_ENABLED = _option(SQL, "table.exec.emit.late-fire.enabled", BOOLEAN, False,
                            "Group windows emit updated results when late rows arrive.")
LATE_FIRE_DELAY = _option(SQL, "table.exec.emit.late-fire.delay", DURATION, None,
                          "Same as early-fire.delay, after the end of a window.", test=_NO_NEGATIVE_TIME)
ALLOW_LATENESS = _option(SQL, "table.exec.emit.allow-lateness", DURATION, None,
                         "How long after their end windows accept rows, with late fire. Default: table.exec.state.ttl.",
                         test=_NO_NEGATIVE_TIME)

SOURCE_IDLE_TIMEOUT = _option(SQL, "table.exec.source.idle-timeout", DURATION, _ms(0),
                              "Time without rows after which a source no longer holds back event time; 0: never.",
                              test=_NO_NEGATIVE_TIME)
NOT_NULL_ENFORCER = _option(SQL, "table.exec.sink.not-null-enforcer", enum_type(NotNullEnforcer), NotNullEnforcer.ERROR,
                            "NULL in a NOT NULL column: an error, or drop the row, counted in numNullRecordsDropped.")
TYPE_LENGTH_ENFORCER = _option(SQL, "table.exec.sink.type-length-enforcer", enum_type(TypeLengthEnforcer),
                               TypeLengthEnforcer.IGNORE,
                               "Strings and bytes of another length than their column: ignore it, trim and pad, fail.")
UPSERT_MATERIALIZE = _option(SQL, "table.exec.sink.upsert-materialize", enum_type(UpsertMaterialize),
                             UpsertMaterialize.AUTO,
                             "Store the rows of each PRIMARY KEY before they are written, and write the last one; "
                             "AUTO: where rows change whose own key may differ from it.")
REQUIRE_ON_CONFLICT = _option(SQL, "table.exec.sink.require-on-conflict", BOOLEAN, False,
                              "Refuse an INSERT without ON CONFLICT into a table whose PRIMARY KEY is not a key of the "
                              "query; true in Flink.")
KEYED_SHUFFLE = _option(SQL, "table.exec.sink.keyed-shuffle", enum_type(SinkKeyedShuffle), SinkKeyedShuffle.AUTO,
                        "Partition rows by PRIMARY KEY before they are written; AUTO: where several subtasks write, "
                        "and another number of them than the query has; FORCE: where several write.")
ASYNC_LOOKUP_CAPACITY = _option(SQL, "table.exec.async-lookup.buffer-capacity", INT, 100,
                                "Requests of a lookup join under way at most, each for the keys of a batch.",
                                test=_POSITIVE)
ASYNC_LOOKUP_TIMEOUT = _option(SQL, "table.exec.async-lookup.timeout", DURATION, _ms(180_000),
                               "Time for a request of a lookup join with all its repetitions, after which the job "
                               "fails.", test=_LONGER_THAN_ZERO)
ASYNC_LOOKUP_OUTPUT = _option(SQL, "table.exec.async-lookup.output-mode", enum_type(LookupOutput), LookupOutput.ORDERED,
                              "Order of the results of lookup joins: as rows came, or as answers come, never across a "
                              "watermark; changes of rows keep their order.")
ASYNC_SCALAR_CALLS = _option(SQL, "table.exec.async-scalar.max-concurrent-operations", INT, 10,
                         "Calls of asynchronous scalar functions under way at most, in each subtask.", test=_POSITIVE)
ASYNC_SCALAR_TIMEOUT = _option(SQL, "table.exec.async-scalar.timeout", DURATION, _ms(180_000),
                           "Time for a call of an asynchronous scalar function with all its repetitions, after "
                           "which the job fails.", test=_LONGER_THAN_ZERO)
ASYNC_SCALAR_RETRY = _option(SQL, "table.exec.async-scalar.retry-strategy", enum_type(AsyncRetry),
                         AsyncRetry.FIXED_DELAY, "Repetition of a call of an asynchronous scalar function that fails.")
ASYNC_SCALAR_DELAY = _option(SQL, "table.exec.async-scalar.retry-delay", DURATION, _ms(100),
                         "Pause before each repetition.", test=_NO_NEGATIVE_TIME)
ASYNC_SCALAR_ATTEMPTS = _option(SQL, "table.exec.async-scalar.max-attempts", INT, 3,
                            "Repetitions of a call at most.", test=_NOT_NEGATIVE)
ASYNC_TABLE_CALLS = _option(SQL, "table.exec.async-table.max-concurrent-operations", INT, 10,
                         "Calls of asynchronous table functions under way at most, in each subtask.", test=_POSITIVE)
ASYNC_TABLE_TIMEOUT = _option(SQL, "table.exec.async-table.timeout", DURATION, _ms(180_000),
                           "Time for a call of an asynchronous table function with all its repetitions, after "
                           "which the job fails.", test=_LONGER_THAN_ZERO)
ASYNC_TABLE_RETRY = _option(SQL, "table.exec.async-table.retry-strategy", enum_type(AsyncRetry),
                         AsyncRetry.FIXED_DELAY, "Repetition of a call of an asynchronous table function that fails.")
ASYNC_TABLE_DELAY = _option(SQL, "table.exec.async-table.retry-delay", DURATION, _ms(100),
                         "Pause before each repetition.", test=_NO_NEGATIVE_TIME)
ASYNC_TABLE_ATTEMPTS = _option(SQL, "table.exec.async-table.max-retries", INT, 3,
                            "Repetitions of a call at most.", test=_NOT_NEGATIVE)
NON_DETERMINISTIC_UPDATES = _option(SQL, "table.optimizer.non-deterministic-update.strategy",
                                    enum_type(NonDeterministicUpdates), NonDeterministicUpdates.IGNORE,
                                    "Treatment of lookup joins and functions such as UUID over rows that change: run "
                                    "them, or store what joins found and refuse what else could differ with the time.")
PRINTED_WIDTH = _option(SQL, "table.display.max-column-width", INT, 30,
                        "Maximum width of values without a fixed length in print(); longer ones end in dots.",
                        test=_POSITIVE)
DISPLAY_ROWS = _option(SQL, "rayflink.display.rows", INT, 20,
                       "Rows of a table that a notebook shows; 0: none, so that no query is run to show a table.",
                       test=(lambda value: value >= 0, "0 and more"))
DISPLAY_TIMEOUT = _option(SQL, "rayflink.display.timeout", DURATION, _ms(5000),
                          "Time in which the rows come that a notebook shows of a table; the query is ended then.")
TABLE_PARALLELISM = _option(SQL, "table.exec.resource.default-parallelism", INT, -1,
                            "Parallelism of queries; -1: parallelism.default.",
                            test=(lambda value: value == -1 or value > 0, "-1, or 1 and more"))
DUPLICATE_CHANGES = _option(SQL, "table.exec.source.cdc-events-duplicate", BOOLEAN, False,
                            "Leave out changes that come twice, by the last row of each PRIMARY KEY.")
MINI_BATCH = _option(SQL, "table.exec.mini-batch.enabled", BOOLEAN, False,
                     "Aggregate and join the rows of streams without a window in mini-batches, which show one change "
                     "of a group, and of a row of a join, instead of the change of each row.")
MINI_BATCH_LATENCY = _option(SQL, "table.exec.mini-batch.allow-latency", DURATION, _ms(0),
                             "How long rows may wait for a mini-batch; must be set where they are enabled.")
MINI_BATCH_SIZE = _option(SQL, "table.exec.mini-batch.size", LONG, -1,
                          "Maximum number of rows in a mini-batch; must be set where they are enabled.")
PLAN_COMPILE_OBJECTS = _option(SQL, "table.plan.compile.catalog-objects", enum_type(CatalogPlanCompilation),
                               CatalogPlanCompilation.ALL,
                               "What a compiled plan contains of tables and functions of catalogs: definition with "
                               "options and class, columns alone, or the identifier. Never secrets.")
PLAN_RESTORE_OBJECTS = _option(SQL, "table.plan.restore.catalog-objects", enum_type(CatalogPlanRestore),
                               CatalogPlanRestore.ALL,
                               "Where a compiled plan that is loaded finds tables and functions: ALL: in the plan, and "
                               "in the catalog what the plan lacks; ALL_ENFORCED: in the plan; IDENTIFIER: in the "
                               "catalog.")
PLAN_FORCE_RECOMPILE = _option(SQL, "table.plan.force-recompile", BOOLEAN, False,
                               "Write the file of a compiled plan anew where there is one, instead of an error, and "
                               "compile in COMPILE AND EXECUTE PLAN instead of reading it. For debugging.")
DML_SYNC = _option(SQL, "table.dml-sync", BOOLEAN, False,
                   "Wait in the SQL shell for the job of an INSERT before the next statement runs.")
RESULT_MODE = _option(SQL, "sql-client.execution.result-mode", enum_type(ResultMode), ResultMode.TABLE,
                      "Rows of a query in the SQL shell: table: as they are at its end, and in a terminal all the "
                      "time; changelog and tableau: each change as it comes. Default of files and pipes: tableau.")
RESULT_FORMAT = _option(SQL, "sql-client.execution.result-format", enum_type(ResultFormat), ResultFormat.TEXT,
                        "Format of rows in the SQL shell; json: one object per line.")
MAX_RESULT_ROWS = _option(SQL, "sql-client.execution.max-table-result.rows", INT, 1_000_000,
                          "Rows of a query that the SQL shell holds in the mode table; the oldest are left out.",
                          test=_POSITIVE)
PRINT_TIME_COST = _option(SQL, "sql-client.display.print-time-cost", BOOLEAN, True,
                          "Show in the SQL shell how long a query in the mode table took.")
