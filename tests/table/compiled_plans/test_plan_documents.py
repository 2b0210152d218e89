"""Plans as JSON: what was compiled is what is read, also plans of earlier versions, and what is unknown is refused."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from rayflink.common.options.option_values import CatalogPlanCompilation
from rayflink.graph.uids import operator_ids
from rayflink.table import EnvironmentSettings, ProcessTableFunction, SqlError, TableEnvironment
from rayflink.table.compiled_plan import CompiledPlan
from rayflink.table.compiled_plans.plan_document import PlanWriter, header_of
from rayflink.table.compiled_plans.plan_tables import TableWriter
from rayflink.table.compiled_plans.plan_types import ENUM_TYPES, NODE_TYPES, VALUE_TYPES
from rayflink.table.plan.joins import Join
from rayflink.table.plan.lookup_joins import SnapshotJoin
from rayflink.table.plan.plan_format import plan_text
from rayflink.table.plan.plan_nodes import NODE_CLASSES
from rayflink.table.plan_reference import PlanReference
from rayflink.table.udf import ProcessTableFunctionArgumentTrait, table_arg, udf
from tests.table.compiled_plans.golden_plans import compiled_query, golden_plans, stored_text, with_sink
from tests.table.queries.golden_queries import FOLDER, GoldenQuery, golden_queries

SUMS = "INSERT INTO sums SELECT n, COUNT(*) FROM numbers WHERE n > 0 GROUP BY n"


def environment(*options: tuple[str, str]) -> TableEnvironment:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in options:
        t_env.get_config().set(key, value)
    t_env.execute_sql("CREATE TABLE numbers (n INT, s STRING) WITH ('connector' = 'datagen', 'number-of-rows' = '9')")
    t_env.execute_sql("CREATE TABLE sums (n INT, total BIGINT) WITH ('connector' = 'print')")
    return t_env


def without_operators(document: Any) -> list[Any]:
    return [{key: value for key, value in node.items() if key != "operators"} for node in document["nodes"]]


@pytest.mark.parametrize("query", [
    pytest.param(query, marks=[pytest.mark.soak] * (zlib.crc32(query.folder.name.encode()) % 32 > 0))
    for query in golden_queries()
], ids=lambda query: query.folder.name)  # fmt: skip
def test_a_plan_that_was_read_is_written_as_it_was(query: GoldenQuery) -> None:
    t_env = with_sink(query)
    context, text = t_env._context, compiled_query(query, t_env).as_json_string()
    document, planned = json.loads(text), CompiledPlan(t_env._queries, text)._planned
    tables = TableWriter(context.catalogs, context.functions, CatalogPlanCompilation.ALL)
    again = PlanWriter(planned.sinks, tables).document(header_of(document), {})
    assert without_operators(json.loads(json.dumps(again))) == without_operators(document)
    shown = query.expected.partition("== Optimized Execution Plan ==\n")[2].partition("\n\n== ")[0]
    explained = t_env.explain_sql(f"INSERT INTO results {query.text}").partition("== Optimized Execution Plan ==\n")[2]
    assert shown and CompiledPlan(t_env._queries, text).explain().partition("\n")[2] == explained


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[pytest.mark.slow] * (number % 3 > 0)) for number, name in enumerate(golden_plans())
])  # fmt: skip
def test_a_plan_of_an_earlier_version_is_read(name: str) -> None:
    t_env = with_sink(GoldenQuery(FOLDER / name))
    text = stored_text(name)
    plan, queries = CompiledPlan(t_env._queries, text), t_env._queries
    with queries.env.apart():
        queries.write_planned(plan._planned)
        graph = queries.env.get_stream_graph()
    stored = [step["id"] for node in json.loads(text)["nodes"] for step in node.get("operators", ())]
    assert {str(operator_id) for operator_id in operator_ids(graph).values()} >= set(stored)
    assert all(plan_text(sink.input) for sink in plan._planned.sinks)


def test_all_nodes_that_can_be_run_have_a_name() -> None:
    assert {kind for _, kind in NODE_TYPES.values()} == {*NODE_CLASSES} - {Join, SnapshotJoin}


def test_names_of_types_do_not_meet() -> None:
    assert len({*NODE_TYPES, *VALUE_TYPES, *ENUM_TYPES}) == len(NODE_TYPES) + len(VALUE_TYPES) + len(ENUM_TYPES)


# what is refused


def node(document: Any, kind: str) -> Any:
    return next(node for node in document["nodes"] if node["type"] == kind)


def changed(change: Callable[[Any], object]) -> str:
    document = json.loads(environment().compile_plan_sql(SUMS).as_json_string())
    change(document)
    return json.dumps(document)


CHANGES: list[tuple[Callable[[Any], object], str]] = [
    (lambda plan: plan.update(planVersion=2, rayflinkVersion="9.1"), "reads version 1; run it with rayflink 9.1"),
    (lambda plan: plan.pop("planVersion"), "compiled by Flink"),
    (lambda plan: plan.update(mode="BATCH"), "compiled in batch mode"),
    (lambda plan: plan["options"].update({"table.exec.new": "1"}), "'table.exec.new', which this version does not"),
    (lambda plan: plan.update(nodes=[]), "the plan has no 'nodes'"),
    (lambda plan: plan["nodes"].pop(), "the plan writes no table"),
    (lambda plan: plan.pop("timeZone"), "the plan lacks 'timeZone'"),
    (lambda plan: plan["nodes"].pop(0), "on node 1, which is not before it"),
    (lambda plan: node(plan, "filter_1").update(type="sieve_1"), "'sieve_1', which this version does not know"),
    (lambda plan: node(plan, "filter_1").update(type="filter_3"), "'filter_3', and this version knows version 1"),
    (lambda plan: node(plan, "filter_1").update(speed=2), "field 'speed', which this version does not know"),
    (lambda plan: node(plan, "filter_1").pop("condition"), "lacks the field 'condition'"),
    (lambda plan: node(plan, "filter_1").update(condition={"Guess": {}}), "is no Guess that this version knows"),
    (lambda plan: node(plan, "filter_1")["condition"]["Call"].update(function="NEAR"), "the function NEAR, which"),
    (lambda plan: node(plan, "scan_1")["schema"][0].update(type="INTT"), "INTT"),
    (lambda plan: node(plan, "scan_1")["abilities"].append({"ColumnPushDown": {"names": ["q"]}}), "does not take"),
    (lambda plan: node(plan, "scan_1")["catalog_table"]["definition"].update(version=7), "has the version 7"),
    (lambda plan: plan.update(mode="FAST"), "the mode 'FAST', wanted BATCH or STREAMING"),
    (lambda plan: node(plan, "group-aggregate_1")["calls"][0].update(name="SUMX"), "SUMX, which this version does not"),
    (lambda plan: plan.update(options=7), "'options': found 7, wanted dict[str, str]"),
    (lambda plan: plan["options"].update({"table.exec.state.ttl": 7}), "wanted dict[str, str]"),
    (lambda plan: node(plan, "filter_1").update(condition=7), "'condition': found 7, wanted Expr"),
    (lambda plan: node(plan, "filter_1").update(input=None), "'input': found None, wanted Relation"),
    (lambda plan: node(plan, "filter_1").update(operators=[{"name": "a"}]), "lacks 'name' or 'id'"),
    (lambda plan: node(plan, "filter_1").update(id="1"), "'id': found '1', wanted int"),
    (lambda plan: node(plan, "filter_1")["condition"]["Call"]["args"][0]["Column"].update(index=9), "other columns"),
    (lambda plan: node(plan, "sink_1")["declared"].pop(), "other columns than what it reads or writes"),
    (lambda plan: node(plan, "group-aggregate_1").update(grouping=["n"]), "wanted tuple[int, ...]"),
    (lambda plan: node(plan, "group-aggregate_1").update(grouping=[9]), "has other columns than what it reads"),
    (lambda plan: node(plan, "group-aggregate_1").update(grouping=[0, 0]), "other columns than what it reads or"),
    (lambda plan: node(plan, "group-aggregate_1")["calls"][0].update(arguments=[-1]), "columns than what it reads"),
    (lambda plan: plan.update(timeZone="Mars/Base"), "the 'timeZone' of the plan is 'Mars/Base', which is no time"),
    (lambda plan: node(plan, "scan_1").update(path=[]), "lacks its 'catalog_table' or its 'path'"),
    (lambda plan: node(plan, "scan_1")["catalog_table"].update(identifier=["a"]), "wanted tuple[str, str, str]"),
    (lambda plan: node(plan, "scan_1")["catalog_table"].update(definition=[]), "'definition' [], wanted an object"),
    (lambda plan: node(plan, "scan_1")["catalog_table"]["definition"].update(columns=7), "cannot be read"),
    (lambda plan: node(plan, "scan_1")["catalog_table"]["definition"]["options"].update(connector=7), "no strings"),
    (lambda plan: node(plan, "filter_1").update(condition={"Literal": {"type": "INT", "value": {"DECIMAL": "x"}}}),
     "is no value of a plan"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "problem"), CHANGES, ids=[problem for _, problem in CHANGES])
def test_a_plan_that_cannot_be_run_is_refused(change: Callable[[Any], object], problem: str) -> None:
    with pytest.raises(SqlError) as raised:
        environment().load_plan(PlanReference.from_json_string(changed(change)))
    assert problem in str(raised.value)


@pytest.mark.parametrize("text", ["", "[1", "3", '"a"', "[]"])
def test_what_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(SqlError, match="no JSON|is no plan"):
        environment().load_plan(PlanReference.from_json_string(text))


def test_a_function_without_a_name_is_refused() -> None:
    t_env = environment()
    inline = udf(lambda n: n, result_type="INT")
    pipeline = t_env.from_path("numbers").select(inline(t_env.from_path("numbers").n), 1).insert_into("sums")
    with pytest.raises(SqlError, match="is inline.*create_temporary_function"):
        pipeline.compile_plan()


def test_a_registered_function_is_found_by_its_name() -> None:
    t_env, other = environment(), environment()
    insert = "INSERT INTO sums SELECT half(n), third(n) FROM numbers"
    for env in (t_env, other):
        env.create_temporary_system_function("half", udf(lambda n: n // 2, result_type="INT"))
        env.create_temporary_function("third", udf(lambda n: n // 3, result_type="BIGINT"))
    text = t_env.compile_plan_sql(insert).as_json_string()
    assert other.load_plan(PlanReference.from_json_string(text)).explain() == t_env.compile_plan_sql(insert).explain()
    other.drop_temporary_function("third")
    other.create_temporary_function("third", udf(lambda n: n // 3, result_type="INT"))
    with pytest.raises(SqlError, match=r"function THIRD gives INT, and in the plan THIRD\(n\) is of the type BIGINT"):
        other.load_plan(PlanReference.from_json_string(text))
    other.drop_temporary_function("third")
    with pytest.raises(SqlError, match="calls the function default_catalog.default_database.THIRD, which there is not"):
        other.load_plan(PlanReference.from_json_string(text))


class Twice(ProcessTableFunction):
    """Gives each row twice."""

    arguments = {"events": table_arg(traits={ProcessTableFunctionArgumentTrait.SET_SEMANTIC_TABLE})}
    result_type = "ROW<s STRING>"

    def eval(self, ctx: Any, events: Any) -> Any:
        yield from [(events.s,)] * 2


def test_a_process_table_function_is_found_by_its_name() -> None:
    t_env, other = environment(), environment()
    for env in (t_env, other):
        env.create_temporary_function("Twice", Twice())
    call = "SELECT n, 1 FROM Twice(events => TABLE numbers PARTITION BY n, uid => 'twice')"
    plan = t_env.compile_plan_sql(f"INSERT INTO sums {call}")
    assert '"changes": ["INSERT"]' in plan.as_json_string()
    assert other.load_plan(PlanReference.from_json_string(plan.as_json_string())).explain() == plan.explain()


def test_rows_of_the_program_are_refused() -> None:
    t_env = environment()
    t_env.create_temporary_view("pairs", t_env.from_elements([(1, 2)], ["a", "b"]))
    with pytest.raises(SqlError, match="bound to this program"):
        t_env.compile_plan_sql("INSERT INTO sums SELECT a, b FROM pairs")
    with pytest.raises(SqlError, match="a plan is compiled of INSERT"):
        t_env.compile_plan_sql("SELECT n FROM numbers")
    with pytest.raises(SqlError, match="the statement set is empty"):
        t_env.create_statement_set().compile_plan()
