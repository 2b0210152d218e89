"""Settings of an environment: execution config, what a program takes along, and what is refused."""

from __future__ import annotations

import os
import sys
import zipfile

import pytest

from rayflink.common import (
    ConfigError,
    Configuration,
    ExecutionConfig,
    ExecutionMode,
    InputDependencyConstraint,
    PlanError,
)
from rayflink.common.options import registry as options
from rayflink.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment, TimeCharacteristic
from tests.datastream.programs import environment


def test_the_execution_config_writes_the_options_of_its_environment():
    env = environment()
    config = env.get_config()
    config.set_parallelism(3).set_max_parallelism(64).set_auto_watermark_interval(50).set_latency_tracking_interval(-1)
    config.set_task_cancellation_interval(10).set_task_cancellation_timeout(0).enable_object_reuse()
    written = env.get_configuration()
    assert (env.get_parallelism(), env.get_max_parallelism()) == (3, 64)
    assert written.get(options.AUTO_WATERMARK_INTERVAL).to_millis() == config.get_auto_watermark_interval() == 50
    assert written.get(options.LATENCY_INTERVAL).to_millis() == config.get_latency_tracking_interval() == 0
    assert (config.get_task_cancellation_interval(), config.get_task_cancellation_timeout()) == (10, 0)
    assert written.get(options.OBJECT_REUSE) is True
    assert config.disable_object_reuse().is_object_reuse_enabled() is False
    assert config.set_parallelism(ExecutionConfig.PARALLELISM_UNKNOWN).get_parallelism() == 3
    assert config.set_parallelism(ExecutionConfig.PARALLELISM_DEFAULT).get_parallelism() == 1
    assert env.from_collection([1]).get_execution_config() == config == env.get_config()


@pytest.mark.parametrize(
    ("on", "off", "asked"),
    [
        ("enable_auto_generated_uids", "disable_auto_generated_uids", "has_auto_generated_uids_enabled"),
        ("disable_generic_types", "enable_generic_types", "has_generic_types_disabled"),
        ("enable_force_kryo", "disable_force_kryo", "is_force_kryo_enabled"),
        ("enable_force_avro", "disable_force_avro", "is_force_avro_enabled"),
        ("enable_closure_cleaner", "disable_closure_cleaner", "is_closure_cleaner_enabled"),
    ],
)
def test_switches_of_the_execution_config_are_kept(on, off, asked):
    config = ExecutionConfig(Configuration())
    assert getattr(getattr(config, on)(), asked)() is True
    assert getattr(getattr(config, off)(), asked)() is False


def test_what_concerns_the_jvm_is_empty_or_refused():
    config = environment().get_config()
    assert config.get_default_kryo_serializer_classes() == {}
    assert config.get_registered_kryo_types() == config.get_registered_pojo_types() == []
    assert config.set_use_snapshot_compression(True).is_use_snapshot_compression() is True
    assert config.set_execution_mode(ExecutionMode.PIPELINED).get_execution_mode() is ExecutionMode.PIPELINED
    config.set_default_input_dependency_constraint(InputDependencyConstraint.ANY)
    assert config.get_default_input_dependency_constraint() is InputDependencyConstraint.ANY
    with pytest.raises(ConfigError, match="set_runtime_mode"):
        config.set_execution_mode(ExecutionMode.BATCH)
    with pytest.raises(ConfigError, match="input dependency constraint"):
        config.set_default_input_dependency_constraint(InputDependencyConstraint.ALL)


