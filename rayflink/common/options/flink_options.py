"""Flink's options that have no effect here, each with what this version does instead; `registry` has all others.

Their default, and no other value where another one would change results, is accepted in silence.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .option_declaring import Test, declare, millis
from .option_types import BOOLEAN, DOUBLE, DURATION, INT, LIST, LONG, MEMORY, STRING, ValueType
from .python_options import PYTHON
from .sql_options import SQL

_IN_TASKS = "runs functions in the processes of tasks"
_STATE_IN_TASKS = "reads and writes state in the process of the task"
_BATCHES = "calls functions for the batches of a stream"
_MANAGED = "shares the managed memory of a slot among the tasks that need it"
_RULES = "chooses steps by the rules of docs/planner-rules.md"
_NO_DELTA_JOIN = "has no delta joins"
_MODELS = "calls asynchronous models by table.exec.async-scalar"
_NO_VECTORS = "has no vector search in SQL"
_HASH = "aggregates before the exchange by table.optimizer.agg-phase-strategy"

_Row = tuple[str, ValueType[Any], Any, str, str]
_OF_PYTHON: tuple[_Row, ...] = (
    ("python.client.executable", STRING, None, "Interpreter of the program itself.",
     "runs the program by the interpreter that has started it"),
    ("python.pythonpath", STRING, None, "Folders of modules on the nodes.",
     "imports what is installed on a node and what `python.files` names"),
    ("python.systemenv.enabled", BOOLEAN, True, "Pass the node's environment variables to functions.", _IN_TASKS),
    ("python.execution-mode", STRING, "process", "Processes or threads of Flink's run functions.", _IN_TASKS),
    ("python.fn-execution.memory.managed", BOOLEAN, True, "Give Flink's Python processes managed memory.", _IN_TASKS),
    ("python.fn-execution.arrow.batch.size", INT, 1000, "Rows in an Arrow batch.", _BATCHES),
    ("python.fn-execution.bundle.size", INT, 1000, "Rows in a bundle.", _BATCHES),
    ("python.fn-execution.bundle.time", LONG, 1000, "Milliseconds that a bundle waits.", _BATCHES),
    ("python.operator-chaining.enabled", BOOLEAN, True, "Chain Python operators.",
     "chains all operators by pipeline.operator-chaining.enabled"),
    ("python.metric.enabled", BOOLEAN, True, "Report the metrics of functions.", "always reports them"),
    ("python.profile.enabled", BOOLEAN, False, "Print profiles of functions.",
     "prints none; attach a profiler such as py-spy to the process"),
    ("python.job-options", STRING, None, "Options of Flink's Python processes.", _IN_TASKS),
    ("python.state.cache-size", INT, 1000, "Entries of the cache of state.", _STATE_IN_TASKS),
    ("python.map-state.read-cache-size", INT, 1000, "Entries of the cache of map state.", _STATE_IN_TASKS),
    ("python.map-state.write-cache-size", INT, 1000, "Entries of the cache of writes to it.", _STATE_IN_TASKS),
    ("python.map-state.iterate-response-batch-size", INT, 1000, "Its entries that are sent at once.", _STATE_IN_TASKS),
)  # fmt: skip
_OF_SQL: tuple[_Row, ...] = (
    ("table.exec.async-lookup.key-ordered-enabled", BOOLEAN, False, "Keep the order of the rows of a key.",
     "keeps the order of all rows with the output mode ORDERED"),
    ("table.exec.async-ml-predict.max-concurrent-operations", INT, 10, "Calls of models at a time.", _MODELS),
    ("table.exec.async-ml-predict.output-mode", STRING, "ORDERED", "Order of their results.", _MODELS),
    ("table.exec.async-ml-predict.timeout", DURATION, millis(180_000), "Time for a call of a model.", _MODELS),
    ("table.exec.async-vector-search.max-concurrent-operations", INT, 10, "Vector searches at a time.", _NO_VECTORS),
    ("table.exec.async-vector-search.output-mode", STRING, "ORDERED", "Order of their results.", _NO_VECTORS),
    ("table.exec.async-vector-search.timeout", DURATION, millis(180_000), "Time for a vector search.", _NO_VECTORS),
    ("table.exec.async-state.enabled", BOOLEAN, False, "Read state asynchronously.",
     "reads the state of a batch of rows at once"),
    ("table.exec.deduplicate.insert-update-after-sensitive-enabled", BOOLEAN, True,
     "Show the first row of a key as an insertion.", "always does"),
    ("table.exec.deduplicate.mini-batch.compact-changes-enabled", BOOLEAN, False,
     "Leave out changes within a mini-batch.", "leaves them out in groups and joins alone"),
    ("table.exec.delta-join.cache-enabled", BOOLEAN, True, "Cache the rows of delta joins.", _NO_DELTA_JOIN),
    ("table.exec.disabled-operators", STRING, None, "Operators not to use.", _RULES),
    ("table.exec.interval-join.min-cleanup-interval", DURATION, millis(0), "Least time between two cleanups.",
     "cleans up rows of interval joins as watermarks pass them"),
    ("table.exec.local-hash-agg.adaptive.enabled", BOOLEAN, True, "Stop aggregating before the exchange where it does "
     "not help.", _HASH),
    ("table.exec.local-hash-agg.adaptive.sampling-threshold", LONG, 500_000, "Rows after which that is decided.",
     _HASH),
    ("table.exec.local-hash-agg.adaptive.distinct-value-rate-threshold", DOUBLE, 0.5, "Rate of groups that decides it.",
     _HASH),
    ("table.exec.operator-fusion-codegen.enabled", BOOLEAN, False, "Generate code for several steps.",
     "generates no code"),
    ("table.exec.rank.topn-cache-size", LONG, 10_000, "Rows in the cache of Top-N.",
     "caches the rows of the keys of a batch"),
    ("table.exec.resource.external-buffer-memory", MEMORY, None, "Weight of buffers of joins.", _MANAGED),
    ("table.exec.resource.hash-agg.memory", MEMORY, None, "Weight of hash aggregates.", _MANAGED),
    ("table.exec.resource.hash-join.memory", MEMORY, None, "Weight of hash joins.", _MANAGED),
    ("table.exec.resource.sort.memory", MEMORY, None, "Weight of sorts.", _MANAGED),
    ("table.exec.simplify-operator-name-enabled", BOOLEAN, True, "Give steps short names.", "always does"),
    ("table.exec.sink.rowtime-inserter", STRING, "ENABLED", "Write event time as the timestamp of a record.",
     "writes it to the columns and metadata that a table declares"),
    ("table.exec.sink.upsert-materialize-strategy.type", STRING, None, "State of rows before a sink.",
     "chooses it by their number"),
    ("table.exec.sink.upsert-materialize-strategy.adaptive.threshold.high", LONG, None, "Rows from which it is a map.",
     "chooses it by their number"),
    ("table.exec.sink.upsert-materialize-strategy.adaptive.threshold.low", LONG, None, "Rows below which it is a list.",
     "chooses it by their number"),
    ("table.exec.sort.async-merge-enabled", BOOLEAN, True, "Merge sorted files in the background.",
     "merges them as they are read"),
    ("table.exec.sort.max-num-file-handles", INT, 128, "Files that a merge reads.", "reads all sorted files at once"),
    ("table.exec.spill-compression.enabled", BOOLEAN, True, "Compress spilled files.", "writes them as Arrow does"),
    ("table.exec.spill-compression.block-size", MEMORY, None, "Block of that compression.",
     "writes them as Arrow does"),
    ("table.exec.uid.format", STRING, None, "Form of the ids of operators.",
     "knows state by the query; compiled plans have ids of their own"),
    ("table.exec.uid.generation", STRING, None, "Plans whose operators have ids.",
     "knows state by the query; compiled plans have ids of their own"),
    ("table.exec.unbounded-over.version", INT, None, "Version of the operator of OVER.", "has one version of it"),
    ("table.exec.window-agg.buffer-size-limit", INT, 100_000, "Rows that windows buffer in batch mode.",
     "aggregates windows as rows come"),
    ("table.optimizer.adaptive-broadcast-join.strategy", STRING, None, "Broadcast a side that turns out small.",
     "decides by table.optimizer.join.broadcast-threshold"),
    ("table.optimizer.delta-join.strategy", STRING, None, "Whether joins become delta joins.", _NO_DELTA_JOIN),
    ("table.optimizer.dynamic-filtering.enabled", BOOLEAN, True, "Filter partitions while a job runs.",
     "filters partitions when a query is planned"),
    ("table.optimizer.incremental-agg-enabled", BOOLEAN, True, "Merge the phases of split DISTINCT aggregates.",
     "merges none"),
    ("table.optimizer.multiple-input-enabled", BOOLEAN, True, "Merge steps with several inputs.",
     "chains steps by pipeline.operator-chaining.enabled"),
    ("table.optimizer.reuse-optimize-block-with-digest-enabled", BOOLEAN, False, "Reuse equal blocks of plans.",
     "reuses by table.optimizer.reuse-sub-plan-enabled"),
    ("table.optimizer.reuse-sink-enabled", BOOLEAN, False, "Write equal sinks once.", "has one sink for each INSERT"),
    ("table.optimizer.runtime-filter.enabled", BOOLEAN, False, "Filter one side of a join by the other.",
     "does not filter it"),
    ("table.optimizer.skewed-join-optimization.strategy", STRING, None, "Split skewed join keys.", "splits none"),
    ("table.optimizer.skewed-join-optimization.skewed-factor", DOUBLE, None, "What is skewed.", "splits none"),
    ("table.optimizer.skewed-join-optimization.skewed-threshold", MEMORY, None, "What is skewed.", "splits none"),
    ("table.optimizer.source.report-statistics-enabled", BOOLEAN, True, "Ask sources for statistics.", "always does"),
    ("table.optimizer.union-all-as-breakpoint-enabled", BOOLEAN, True, "Optimize inputs of UNION ALL apart.",
     "optimizes whole plans"),
    ("table.catalog-modification.listeners", LIST, None, "Java classes that hear of changes to catalogs.",
     "has no Java classes"),
    ("table.generated-code.max-length", INT, 4000, "Length of generated Java methods.", "generates no code"),
    ("table.rtas-ctas.atomicity-enabled", BOOLEAN, False, "Make CREATE TABLE AS atomic.",
     "creates the table before its job starts"),
)  # fmt: skip
_REFUSED: tuple[tuple[str, str, str], ...] = (
    ("table.column-expansion-strategy", "Columns that SELECT * leaves out.", "name the columns: SELECT * has all"),
)
"""Options that would change results, without a value that this version has."""
_ONE_VALUE: tuple[tuple[str, ValueType[Any], Any, str], ...] = (
    ("table.exec.legacy-cast-behaviour", STRING, "DISABLED", "CAST as before Flink 1.15."),
    ("table.exec.sink.nested-constraint-enforcer", STRING, "IGNORE", "NOT NULL of fields within rows, enforced."),
    ("table.exec.sort.default-limit", INT, -1, "Limit of ORDER BY without LIMIT."),
    ("table.legacy-nested-row-nullability", BOOLEAN, False, "NULL in fields of rows that are NOT NULL."),
    ("table.sql-dialect", STRING, "default", "Dialect of statements."),
)
"""Options that would change results, with their only value."""


def _declare(section: str, rows: Iterable[_Row]) -> None:
    for key, kind, default, help, instead in rows:
        declare(section, key, kind, default, help, unheeded=instead)


def _only(value: object) -> Test:
    """Return the test of an option that has one value."""
    return lambda other: str(other).upper() == str(value).upper(), f"{value}, which is the only value here"


_declare(PYTHON, _OF_PYTHON)
_declare(SQL, _OF_SQL)
for _key, _kind, _default, _help in _ONE_VALUE:
    declare(SQL, _key, _kind, _default, _help, test=_only(_default))
for _key, _help, _refused in _REFUSED:
    declare(SQL, _key, LIST, None, _help, refused=_refused)
WITHOUT_EFFECT = {key: default for key, _, default, *_ in (*_OF_PYTHON, *_OF_SQL)}
"""Keys of the options without effect, with their defaults."""
ONE_VALUE = tuple(key for key, *_ in _ONE_VALUE)
"""Keys of the options with one value."""
