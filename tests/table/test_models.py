"""Models: statements, calls of an environment, and queries that predict by them."""

from __future__ import annotations

from collections import Counter

import pytest

from rayflink.common.errors import InvalidTypesError, JobFailed
from rayflink.table import DataTypes, EnvironmentSettings, ModelDescriptor, Schema, SqlError, TableEnvironment
from rayflink.table.catalog.exceptions import ModelAlreadyExistException, ModelNotExistException

MODELS = "tests.table.prediction_models"
WORDS = "(VALUES (1, 'tea'), (2, 'cake'), (3, CAST(NULL AS STRING))) AS v(n, w)"


@pytest.fixture(params=[EnvironmentSettings.in_streaming_mode, EnvironmentSettings.in_batch_mode])
def t_env(request) -> TableEnvironment:
    created = TableEnvironment.create(request.param())
    created.get_config().set("execution.target", "local")
    created.execute_sql(f"CREATE VIEW t AS SELECT * FROM {WORDS}")
    return created


def create(t_env, name, model, outputs="size BIGINT, `first` STRING", more="", kind="MODEL", inputs="word STRING"):
    options = f"'provider' = 'python', 'python.model' = '{MODELS}.{model}'{more}"
    t_env.execute_sql(f"CREATE {kind} {name} INPUT ({inputs}) OUTPUT ({outputs}) WITH ({options})")


def rows(t_env, query):
    return Counter(tuple(row) for row in t_env.execute_sql(query).collect())


@pytest.mark.parametrize(
    "call",
    [
        "ML_PREDICT(TABLE t, MODEL m, DESCRIPTOR(w))",
        "TABLE(ML_PREDICT(TABLE t, MODEL default_catalog.default_database.m, DESCRIPTOR(w)))",
        "ML_PREDICT(ARGS => DESCRIPTOR(w), INPUT => TABLE t, MODEL => MODEL m)",
    ],
)
def test_a_model_predicts_columns_from_columns(t_env, call):
    create(t_env, "m", "lengths")
    assert rows(t_env, f"SELECT * FROM {call}") == Counter(
        [(1, "tea", 3, "t"), (2, "cake", 4, "c"), (3, None, None, None)]
    )
    assert rows(t_env, f"SELECT p.`first` FROM {call} AS p WHERE p.size > 3") == Counter([("c",)])


def test_a_query_calls_its_model_once_for_all_outputs(t_env):
    create(t_env, "m", "lengths")
    plan = t_env.explain_sql("SELECT size, `first`, size + 1 FROM ML_PREDICT(TABLE t, MODEL m, DESCRIPTOR(w))")
    assert plan.partition("== Optimized Execution Plan ==")[2].count("ML_PREDICT m(") == 1


def test_a_class_is_made_of_the_options_and_a_name_that_is_taken_gets_a_number(t_env):
    create(t_env, "m", "Prefixed", "w STRING", ", 'prefix' = '>', 'python.form' = 'pandas'")
    query = "SELECT w0 FROM ML_PREDICT(TABLE t, MODEL m, DESCRIPTOR(w))"
    assert rows(t_env, query) == Counter([(">tea",), (">cake",), (None,)])


def test_an_asynchronous_model_is_awaited_row_by_row(t_env):
    create(t_env, "m", "awaited", "size INT, `first` STRING")
    query = "SELECT n, size, `first` FROM ML_PREDICT(TABLE t, MODEL m, DESCRIPTOR(w))"
    assert rows(t_env, query) == Counter([(1, 3, "t"), (2, 4, "c"), (3, None, "")])


def test_columns_are_cast_to_the_types_of_the_model(t_env):
    create(t_env, "m", "doubled", "d BIGINT", inputs="number BIGINT")
    query = "SELECT n, d FROM ML_PREDICT(TABLE t, MODEL m, DESCRIPTOR(n))"
    assert rows(t_env, query) == Counter([(1, 2), (2, 4), (3, 6)])


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("TABLE t, MODEL m, DESCRIPTOR(w, n)", "DESCRIPTOR has 2 columns, and the model .* takes 1"),
        ("TABLE t, MODEL x, DESCRIPTOR(w)", "there is no model 'default_database.x'"),
        ("TABLE t, MODEL m, DESCRIPTOR(missing)", "there is no column 'missing'"),
        ("TABLE t, MODEL m", "called with no argument ARGS"),
        ("TABLE t, DESCRIPTOR(w), MODEL m", "called with another argument MODEL"),
        ("TABLE t, MODEL m, DESCRIPTOR(w), MAP['async', 'true']", "a map of options"),
        ("TABLE t, MODEL gone, DESCRIPTOR(w)", "cannot be imported"),
        ("TABLE t, MODEL no_call, DESCRIPTOR(w)", "is no function, and no class with a method predict"),
    ],
)
def test_a_call_that_does_not_fit_is_an_error_at_its_place(t_env, call, problem):
    for name, model in (("m", "lengths"), ("gone", "gone"), ("no_call", "not_callable")):
        create(t_env, name, model)
    with pytest.raises(SqlError, match=problem) as raised:
        t_env.sql_query(f"SELECT * FROM ML_PREDICT({call})")
    assert raised.value.place is not None


