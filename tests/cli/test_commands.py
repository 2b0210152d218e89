"""The commands: what they print, where, and with which exit code."""

from __future__ import annotations

import json
import os
import re
import sys
from xml.etree import ElementTree

import pytest

from rayflink import launch
from rayflink.actors.commands import JobResult
from rayflink.actors.states import JobStatus
from rayflink.cli.main import main

COUNT = """
import sys
from rayflink.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
numbers = env.from_sequence(1, 4).map(lambda n: n * 10).name("tenfold")
print(env.get_parallelism(), sys.argv[1:], sorted(numbers.execute_and_collect("tens")))
"""
JOB, OTHER = "ab" * 16, "ac" * 16


@pytest.fixture
def script(tmp_path):
    def write(text):
        path = tmp_path / "job.py"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def test_run_gives_the_script_its_options_and_arguments(script, capsys):
    before = list(sys.argv), list(sys.path)
    assert main(["run", script(COUNT), "--local", "-p", "3", "--", "--local", "x"]) == 0
    assert capsys.readouterr().out == "3 ['--local', 'x'] [10, 20, 30, 40]\n"
    assert (sys.argv, sys.path) == before


def test_options_of_the_command_line_win_over_those_of_the_script(script, capsys):
    code = COUNT.replace("environment()", "environment({'parallelism.default': 2, 'execution.target': 'ray'})")
    assert main(["run", script(code), "-D", "execution.target=local", "-D", "parallelism.default=1"]) == 0
    assert capsys.readouterr().out.startswith("1 []")


def test_options_of_a_file_come_first_then_those_of_the_script_then_those_of_the_command_line(script, capsys, tmp_path):
    file = tmp_path / "job.yaml"
    file.write_text("execution.target: local  # here\nparallelism.default: 2\njobmanager.rpc.port: 6123\n")
    with pytest.warns(UserWarning, match="'jobmanager.rpc.port' is no option"):
        assert main(["run", script(COUNT), "--config", str(file)]) == 0
        assert main(["run", script(COUNT), "--config", str(file), "-D", "parallelism.default=4"]) == 0
        code = COUNT.replace("environment()", "environment({'parallelism.default': 3})")
        assert main(["run", script(code), "--config", str(file)]) == 0
    assert [line[0] for line in capsys.readouterr().out.splitlines()] == ["2", "4", "3"]
    assert "RAYFLINK_CONF" not in os.environ


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "option '--config': found .*job.yaml: No such file"),
        ("parallelism:\n  default: 2\n", "line 1: 'parallelism' without a value, wanted one flat"),
        ("parallelism.default: two\n", "'parallelism.default': found 'two'"),
        (b"\xff", "job.yaml: not a text in UTF-8"),
    ],
)
def test_a_file_of_options_that_cannot_be_read_is_wrong_usage(script, capsys, tmp_path, text, said):
    file = tmp_path / "job.yaml"
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert main(["run", script(COUNT), "--local", "--config", str(file)]) == 2
    assert re.search(said, capsys.readouterr().err)


def test_a_failing_function_shows_record_traceback_and_line_but_no_frame_of_ours(script, capsys):
    path = script("""
from rayflink.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()

def divided(n):
    return 1 // n

env.from_collection([1, 0]).map(divided).print()
env.execute()
""")
    assert main(["run", path, "--local"]) == 1
    shown = capsys.readouterr().err
    assert "failed in 'Map', subtask 0: ZeroDivisionError" in shown
    assert f"created at {path}:8 in <module>" in shown
    assert "record: 0\n" in shown
    assert f'File "{path}", line 6, in divided' in shown
    assert "rayflink/" not in shown


def test_a_script_that_raises_shows_its_own_traceback(script, capsys):
    path = script("def inner():\n    raise LookupError('lost')\n\ninner()\n")
    assert main(["run", path]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("Traceback (most recent call last):\n  File \"" + path)
    assert shown.endswith("LookupError: lost\n")
    assert "runpy" not in shown and "rayflink/" not in shown


def test_an_error_of_the_program_names_the_line_that_made_it(script, capsys):
    path = script("""
from rayflink.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment({"parallelism.default": "many"})
""")
    assert main(["run", path]) == 1
    shown = capsys.readouterr().err
    assert "'parallelism.default': found" in shown
    assert f"at {path}:3" in shown
    assert "Traceback" not in shown


@pytest.mark.parametrize(("ending", "code"), [("sys.exit()", 0), ("sys.exit(7)", 7), ("sys.exit('no')", 1)])
def test_the_exit_code_of_the_script_is_ours(script, ending, code):
    assert main(["run", script(f"import sys\n{ending}\n")]) == code


def test_an_interrupted_script_ends_with_130(script, capsys):
    assert main(["run", script("raise KeyboardInterrupt")]) == 130
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.parametrize("command", ["run", "explain"])
def test_a_script_that_is_not_there_is_wrong_usage(command, capsys):
    assert main([command, "nowhere.py"]) == 2
    assert "there is no program 'nowhere.py'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "shown"),
    [
        ("paralelism.default=2", "did you mean parallelism.default?"),
        ("parallelism.default=x", "'parallelism.default': found"),
        ("parallelism.default", "wanted key=value"),
    ],
)
def test_a_wrong_option_is_wrong_usage(script, capsys, option, shown):
    assert main(["run", script(COUNT), "-D", option]) == 2
    assert shown in capsys.readouterr().err