class Region(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.region = runtime_context.get_job_parameter("region", "none")

    def map(self, value):
        return self.region


@pytest.mark.parametrize("given", [{"region": "eu, west"}, {"region": 7, "other": "x:y"}])
def test_global_job_parameters_reach_the_functions(given):
    env = environment()
    env.get_config().set_global_job_parameters(given)
    assert env.get_config().get_global_job_parameters() == {key: str(value) for key, value in given.items()}
    assert list(env.from_collection([1]).map(Region()).execute_and_collect()) == [str(given["region"])]


def test_a_global_job_parameter_may_be_an_option_of_its_own():
    env = StreamExecutionEnvironment({"execution.target": "local", "pipeline.global-job-parameters.region": "asia"})
    assert list(env.from_collection([1]).map(Region()).execute_and_collect()) == ["asia"]


def test_without_generated_uids_every_operator_needs_one():
    env = environment()
    env.get_config().disable_auto_generated_uids()
    source = env.from_collection([1]).uid("numbers")
    assert list(source.execute_and_collect()) == [1]
    source.map(str).uid("text").print()
    with pytest.raises(PlanError, match=r"has no uid.*test_settings.py:\d+"):
        env.execute()


def test_time_characteristics_set_the_watermark_interval():
    env = environment()
    assert env.get_stream_time_characteristic() is TimeCharacteristic.EventTime
    env.set_stream_time_characteristic(TimeCharacteristic.ProcessingTime)
    assert env.get_config().get_auto_watermark_interval() == 0
    env.set_stream_time_characteristic(TimeCharacteristic.IngestionTime)
    assert env.get_config().get_auto_watermark_interval() == 200
    assert env.get_stream_time_characteristic() is TimeCharacteristic.IngestionTime


def test_the_default_local_parallelism_gives_way_to_the_parallelism():
    env = environment()
    env.set_default_local_parallelism(3)
    assert (env.get_parallelism(), env.get_default_local_parallelism()) == (1, 3)  # the environment of tests sets 1
    env = StreamExecutionEnvironment({"execution.target": "local"})
    assert env.get_default_local_parallelism() == 1
    for parallelism in (3, 2):
        env.set_default_local_parallelism(parallelism)
        assert env.get_parallelism() == env.get_default_local_parallelism() == parallelism
    env.set_parallelism(4)
    env.set_default_local_parallelism(8)
    assert (env.get_parallelism(), env.get_default_local_parallelism()) == (4, 8)
    with pytest.raises(ConfigError, match="found 0"):
        env.set_default_local_parallelism(0)
    assert env.is_chaining_of_operators_with_different_max_parallelism_enabled()


@pytest.mark.parametrize(
    ("call", "arguments", "said"),
    [
        ("add_jars", ("file:///a.jar",), "pipeline.jars.*wanted jars of Flink's connectors.*there is no JVM"),
        ("add_classpaths", ("file:///a",), "pipeline.classpaths"),
        ("set_python_requirements", ("/no/such.txt",), "a requirements file that exists"),
        ("set_python_requirements", (os.devnull + "/no",), "a requirements file that exists"),
        ("add_python_archive", ("/no/such.zip",), "an archive that exists"),
        ("add_python_archive", (__file__,), "a zip or tar file"),
        ("set_python_executable", ("/no/such/python",), "an interpreter that exists"),
        ("add_python_file", ("/no/such.py",), "a file or folder that exists"),
        ("add_python_file", (os.devnull,), "a .py file, a folder"),
    ],
)
def test_what_cannot_be_taken_along_is_refused_with_a_remedy(call, arguments, said):
    with pytest.raises(ConfigError, match=said):
        getattr(environment(), call)(*arguments)


def test_the_own_interpreter_is_no_other():
    environment().set_python_executable(sys.executable)


@pytest.mark.parametrize("form", ["file", "folder", "package", "zip"])
def test_python_files_are_imported_by_functions(tmp_path, monkeypatch, form):
    monkeypatch.setattr(sys, "path", list(sys.path))
    name = f"taken_along_as_{form}"
    path = tmp_path / (f"{name}.py" if form in ("file", "folder") else name)
    if form == "package":
        path.mkdir()
        (path / "__init__.py").write_text("def twice(n):\n    return 2 * n\n")
    elif form == "zip":
        path = tmp_path / "modules.zip"
        with zipfile.ZipFile(path, "w") as packed:
            packed.writestr(f"{name}.py", "def twice(n):\n    return 2 * n\n")
    else:
        path.write_text("def twice(n):\n    return 2 * n\n")
    env = environment()
    env.add_python_file(str(tmp_path if form == "folder" else path))
    assert str(tmp_path) in env.get_configuration().get(options.PYTHON_FILES)

    def doubled(number):
        return __import__(name).twice(number)

    assert list(env.from_collection([1, 2]).map(doubled).execute_and_collect()) == [2, 4]
    monkeypatch.delitem(sys.modules, name)
