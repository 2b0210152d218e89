"""Rules of the user's own stand beside the planner's, or in their place, and are told when they are wrong."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path

import pytest

from rayflink.common.errors import ConfigError
from rayflink.table import EnvironmentSettings, PlannerConfig, SqlError, TableEnvironment, planner
from rayflink.table.expressions import col
from rayflink.table.optimizer.phases import NEEDED
from rayflink.table.optimizer.user_rules import MOST_PASSES
from rayflink.table.planner import (
    Call,
    Filter,
    Join,
    Literal,
    Project,
    Relation,
    Scan,
    WatermarkAssigner,
    always,
    call,
    expression,
    literal,
    parts_of,
)
from tests.table.queries.golden_queries import FOLDER, GoldenQuery


@pytest.fixture
def t_env() -> TableEnvironment:
    found = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    found.get_config().set_string("execution.target", "local")
    rows = [(n, f"w{n}") for n in range(1, 7)]
    found.create_temporary_view("t", found.from_elements(rows, ["n", "w"]))
    return found


QUERY = "SELECT w FROM t WHERE ABS(n) > 4"


def plan(t_env: TableEnvironment, query: str) -> str:
    return t_env.explain_sql(query).partition("== Optimized Physical Plan ==\n")[2].partition("\n\n")[0]


def rows(t_env: TableEnvironment, query: str = QUERY) -> list[str]:
    return [row[0] for row in t_env.execute_sql(query).collect()]


def planned(t_env: TableEnvironment, config: PlannerConfig, query: str = QUERY) -> str:
    t_env.get_config().set_planner_config(config)
    return plan(t_env, query)


def positive(relation: Relation) -> Relation:
    """All numbers are: ABS(n) is n."""

    def bare(expr):
        return expr.args[0] if isinstance(expr, Call) and expr.function.name == "ABS" else expr

    return relation.with_exprs(lambda expr: expr.mapped(bare))


def one_less(relation: Relation) -> Relation:
    """n > 4 is n > 3 is n > 2 is n > 1: a pass each."""
    if isinstance(relation, Filter) and isinstance(relation.condition, Call):
        left, right = relation.condition.args
        if isinstance(right, Literal) and right.value > 1:
            return replace(relation, condition=call(">", left, literal(right.value - 1)))
    return relation


@pytest.mark.spec("R08", "own")
@pytest.mark.parametrize("place", [{"phase": phase} for phase in PlannerConfig().rule_names()]
                         + [{}, {"before": "merge_projections_and_filters"}, {"after": "fold_constants"}])  # fmt: skip
def test_a_rule_is_added_anywhere_and_explain_shows_what_it_made(t_env, place):
    assert "where=[ABS(n) > 4]" in plan(t_env, QUERY)
    assert "where=[n > 4]" in planned(t_env, PlannerConfig().add_rule(positive, **place))
    assert rows(t_env) == ["w5", "w6"]


def test_it_is_applied_until_nothing_changes(t_env):
    assert "where=[ABS(n) > 1]" in planned(t_env, PlannerConfig().add_rule(one_less, "normalize"))


def test_rules_of_the_logical_phase_are_applied_again_behind_one_another(t_env):
    """The planner makes the condition one of the join; what the own rule makes of that, it takes down to a side."""

    def split(relation: Relation) -> Relation:
        if isinstance(relation, Join) and "ABS" in str(relation.condition):
            conditions = [one for one in parts_of(relation.condition) if "ABS" not in str(one)]
            return replace(relation, condition=always([*conditions, call(">", relation.column(0), literal(4))]))
        return relation

    query = "SELECT t.w FROM t JOIN (SELECT n AS m FROM t) AS u ON n = m WHERE ABS(n + m) > 8"
    assert "Calc(select=[n, w], where=[n > 4])" in planned(t_env, PlannerConfig().add_rule(split), query)
    assert rows(t_env, query) == ["w5", "w6"]


@pytest.mark.spec("R08", "own", "built-in")
def test_a_rule_is_replaced_and_left_out(t_env):
    def push_filter_into_scan(relation: Relation) -> Relation:
        return relation

    usual = plan(t_env, "SELECT w FROM t")
    assert "project=[w]" in usual
    without = PlannerConfig().remove_rule("push_projection_into_scan")
    assert "project=[w]" not in planned(t_env, without, "SELECT w FROM t")
    replaced = PlannerConfig().replace_rule("push_filter_into_scan", push_filter_into_scan)
    assert replaced.rule_names() == PlannerConfig().rule_names()
    assert "where=[n > 4]" in planned(t_env, PlannerConfig().replace_rule("prune_empty", positive))
    left = PlannerConfig().remove_rule("merge_projections_and_filters").rule_names()
    assert "merge_projections_and_filters" not in [name for names in left.values() for name in names]


def test_the_rules_of_batch_mode_alone_are_distinguished():
    names = PlannerConfig().rule_names(is_batch=False)
    assert "drop_watermarks" not in names["normalize"] and len(names) == 4


def test_the_places_of_rules():
    config = (
        PlannerConfig()
        .add_rule(positive, before="merge_projections_and_filters")
        .add_rule(one_less, after="merge_projections_and_filters")
    )
    names = config.rule_names()
    assert names["logical"][0] == "positive"
    assert names["sources"][-7:-5] == ("one_less", "push_nested_projection_into_scan")
    assert PlannerConfig().rule_names()["logical"][0] == "merge_projections_and_filters"


def raising(relation: Relation) -> Relation:
    raise KeyError("x")


def nothing(relation: Relation) -> Relation:
    return None  # type: ignore[return-value]


def narrower(relation: Relation) -> Relation:
    return Project(relation.schema[:1], relation, (relation.column(0),)) if isinstance(relation, Scan) else relation


def renamed(relation: Relation) -> Relation:
    if not isinstance(relation, Scan) or relation.names[0] == "m":
        return relation
    return replace(relation, schema=(replace(relation.schema[0], name="m"), *relation.schema[1:]))


def retyped(relation: Relation) -> Relation:
    if not isinstance(relation, Scan):
        return relation
    return replace(relation, schema=(replace(relation.schema[0], type=relation.schema[1].type), relation.schema[1]))


def reads_too_far(relation: Relation) -> Relation:
    if not isinstance(relation, Filter):
        return relation
    return replace(relation, condition=call("IS NULL", replace(relation.column(0), index=7)))


def no_condition(relation: Relation) -> Relation:
    return replace(relation, condition=relation.column(0)) if isinstance(relation, Filter) else relation


def back_and_forth(relation: Relation) -> Relation:
    if not isinstance(relation, Filter):
        return relation
    number = 1 if str(relation.condition) == "n > 2" else 2
    return replace(relation, condition=expression(relation, col("n") > number))


def growing(relation: Relation) -> Relation:
    return Filter(relation.schema, relation, always([]))


@pytest.mark.spec("R08", "own")
@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (raising, "'raising' raised KeyError: 'x'"),
        (nothing, "'nothing' gave None, which is no relation"),
        (narrower, "'narrower' gave 1 columns instead of 2"),
        (renamed, "'renamed' gave a column 'm' instead of 'n'"),
        (retyped, "'retyped' gave column 'n' as STRING instead of BIGINT"),
        (reads_too_far, "column 7 of type BIGINT is read, and its inputs have 0 n BIGINT, 1 w STRING"),
        (no_condition, "the condition is of type BIGINT"),
        (back_and_forth, f"'back_and_forth' still changes the plan after {MOST_PASSES} passes"),
        pytest.param(growing, "'growing' made the plan grow to more than", marks=pytest.mark.slow),
    ],
)
def test_a_rule_that_is_wrong_is_reported_by_its_name(t_env, rule, told):
    t_env.get_config().set_planner_config(PlannerConfig().add_rule(rule, "normalize"))
    with pytest.raises(SqlError) as found:
        t_env.execute_sql(QUERY)
    assert told in str(found.value)


def test_a_rule_that_loses_the_time_of_rows_is_reported():
    def without_watermarks(relation: Relation) -> Relation:
        return relation.input if isinstance(relation, WatermarkAssigner) else relation

    t_env = GoldenQuery(FOLDER / "project").environment()
    t_env.get_config().set_planner_config(PlannerConfig().add_rule(without_watermarks))
    with pytest.raises(SqlError, match=r"column 'ts' as TIMESTAMP\(3\) instead of TIMESTAMP\(3\) \*ROWTIME\*"):
        t_env.explain_sql("SELECT * FROM orders")


def test_the_fields_that_are_documented_are_there():
    page = Path(__file__).resolve().parents[3] / "docs" / "planner-rules.md"
    table = page.read_text(encoding="utf-8").partition("| relation |")[2].partition("\n\n")[0]
    documented = [(re.findall(r"`(\w+)`", one), re.findall(r"`(\w+)`", other))
                  for one, other in re.findall(r"^\| (`.*?) \| (.*) \|$", table, re.M)]  # fmt: skip
    assert len(documented) == 11
    for names, found in documented:
        for name in names:
            assert set(found) <= {one.name for one in fields(getattr(planner, name))}, name


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda one: one.add_rule(lambda relation: relation), "a function with a name"),
        (lambda one: one.add_rule(positive).add_rule(positive), "a name that no other rule has"),
        (lambda one: one.add_rule(positive, "late"), "a phase: normalize, logical, physical, sources"),
        (lambda one: one.add_rule(positive, "logical", before="push_filter_down"), "one place"),
        (lambda one: one.add_rule(positive, before="filter_downs"), "did you mean push_filter_down?"),
        (lambda one: one.replace_rule("no_rule", positive), "the name of a rule"),
        (lambda one: one.remove_rule("no_rule"), "the name of a rule"),
        *((lambda one, name=name: one.remove_rule(name), "can be left out") for name in sorted(NEEDED)),
    ],
)
def test_a_change_that_means_nothing_is_reported(made, told):
    with pytest.raises(ConfigError) as found:
        made(PlannerConfig())
    assert told in str(found.value)
