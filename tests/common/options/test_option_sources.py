"""Where options come from, and which wins: file, environment, command line, program."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import pytest

from rayflink.common.configuration import Configuration
from rayflink.common.errors import ConfigError
from rayflink.common.options.option_sources import as_words, given_options
from rayflink.datastream import StreamExecutionEnvironment

SOURCES = ("file", "environment", "command line", "program")
KEY = "pipeline.name"


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("RAYFLINK_CONF", "RAYFLINK_CONF_DIR", "RAYFLINK_OPTIONS", "RAYFLINK_COMMAND_LINE"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.mark.parametrize(("weaker", "stronger"), list(combinations(SOURCES, 2)))
def test_of_two_sources_the_later_wins(
    weaker: str, stronger: str, tmp_path: Path, variables: pytest.MonkeyPatch
) -> None:
    def named_by(*sources: str) -> str | None:
        file = tmp_path / "job.yaml"
        file.write_text(f"pipeline:\n  name: {'file' if 'file' in sources else 'nobody'}\n", encoding="utf-8")
        given = {source: as_words({KEY: source}) if source in sources else "" for source in SOURCES}
        if "file" in sources:
            variables.setenv("RAYFLINK_CONF", str(file))
        else:
            variables.delenv("RAYFLINK_CONF", raising=False)
        variables.setenv("RAYFLINK_OPTIONS", given["environment"])
        variables.setenv("RAYFLINK_COMMAND_LINE", given["command line"])
        program = {KEY: "program"} if "program" in sources else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            env = StreamExecutionEnvironment.get_execution_environment(program)
        return env.get_configuration().get_string(KEY)

    assert named_by(weaker) == weaker
    assert named_by(stronger) == stronger
    assert named_by(weaker, stronger) == stronger


def test_what_the_program_sets_later_wins_over_all(variables: pytest.MonkeyPatch) -> None:
    variables.setenv("RAYFLINK_COMMAND_LINE", "parallelism.default=4")
    assert StreamExecutionEnvironment.get_execution_environment().set_parallelism(2).get_parallelism() == 2


def test_a_program_that_overrides_the_command_line_is_warned_of_with_its_line(variables: pytest.MonkeyPatch) -> None:
    variables.setenv("RAYFLINK_COMMAND_LINE", "parallelism.default=4 pipeline.name=x")
    said = rf"'parallelism.default' is 2, as the program sets \({__file__}:\d+\), not 4: the program wins over the com"
    with pytest.warns(UserWarning, match=said) as caught:
        StreamExecutionEnvironment.get_execution_environment({"parallelism.default": 2, "pipeline.name": "x"})
    assert len(caught) == 1 and "pipeline.name" not in str(caught[0].message)
    variables.delenv("RAYFLINK_COMMAND_LINE")
    variables.setenv("RAYFLINK_OPTIONS", "parallelism.default=4")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        StreamExecutionEnvironment.get_execution_environment({"parallelism.default": 2})


def given(**variables: str) -> Mapping[str, str]:
    return given_options(variables).to_dict()


def test_a_folder_holds_our_file_or_flinks(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'RAYFLINK_CONF_DIR': found .* wanted rayflink.yaml or config.yaml"):
        given(RAYFLINK_CONF_DIR=str(tmp_path))
    (tmp_path / "config.yaml").write_text("parallelism:\n  default: 3\n", encoding="utf-8")
    assert given(RAYFLINK_CONF_DIR=str(tmp_path)) == {"parallelism.default": "3"}
    (tmp_path / "rayflink.yaml").write_text("parallelism.default: 4\n", encoding="utf-8")
    assert given(RAYFLINK_CONF_DIR=str(tmp_path)) == {"parallelism.default": "4"}
    named = tmp_path / "named.yaml"
    named.write_text("parallelism.default: 5\n", encoding="utf-8")
    assert given(RAYFLINK_CONF_DIR=str(tmp_path), RAYFLINK_CONF=str(named)) == {"parallelism.default": "5"}


def test_a_variable_holds_words_as_a_shell_reads_them() -> None:
    wanted = {"execution.buffer-timeout.interval": "10 ms", "pipeline.name": 'it\'s "a" = b', "io.tmp.dirs": "a;b"}
    assert given(RAYFLINK_OPTIONS=as_words(wanted)) == wanted
    assert given(RAYFLINK_OPTIONS="a=1\n b='2 3'") == {"a": "1", "b": "2 3"}


@pytest.mark.parametrize("text", ["a", "=1", "a=1 'b", "a=1 b"])
def test_a_variable_without_words_of_that_form_is_refused_by_its_name(text: str) -> None:
    wanted = "environment variable 'RAYFLINK_OPTIONS': found .*key=value words; write for example"
    with pytest.raises(ConfigError, match=wanted):
        given(RAYFLINK_OPTIONS=text)


def test_an_option_knows_where_it_comes_from(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("a: 1\nb: 1\nc: 1\n", encoding="utf-8")
    variables = {"RAYFLINK_CONF": str(file), "RAYFLINK_OPTIONS": "b=2 c=2", "RAYFLINK_COMMAND_LINE": "c=3"}
    config: Configuration = given_options(variables)
    assert [config.origin(key) for key in "abc"] == [f"{file}:1", "$RAYFLINK_OPTIONS", "command line"]


def test_a_wrong_value_of_a_variable_is_told_with_the_variable(variables: pytest.MonkeyPatch) -> None:
    variables.setenv("RAYFLINK_OPTIONS", "parallelism.default=two")
    with pytest.raises(ConfigError, match=r"'parallelism.default' \(\$RAYFLINK_OPTIONS\): found 'two', wanted int"):
        StreamExecutionEnvironment.get_execution_environment()