def test_explain_prints_the_plan_and_runs_nothing(script, capsys):
    path = script(COUNT)
    assert main(["explain", path, "-p", "2"]) == 0
    shown = capsys.readouterr()
    assert "Job 'tens': 2 vertices, 3 tasks, 2 slots, EAGER" in shown.out
    assert f"{path}:5 in <module>" in shown.out
    assert shown.err == "2 [] []\n"


def test_explain_prints_flinks_json(script, capsys):
    assert main(["explain", script(COUNT), "--json"]) == 0
    nodes = json.loads(capsys.readouterr().out)["nodes"]
    assert [node["type"] for node in nodes] == ["Source: Sequence Source", "tenfold", "Sink: Collect"]


def test_explain_draws_each_job_of_a_script(script, capsys, tmp_path):
    code = COUNT + "env.from_sequence(1, 2).print()\nenv.execute('second')\n"
    assert main(["explain", script(code), "--svg", str(tmp_path / "plan.svg")]) == 0
    files = [tmp_path / "plan.svg", tmp_path / "plan-2.svg"]
    assert capsys.readouterr().out.split() == list(map(str, files))
    assert [ElementTree.parse(file).getroot().tag for file in files] == ["{http://www.w3.org/2000/svg}svg"] * 2
    assert main(["explain", script(code), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2


def test_explain_shows_the_plans_up_to_where_a_script_needs_results(script, capsys):
    assert main(["explain", script(COUNT + "list(numbers.execute_and_collect())[0]\n")]) == 0
    shown = capsys.readouterr()
    assert shown.out.count("\nJob ") + shown.out.startswith("Job ") == 2
    assert "IndexError" in shown.err
    assert "shown is the plan of its first 2 jobs" in shown.err


def test_explain_of_a_script_without_a_job_fails(script, capsys):
    assert main(["explain", script("x = 1\n")]) == 1
    assert "called no execute()" in capsys.readouterr().err


def described(job_id, name):
    stamps = {"INITIALIZING": 0, "RUNNING": 5_000}
    failures = [{"timestamp": 0, "task": "Map (1/1)", "exception": "boom"}]
    return {
        "jid": job_id, "name": name, "state": "RUNNING", "timestamps": stamps, "vertices": [], "exceptions": failures
    }  # fmt: skip


@pytest.fixture
def cluster(monkeypatch):
    """Two jobs on a cluster that is not there; collects the ids of those that were cancelled."""
    cancelled = []

    class Attached:
        def __init__(self, job_id, configuration):
            self.job_id = job_id

        def cancel(self):
            cancelled.append(self.job_id)

        def wait(self):
            return JobResult(self.job_id, "counts", JobStatus.CANCELED, 10)

    jobs = [described(JOB, "counts"), described(OTHER, "delays")]
    monkeypatch.setattr(launch, "list_jobs", lambda configuration: jobs)
    monkeypatch.setattr(launch, "attach", Attached)
    return cancelled


def test_list_shows_the_jobs(cluster, capsys):
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[2:]] == [
        [JOB, "counts", "RUNNING", "1970-01-01", "00:00:00"],
        [OTHER, "delays", "RUNNING", "1970-01-01", "00:00:00"],
    ]


def test_list_without_jobs_says_so(monkeypatch, capsys):
    monkeypatch.setattr(launch, "list_jobs", lambda configuration: [])
    assert main(["list"]) == 0
    assert capsys.readouterr().out == "no jobs\n"


@pytest.mark.parametrize("wanted", [JOB, "ab", "counts"])
def test_a_job_is_named_by_its_id_the_beginning_of_it_or_its_name(cluster, capsys, wanted):
    assert main(["status", wanted]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"counts  {JOB}  RUNNING\n")
    assert "boom" in shown


def test_cancel_waits_for_the_end(cluster, capsys):
    assert main(["cancel", "counts"]) == 0
    assert cluster == [JOB]
    assert capsys.readouterr().out == f"counts  {JOB}  CANCELED\n"


@pytest.mark.parametrize(("wanted", "message"), [("a", "means 2 jobs; give more of the id"), ("x", "no job 'x'")])
def test_a_job_that_is_not_one_is_an_error_that_lists_those_there_are(cluster, capsys, wanted, message):
    assert main(["cancel", wanted]) == 1
    shown = capsys.readouterr().err
    assert message in shown and JOB in shown and OTHER in shown
    assert not cluster


@pytest.mark.parametrize("command", ["list", "status", "cancel"])
def test_the_help_says_what_becomes_of_a_job_that_has_ended(capsys, command):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert "gone once its driver has the result" in " ".join(capsys.readouterr().out.split())