def test_a_model_without_an_output_column_fails_the_job_and_names_it(t_env):
    create(t_env, "m", "wrong")
    with pytest.raises(JobFailed, match="the model gives no column 'first'"):
        rows(t_env, "SELECT * FROM ML_PREDICT(TABLE t, MODEL m, DESCRIPTOR(w))")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("'task' = 'x'", "has no option 'provider'"),
        ("'provider' = 'openai'", "has the provider 'openai'"),
        ("'provider' = 'python'", "has no 'python.model'"),
        ("'provider' = 'python', 'python.model' = 'lengths'", "'python.model' = 'lengths'"),
        ("'provider' = 'python', 'python.model' = 'a.b', 'python.form' = 'rows'", "'python.form' = 'rows'"),
        ("'provider' = 'python', 'python.modell' = 'a.b'", "did you mean python.model"),
    ],
)
def test_options_are_checked_when_a_model_is_created(t_env, options, problem):
    with pytest.raises(SqlError, match=problem):
        t_env.execute_sql(f"CREATE MODEL m INPUT (a INT) OUTPUT (b INT) WITH ({options})")


def test_models_are_listed_described_changed_and_dropped(t_env):
    create(t_env, "m", "lengths", "size BIGINT, `first` STRING COMMENT 'of all'")
    create(t_env, "IF NOT EXISTS m", "gone")
    create(t_env, "other", "Prefixed", "w STRING", ", 'prefix' = '>'", "TEMPORARY MODEL")
    assert rows(t_env, "SHOW MODELS LIKE 'o%'") == Counter([("other",)]) and t_env.list_models() == ["m", "other"]
    assert list(map(tuple, t_env.execute_sql("DESCRIBE MODEL m").collect())) == [
        ("word", "STRING", True, True), ("size", "BIGINT", True, False), ("first", "STRING", True, False),
    ]  # fmt: skip
    t_env.execute_sql("ALTER MODEL m SET ('python.form' = 'pandas', 'api-key' = 'hidden')")
    t_env.execute_sql("ALTER MODEL m RESET ('python.form')")
    t_env.execute_sql("ALTER MODEL m RENAME TO lengths")
    t_env.execute_sql("ALTER MODEL IF EXISTS m RENAME TO n")
    [(shown,)] = rows(t_env, "SHOW CREATE MODEL lengths")
    assert shown == (
        "CREATE MODEL `default_catalog`.`default_database`.`lengths`\nINPUT (`word` STRING)\n"
        "OUTPUT (`size` BIGINT, `first` STRING COMMENT 'of all')\nWITH (\n  'provider' = 'python',\n"
        f"  'python.model' = '{MODELS}.lengths',\n  'api-key' = '******'\n)"
    )
    with pytest.raises(SqlError, match="there is no model"):
        t_env.execute_sql("DROP MODEL m")
    for statement in ("DROP MODEL IF EXISTS m", "DROP TEMPORARY MODEL other", "DROP MODEL lengths"):
        t_env.execute_sql(statement)
    assert t_env.list_models() == []


def test_models_are_created_by_descriptors(t_env):
    schema = Schema.new_builder().column("word", DataTypes.STRING()).build()
    outputs = Schema.new_builder().column("size", DataTypes.BIGINT()).column("first", DataTypes.STRING()).build()
    with pytest.raises(InvalidTypesError, match="without output_schema"):
        ModelDescriptor.for_provider("python").input_schema(schema).build()
    builder = ModelDescriptor.for_provider("python").input_schema(schema).output_schema(outputs).comment("lengths")
    descriptor = builder.option("python.model", f"{MODELS}.lengths").build()
    assert (descriptor.get_comment(), descriptor.get_input_schema()) == ("lengths", schema)
    t_env.create_model("m", descriptor)
    t_env.create_temporary_model("m", descriptor)
    with pytest.raises(ModelAlreadyExistException):
        t_env.create_temporary_model("m", descriptor)
    t_env.create_model("m", descriptor, True)
    assert (t_env.list_models(), t_env.list_temporary_models()) == (["m"], ["m"])
    assert rows(t_env, "SELECT size FROM ML_PREDICT(TABLE t, MODEL m, DESCRIPTOR(w))")[(4,)] == 1
    assert (t_env.drop_temporary_model("m"), t_env.drop_model("m"), t_env.drop_model("m")) == (True, True, False)
    with pytest.raises(ModelNotExistException):
        t_env.drop_model("m", False)
