"""The Table API and SQL: one more way to write a stream program. See docs/sql.md.

The modules here are PyFlink's paths. A query goes through the rooms: `parsing` (text to trees), `binding` (names and
types), `plan` (relations), `optimizer`, `physical` (steps of a stream program), while `statements` runs them, and
`runtime` has the operators. `dsl` has expressions of programs, `functions` and `user_functions` what they call,
`connectors` the tables outside, `conversion` streams and Python values as tables; `explaining` shows plans, and
`compiled_plans` stores them.

Steps of `rayflink.datastream` leave, by `StreamBuilder` alone: nothing here knows a runner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.table.changelog_mode import ChangelogMode as ChangelogMode
    from rayflink.table.compiled_plan import CompiledPlan as CompiledPlan
    from rayflink.table.data_view import DataView as DataView
    from rayflink.table.data_view import ListView as ListView
    from rayflink.table.data_view import MapView as MapView
    from rayflink.table.dsl.grouped_tables import AggregatedTable as AggregatedTable
    from rayflink.table.dsl.grouped_tables import FlatAggregateTable as FlatAggregateTable
    from rayflink.table.dsl.grouped_tables import GroupedTable as GroupedTable
    from rayflink.table.dsl.grouped_tables import GroupWindowedTable as GroupWindowedTable
    from rayflink.table.dsl.grouped_tables import OverWindowedTable as OverWindowedTable
    from rayflink.table.dsl.grouped_tables import WindowGroupedTable as WindowGroupedTable
    from rayflink.table.dsl.process_calls import PartitionedTable as PartitionedTable
    from rayflink.table.environment_settings import EnvironmentSettings as EnvironmentSettings
    from rayflink.table.errors import SqlError as SqlError
    from rayflink.table.explain_detail import ExplainDetail as ExplainDetail
    from rayflink.table.expression import Expression as Expression
    from rayflink.table.model_descriptor import ModelDescriptor as ModelDescriptor
    from rayflink.table.optimizer.planner_config import PlannerConfig as PlannerConfig
    from rayflink.table.plan.conflicts import InsertConflictStrategy as InsertConflictStrategy
    from rayflink.table.plan_reference import PlanReference as PlanReference
    from rayflink.table.resolved_schema import ResolvedSchema as ResolvedSchema
    from rayflink.table.result_kind import ResultKind as ResultKind
    from rayflink.table.runtime.lookups.lookup_function import LookupFunction as LookupFunction
    from rayflink.table.runtime.lookups.lookup_function import LookupRows as LookupRows
    from rayflink.table.schema import FormatDescriptor as FormatDescriptor
    from rayflink.table.schema import Schema as Schema
    from rayflink.table.schema import TableDescriptor as TableDescriptor
    from rayflink.table.sinks import CsvTableSink as CsvTableSink
    from rayflink.table.sinks import TableSink as TableSink
    from rayflink.table.sinks import WriteMode as WriteMode
    from rayflink.table.sources import CsvTableSource as CsvTableSource
    from rayflink.table.sources import TableSource as TableSource
    from rayflink.table.statement_set import StatementSet as StatementSet
    from rayflink.table.statements.modules import ModuleEntry as ModuleEntry
    from rayflink.table.table import Table as Table
    from rayflink.table.table_config import SqlDialect as SqlDialect
    from rayflink.table.table_config import TableConfig as TableConfig
    from rayflink.table.table_environment import StreamTableEnvironment as StreamTableEnvironment
    from rayflink.table.table_environment import TableEnvironment as TableEnvironment
    from rayflink.table.table_pipeline import TablePipeline as TablePipeline
    from rayflink.table.table_result import TableResult as TableResult
    from rayflink.table.table_schema import TableSchema as TableSchema
    from rayflink.table.types import DataType as DataType
    from rayflink.table.types import DataTypes as DataTypes
    from rayflink.table.types import Row as Row
    from rayflink.table.types import RowKind as RowKind
    from rayflink.table.types import UserDefinedType as UserDefinedType
    from rayflink.table.user_functions.aggregate_classes import AggregateFunction as AggregateFunction
    from rayflink.table.user_functions.aggregate_classes import TableAggregateFunction as TableAggregateFunction
    from rayflink.table.user_functions.function_classes import AsyncScalarFunction as AsyncScalarFunction
    from rayflink.table.user_functions.function_classes import AsyncTableFunction as AsyncTableFunction
    from rayflink.table.user_functions.function_classes import FunctionContext as FunctionContext
    from rayflink.table.user_functions.function_classes import ScalarFunction as ScalarFunction
    from rayflink.table.user_functions.function_classes import TableFunction as TableFunction
    from rayflink.table.user_functions.process.function_classes import ChangelogFunction as ChangelogFunction
    from rayflink.table.user_functions.process.function_classes import ProcessTableFunction as ProcessTableFunction
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.table.changelog_mode": "ChangelogMode",
            "rayflink.table.compiled_plan": "CompiledPlan",
            "rayflink.table.data_view": "DataView ListView MapView",
            "rayflink.table.dsl.process_calls": "PartitionedTable",
            "rayflink.table.environment_settings": "EnvironmentSettings",
            "rayflink.table.errors": "SqlError",
            "rayflink.table.explain_detail": "ExplainDetail",
            "rayflink.table.expression": "Expression",
            "rayflink.table.dsl.grouped_tables": "AggregatedTable FlatAggregateTable GroupWindowedTable GroupedTable "
            "OverWindowedTable WindowGroupedTable",
            "rayflink.table.model_descriptor": "ModelDescriptor",
            "rayflink.table.plan.conflicts": "InsertConflictStrategy",
            "rayflink.table.plan_reference": "PlanReference",
            "rayflink.table.resolved_schema": "ResolvedSchema",
            "rayflink.table.result_kind": "ResultKind",
            "rayflink.table.optimizer.planner_config": "PlannerConfig",
            "rayflink.table.runtime.lookups.lookup_function": "LookupFunction LookupRows",
            "rayflink.table.schema": "FormatDescriptor Schema TableDescriptor",
            "rayflink.table.sinks": "CsvTableSink TableSink WriteMode",
            "rayflink.table.sources": "CsvTableSource TableSource",
            "rayflink.table.statement_set": "StatementSet",
            "rayflink.table.table": "Table",
            "rayflink.table.statements.modules": "ModuleEntry",
            "rayflink.table.table_config": "SqlDialect TableConfig",
            "rayflink.table.table_environment": "StreamTableEnvironment TableEnvironment",
            "rayflink.table.table_pipeline": "TablePipeline",
            "rayflink.table.table_result": "TableResult",
            "rayflink.table.table_schema": "TableSchema",
            "rayflink.table.types": "DataType DataTypes Row RowKind UserDefinedType",
            "rayflink.table.user_functions.aggregate_classes": "AggregateFunction TableAggregateFunction",
            "rayflink.table.user_functions.function_classes": "AsyncScalarFunction AsyncTableFunction "
            "FunctionContext ScalarFunction TableFunction",
            "rayflink.table.user_functions.process.function_classes": "ChangelogFunction ProcessTableFunction",
        },
    )
