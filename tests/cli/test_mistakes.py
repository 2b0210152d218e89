"""What `rayflink run` and `explain` say of mistakes in a program and on the command line."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

from rayflink.cli.main import main

HEAD = """from rayflink.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
numbers = env.from_sequence(1, 2)
"""


@pytest.fixture
def script(tmp_path: Path) -> Any:
    def write(text: str) -> str:
        path = tmp_path / "job.py"
        path.write_text(HEAD + text, encoding="utf-8")
        return str(path)

    return write


def run(path: str, *arguments: str) -> int:
    return main(["run", path, "--local", *arguments])


def test_a_program_that_never_executes_its_steps_is_told_so(script: Any, capsys: Any) -> None:
    path = script("numbers.map(str)\nnumbers.print()\n")
    assert run(path) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"rayflink: {path} defined steps (the first at {path}:4 in <module>) but never called exec")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    "text", ["", "numbers.print()\nprint(env.get_execution_plan())\n", "numbers.print()\nenv.execute()\n"]
)
def test_a_program_without_steps_or_with_a_plan_is_not(script: Any, text: str, capsys: Any) -> None:
    assert run(script(text)) == 0
    assert capsys.readouterr().err == ""


def test_a_program_that_failed_is_told_that_alone(script: Any, capsys: Any) -> None:
    assert run(script("numbers.print()\nraise ValueError('mine')\n")) == 1
    assert "execute" not in capsys.readouterr().err


def test_an_empty_program_is_refused(script: Any, capsys: Any) -> None:
    assert run(script("env.execute()\n")) == 1
    assert "No operators defined in streaming topology" in capsys.readouterr().err


def test_a_function_of_the_wrong_kind_is_told_in_one_line(script: Any, capsys: Any) -> None:
    path = script("numbers.map(lambda a, b: a)\n")
    assert run(path) == 1
    told = "map wants a function of 1 argument, found one of 2: <lambda>(a, b); give it 1 argument"
    assert capsys.readouterr().err == f"rayflink: {told} (at {path}:4 in <module>)\n"


def test_other_errors_show_the_frames_of_the_program_alone(script: Any, capsys: Any) -> None:
    assert run(script("def sink():\n    numbers.sink_to(3)\nsink()\n")) == 1
    said = capsys.readouterr().err
    assert said.count("  File ") == said.count("job.py") == 2
    assert said.endswith("TypeError: sink_to needs a Sink, found int; use add_sink for a function\n")


def test_a_drawing_that_cannot_be_written_names_its_file_and_the_remedy(script: Any, capsys: Any) -> None:
    path = script("numbers.print()\nenv.execute()\n")
    assert main(["explain", path, "--svg", "/nope/g.svg"]) == 2
    told = "cannot write /nope/g.svg: No such file or directory; give --svg a file in a folder that exists"
    assert capsys.readouterr().err.startswith(f"rayflink: {told}")


def test_a_misspelled_option_is_warned_of_at_its_line(script: Any, tmp_path: Path) -> None:
    file = tmp_path / "options.yaml"
    file.write_text("# options\nparalelism: 3\n", encoding="utf-8")
    misspelled = "env.get_configuration().set_string('restart-stratgy.type', 'none')\n"
    path = script(f"{misspelled}numbers.print()\nenv.execute()\n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert run(path, "--config", str(file)) == 0
    [warning] = caught
    assert (warning.filename, warning.lineno) == (path, 6)
    assert f"'paralelism' ({file}:2) is no option; did you mean 'parallelism.default'?" in str(warning.message)
    told = f"'restart-stratgy.type' ({path}:4) is no option; did you mean 'restart-strategy.type'?"
    assert told in str(warning.message)


def test_a_misspelled_option_of_the_command_line_is_refused_with_its_neighbour(script: Any, capsys: Any) -> None:
    assert run(script(""), "-D", "paralelism=3") == 2
    assert "did you mean parallelism.default?" in capsys.readouterr().err


def test_what_cannot_be_sent_names_its_step_and_not_the_line_of_execute(script: Any, capsys: Any) -> None:
    closure = "import threading\ndef made():\n    lock = threading.Lock()\n    return lambda n: lock and n\n"
    path = script(f"{closure}numbers.map(made()).print()\nenv.execute()\n")
    assert run(path) == 1
    said = capsys.readouterr().err
    assert "could not serialize function <lambda>" in said and f"(at {path}:8 in <module>)" in said
    assert f"{path}:9" not in said


def test_a_source_function_with_arguments_is_told_with_the_step_it_was_given_to(script: Any, capsys: Any) -> None:
    assert run(script("env.add_source(lambda n: [n]).print()\n")) == 1
    assert capsys.readouterr().err.startswith("rayflink: add_source wants a function of 0 arguments")
    text = "from rayflink.datastream.connectors import IteratorSource\nenv.from_source(IteratorSource(lambda n: [n]))\n"
    assert run(script(text)) == 1
    assert capsys.readouterr().err.startswith("rayflink: IteratorSource wants a function of 0 arguments")


def test_an_option_of_the_program_without_effect_is_warned_of_with_its_line(script: Any) -> None:
    path = script("env.configure({'pipeline.force-kryo': True})\nnumbers.print()\nenv.execute()\n")
    with pytest.warns(UserWarning, match=rf"'pipeline.force-kryo' \({path}:4\) has no effect"):
        assert run(path) == 0


def test_a_program_that_does_not_compile_shows_its_line_alone(script: Any, capsys: Any) -> None:
    path = script("numbers.map(lambda n: n +).print()\n")
    assert run(path) == 1
    said = capsys.readouterr().err
    assert f'File "{path}", line 4' in said and "SyntaxError" in said
    assert said.count("  File ") == 1


def test_modules_that_import_each_other_are_told_as_python_does(script: Any, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "first_of_two.py").write_text("from second_of_two import g\ndef f(n): return n\n", encoding="utf-8")
    (tmp_path / "second_of_two.py").write_text("from first_of_two import f\ndef g(n): return n\n", encoding="utf-8")
    assert run(script("from first_of_two import f\n")) == 1
    said = capsys.readouterr().err
    assert said.count("  File ") == 3 and "rayflink" not in said.replace(str(tmp_path), "")
    assert "cannot import name 'f' from partially initialized module 'first_of_two'" in said


@pytest.mark.parametrize(
    "text, told",
    [
        ("a: [1, 2\nb: {", "line 2: "),
        ("only words\n", "line 1: 'only words'"),
        ("- 1\n", "line 1: a list"),
        ("parallelism.default: three\n", "found 'three', wanted int"),
    ],
)
def test_a_file_of_options_that_is_none_is_refused_with_its_line(
    script: Any, tmp_path: Path, text: str, told: str, capsys: Any
) -> None:
    file = tmp_path / "options.yaml"
    file.write_text(text, encoding="utf-8")
    assert run(script("numbers.print()\nenv.execute()\n"), "--config", str(file)) == 2
    said = capsys.readouterr().err
    assert str(file) in said and told in said and said.count("\n") == 1


def test_a_program_that_only_explains_a_query_has_forgotten_nothing(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "plan.py"
    path.write_text(
        "from rayflink.table import EnvironmentSettings, TableEnvironment\n"
        "t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())\n"
        "t_env.execute_sql('EXPLAIN SELECT 1 AS n').print()\n"
    )
    assert main(["run", "--local", str(path)]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("== Abstract") and not said.err
