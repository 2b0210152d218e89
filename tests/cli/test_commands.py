"""The commands: what they print, where, and with which exit code."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import zipfile
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

import rayflink
from rayflink import launch
from rayflink.actors.messages.commands import JobResult
from rayflink.actors.messages.states import JobStatus
from rayflink.actors.on_ray.task_log import LogLine
from rayflink.cli.background import Background, BackgroundServer
from rayflink.cli.main import main
from rayflink.common.errors import JobCancelled, TaskLost
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.launch import local_job

COUNT = """
import sys
from rayflink.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
numbers = env.from_sequence(1, 4).map(lambda n: n * 10).name("tenfold")
print(env.get_parallelism(), sys.argv[1:], sorted(numbers.execute_and_collect("tens")))
"""
JOB, OTHER, OLD, KILLED = "ab" * 16, "ac" * 16, "0d" * 16, "1e" * 16


VERTEX = {"id": "v", "name": "Map", "parallelism": 2, "states": {"RUNNING": 2}, "numRecordsIn": 0, "numRecordsOut": 0,
          "currentInputWatermark": None, "subtasks": []}  # fmt: skip


@pytest.fixture
def script(tmp_path):
    def write(text):
        path = tmp_path / "job.py"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


@pytest.mark.spec("H64", "parallelism")
def test_run_gives_the_script_its_options_and_arguments(script, capsys):
    before = list(sys.argv), list(sys.path)
    assert main(["run", script(COUNT), "--local", "-p", "3", "--", "--local", "x"]) == 0
    assert capsys.readouterr().out == "3 ['--local', 'x'] [10, 20, 30, 40]\n"
    assert (sys.argv, sys.path) == before


TAKES = """
from pathlib import Path
from rayflink.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()

def computed(n):
    import added_by_a_flag

    return n * added_by_a_flag.TEN + int(Path("unpacked/number.txt").read_text())

print(list(env.from_collection([1, 2]).map(computed).execute_and_collect()))
"""


def test_modules_archives_and_requirements_are_named_by_flinks_flags(script, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "added_by_a_flag.py").write_text("TEN = 10\n")
    (tmp_path / "requirements.txt").write_text("numpy>=1\n")
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as packed:
        packed.writestr("number.txt", "3")
    flags = ["-pyfs", "lib/added_by_a_flag.py", "-pyarch", "data.zip#unpacked", "-pyreq", "requirements.txt"]
    assert main(["run", script(TAKES), "--local", *flags, "-pyexec", sys.executable]) == 0
    assert capsys.readouterr().out == "[13, 23]\n"


def test_a_program_imports_the_modules_of_its_command_line_at_its_top(script, capsys, tmp_path):
    module = tmp_path / "lib" / "at_the_top.py"
    module.parent.mkdir()
    module.write_text("TEN = 10\n")
    before = list(sys.path)
    assert main(["run", script("import at_the_top\nprint(at_the_top.TEN)"), "-pyfs", str(module)]) == 0
    assert capsys.readouterr().out == "10\n" and sys.path == before
    assert main(["run", script("print(1)"), "-pyfs", "gone.py"]) == 1
    assert "found gone.py, wanted a file or folder that exists" in capsys.readouterr().err


def test_the_script_wins_over_the_command_line_and_it_is_said_where(script, capsys):
    path = script(COUNT.replace("environment()", "environment({'parallelism.default': 2})"))
    told = rf"'parallelism.default' is 2, as the program sets \({path}:4\), not 1: the program wins over"
    with pytest.warns(UserWarning, match=told):
        assert main(["run", path, "--local", "-p", "1"]) == 0
    assert capsys.readouterr().out.startswith("2 []")


def test_options_of_a_file_come_first_then_the_command_line_then_the_script(script, capsys, tmp_path):
    file = tmp_path / "job.yaml"
    file.write_text("execution:\n  target: local  # here\nparallelism.default: 2\njobmanager.rpc.port: 6123\n")
    with pytest.warns(UserWarning, match=rf"'jobmanager.rpc.port' \({file}:4\) is no option"):
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
        ("parallelism\n", "job.yaml': found line 1: 'parallelism', wanted `key: value`"),
        ("parallelism.default: two\n", "'parallelism.default' \\(.*job.yaml:1\\): found 'two'"),
        (b"\xff", "job.yaml': found not UTF-8"),
    ],
)
def test_a_file_of_options_that_cannot_be_read_is_wrong_usage(script, capsys, tmp_path, text, said):
    file = tmp_path / "job.yaml"
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert main(["run", script(COUNT), "--local", "--config", str(file)]) == 2
    assert re.search(said, capsys.readouterr().err)


MODULE = "import sys\nprint(__name__, __spec__.name, sys.argv[1:], sys.argv[0].endswith('.py'))\n"


@pytest.mark.spec("S17", "class", "V27", "class")
def test_a_module_is_run_as_python_does(tmp_path, capsys, monkeypatch):
    package = tmp_path / "jobs_of_test"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "count.py").write_text(MODULE)
    (package / "__main__.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    assert main(["run", "-m", "jobs_of_test.count", "a", "--", "-b"]) == 0
    assert main(["run", "-m", "jobs_of_test"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "__main__ jobs_of_test.count ['a', '-b'] True",
        "__main__ jobs_of_test.__main__ [] True",
    ]
    (package / "count.py").write_text(COUNT)
    assert main(["run", "--local", "-p", "2", "-m", "jobs_of_test.count"]) == 0
    assert main(["explain", "-m", "jobs_of_test.count", "x"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("2 [] [10, 20, 30, 40]\nJob 'tens'") and said.err == "1 ['x'] []\n"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nowhere_at_all", "there is no module 'nowhere_at_all'"),
        ("nowhere_at_all.inner", "there is no module 'nowhere_at_all.inner': No module named 'nowhere_at_all'"),
        ("xml.etree", "'xml.etree' is a package without __main__.py"),
    ],
)
@pytest.mark.parametrize("command", ["run", "explain"])
def test_a_module_that_is_not_there_is_wrong_usage(command, name, said, capsys):
    assert main([command, "-m", name]) == 2
    assert said in capsys.readouterr().err


def test_no_program_is_wrong_usage(capsys):
    assert main(["run", "--local"]) == 2
    assert capsys.readouterr().err.startswith("rayflink: the program is missing; give the path")


def test_a_local_job_cannot_be_detached(script, capsys):
    path = script(COUNT.replace("print(", "numbers.print()\nenv.execute('n')\nprint("))
    assert main(["run", path, "--local", "--detached"]) == 1
    assert "cannot go on without this program: execution.target is local" in capsys.readouterr().err


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
    assert shown.startswith('Traceback (most recent call last):\n  File "' + path)
    assert shown.endswith("LookupError: lost\n")
    assert "runpy" not in shown and "rayflink/" not in shown


def test_an_error_of_the_program_names_the_line_that_made_it(script, capsys):
    path = script("""
from rayflink.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment({"parallelism.default": "many"})
""")
    assert main(["run", path]) == 1
    shown = capsys.readouterr().err
    assert f"'parallelism.default' ({path}:3): found 'many'" in shown
    assert f"option 'parallelism.default' ({path}:3): found 'many'" in shown
    assert "Traceback" not in shown


@pytest.mark.parametrize(("ending", "code"), [("sys.exit()", 0), ("sys.exit(7)", 7), ("sys.exit('no')", 1)])
def test_the_exit_code_of_the_script_is_ours(script, ending, code):
    assert main(["run", script(f"import sys\n{ending}\n")]) == code


def test_an_interrupted_script_ends_with_130(script, capsys):
    assert main(["run", script("raise KeyboardInterrupt")]) == 130
    assert capsys.readouterr().err == "interrupted\n"
    assert main(["run", script("import rayflink.common.errors as e\nraise e.DriverEnded('ab' * 16, 'SIGINT')")]) == 130
    assert "goes on without its driver, which was ended by SIGINT" in capsys.readouterr().err


RETURNS = threading.Event()


def stuck(number):
    os.kill(os.getpid(), signal.SIGINT)
    assert RETURNS.wait(20)
    return number


def test_ctrl_c_names_the_function_that_does_not_return(monkeypatch):
    said = []
    monkeypatch.setattr(local_job, "STILL_RUNS_S", 0.01)
    monkeypatch.setattr(local_job, "print", lambda text, **how: (said.append(text), RETURNS.set()), raising=False)
    env = StreamExecutionEnvironment({"execution.target": "local"})
    env.from_collection([1]).map(stuck).name("stuck").print()
    with pytest.raises(JobCancelled):
        env.execute()
    (text,) = said
    assert text.startswith(f"the job ends when 'stuck' returns ({__file__}:")
    assert text.endswith(" in stuck); another Ctrl-C interrupts that")


@pytest.mark.parametrize("command", ["run", "explain"])
def test_a_script_that_is_not_there_is_wrong_usage(command, capsys):
    assert main([command, "nowhere.py"]) == 2
    assert "there is no program 'nowhere.py'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "shown"),
    [
        ("paralelism.default=2", "did you mean parallelism.default?"),
        ("parallelism.default=x", "'parallelism.default' (command line): found 'x'"),
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
    assert "this is the plan of its first 2 jobs" in shown.err


def test_explain_of_a_script_without_a_job_fails(script, capsys):
    assert main(["explain", script("x = 1\n")]) == 1
    assert "called no execute()" in capsys.readouterr().err


def described(job_id, name, state="RUNNING"):
    stamps = {"INITIALIZING": 0, "RUNNING": 5_000}
    failures = [{"timestamp": 0, "task": "Map (1/1)", "exception": "boom"}]
    return {
        "jid": job_id, "name": name, "state": state, "timestamps": stamps, "vertices": [VERTEX], "exceptions": failures
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

        def stop(self):
            cancelled.append(f"not {self.job_id}")

        def wait(self, on_progress=None):
            how = JobStatus.FINISHED if "not" in cancelled[0] else JobStatus.CANCELED
            return JobResult(self.job_id, "counts", how, 10)

    jobs = [described(JOB, "counts"), described(OTHER, "delays")]
    ended = [described(OLD, "counts", "FAILED"), described(KILLED, "killed"), described(JOB, "counts")]
    lines = [
        LogLine(1_000, "out", "Map", 0, "one", "default-0"),
        LogLine(1_500, "err", "Map", 1, "two", "default-1"),
        LogLine(62_000, "log", "", -1, "INFO three", "coordinator"),
    ]
    logs = {JOB: [lines, []], OLD: [lines[:1], []]}

    class Log:
        def __init__(self, job_id, configuration):
            self.read = lambda: logs[job_id].pop(0)

    monkeypatch.setattr(launch, "published_jobs", lambda configuration: None)
    monkeypatch.setattr(launch, "list_jobs", lambda configuration: jobs)
    monkeypatch.setattr(launch, "recorded_jobs", lambda configuration: ended)
    monkeypatch.setattr(launch, "attach", Attached)
    monkeypatch.setattr(launch, "job_log", Log)
    return cancelled


def test_list_shows_the_jobs(cluster, capsys):
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[2:]] == [
        [JOB, "counts", "RUNNING", "1970-01-01", "00:00:05", "1970-01-01", "00:00:00"],
        [OTHER, "delays", "RUNNING", "1970-01-01", "00:00:05", "1970-01-01", "00:00:00"],
    ]


def test_list_and_status_say_what_a_job_without_slots_waits_for(cluster, monkeypatch, capsys):
    reason = "waiting for 2 slots of 1 CPU; the cluster has 1 CPUs, 0 of them free"
    waiting = {**described(JOB, "counts", "CREATED"), "waiting": reason}
    monkeypatch.setattr(launch, "list_jobs", lambda configuration: [waiting, described(OTHER, "delays")])
    assert main(["list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert "  CREATED, WAITING FOR SLOTS  " in listed[2] and "  RUNNING  " in listed[3]
    assert listed[4:] == [f"counts ({JOB[:8]}): {reason}"]
    assert main(["status", JOB]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[:2] == [f"counts  {JOB}  CREATED, WAITING FOR SLOTS  since 1970-01-01 00:00:05 UTC", reason]


def test_list_all_shows_those_that_ended_too(cluster, capsys):
    assert main(["list", "-a"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines[2:]] == [
        [JOB, "counts", "RUNNING"],
        [OTHER, "delays", "RUNNING"],
        [KILLED, "killed", "LOST"],
        [OLD, "counts", "FAILED"],
    ]


def test_list_without_jobs_says_so(monkeypatch, capsys):
    monkeypatch.setattr(launch, "published_jobs", lambda configuration: None)
    monkeypatch.setattr(launch, "list_jobs", lambda configuration: [])
    assert main(["list"]) == 0
    said = capsys.readouterr()
    assert said.out == "no jobs\n"
    assert said.err.startswith("rayflink: `rayflink list -a` lists jobs that have ended; ")
    assert "`ray start --head`" in said.err and "starts a Ray of its own, which other terminals cannot see" in said.err


def test_list_without_jobs_leads_to_the_session_cluster_that_was_started_here(monkeypatch, capsys):
    monkeypatch.setattr(launch, "published_jobs", lambda configuration: [])
    session = BackgroundServer(0, "", "http://127.0.0.1:8099", "")
    monkeypatch.setattr(Background, "running", lambda background: session)
    assert main(["list", "-a", "-D", "execution.target=ray"]) == 0
    assert "http://127.0.0.1:8099, which was started here, is asked with `-D execution" in capsys.readouterr().err


def test_a_log_without_lines_says_so_and_where_failures_are(cluster, monkeypatch, capsys):
    monkeypatch.setattr(launch, "job_log", lambda job_id, configuration: SimpleNamespace(read=list))
    assert main(["logs", "delays"]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "job 'delays' has written no such lines; `rayflink status delays` shows failures" in said.err


def test_sigterm_ends_the_following_of_a_log_without_a_word(cluster, monkeypatch, capsys):
    class Log:
        def __init__(self, job_id, configuration):
            self.read = lambda: os.kill(os.getpid(), signal.SIGTERM) or []

    monkeypatch.setattr(launch, "job_log", Log)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended:
        main(["logs", JOB, "--follow"])
    assert ended.value.code == 143 and signal.getsignal(signal.SIGTERM) == before
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("command", "told"), [("run", True), ("explain", True), ("list", False)])
def test_arguments_of_the_program_with_a_dash_are_told_where_to_stand(script, capsys, command, told):
    with pytest.raises(SystemExit):
        main([command, *([script("x = 1\n")] if told else []), "-x"])
    said = capsys.readouterr().err
    assert "unrecognized arguments: -x" in said and ("put -- before arguments of the program" in said) == told


@pytest.mark.parametrize("wanted", [JOB, "ab", "counts"])
def test_a_job_is_named_by_its_id_the_beginning_of_it_or_its_name(cluster, capsys, wanted):
    assert main(["status", wanted]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"counts  {JOB}  RUNNING  since 1970-01-01 00:00:05 UTC\n")
    assert "boom" in shown


def test_status_names_the_split_that_holds_back_the_watermark(cluster, capsys, monkeypatch):
    job = described(JOB, "counts")
    marks = {f"split.{name}.watermark.currentWatermark": at for name, at in (("a", 1_000), ("b", 31_000))}
    operator = {
        "id": "o", "name": "in", "numRecordsIn": 0, "numRecordsOut": 0, "currentInputWatermark": None, "metrics": marks,
    }  # fmt: skip
    report = {"subtask": 0, "attempt": 0, "state": "RUNNING", "timestamps": {}, "metrics": {"operators": [operator]}}
    job["vertices"] = [{**job["vertices"][0], "subtasks": [report]}]
    monkeypatch.setattr(launch, "list_jobs", lambda configuration: [job])
    assert main(["status", JOB]) == 0
    told = "watermark held back by split 'a' of 'in' (subtask 0) at 1970-01-01 00:00:01, 30.0 s behind the others\n"
    assert told in capsys.readouterr().out


def test_status_shows_a_job_that_has_ended(cluster, capsys):
    assert main(["status", "0d"]) == 0
    assert capsys.readouterr().out.startswith(f"counts  {OLD}  FAILED  since ")


def test_stop_lets_the_sources_end(cluster, capsys):
    assert main(["stop", "counts", "--no-savepoint"]) == 0
    assert cluster == [f"not {JOB}"]
    assert capsys.readouterr().out == f"counts  {JOB}  FINISHED\n"


def test_cancel_names_the_functions_that_it_waits_for(cluster, capsys, monkeypatch):
    monkeypatch.setattr("rayflink.cli.jobs.TELL_EVERY_S", 0)
    stalled = {"stalled": {"operator": "split", "at": "job.py:12 in words", "ms": 62_000}}
    report = {"subtask": 0, "attempt": 0, "state": "CANCELING", "timestamps": {}, "metrics": stalled}
    vertices = [{**VERTEX, "name": "Split", "parallelism": 1, "subtasks": [report]}]

    def wait(self, on_progress):
        on_progress({"vertices": vertices})
        on_progress({"vertices": vertices, "note": "waits for its tasks to end"})
        return JobResult(self.job_id, "counts", JobStatus.CANCELED, 10)

    monkeypatch.setattr(launch.attach, "wait", wait)
    assert main(["cancel", "counts"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "rayflink: 'split' in Split (1/1) has not returned for 62 s: job.py:12 in words",
        "rayflink: waits for its tasks to end",
    ]


def test_cancel_after_which_the_driver_needs_no_coordinator_says_how_the_job_ended(cluster, capsys, monkeypatch):
    def gone(self, on_progress):
        raise TaskLost("coordinator", "its node", 1, "killed")

    monkeypatch.setattr(launch.attach, "wait", gone)
    with_end = [described(JOB, "counts", "CANCELED")]
    monkeypatch.setattr(launch, "recorded_jobs", lambda configuration: with_end)
    assert main(["cancel", "counts"]) == 0
    assert capsys.readouterr().out == f"counts  {JOB}  CANCELED\n"
    with_end[0] = described(JOB, "counts", "CANCELLING")
    assert main(["cancel", "counts"]) == 1
    assert "lost" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        ([], ["00:00:01.000 out Map (1/2): one", "00:00:01.500 err Map (2/2): two",
              "00:01:02.000 log coordinator: INFO three"]),
        (["--vertex", "ma"], ["00:00:01.000 out Map (1/2): one", "00:00:01.500 err Map (2/2): two"]),
        (["--subtask", "1"], ["00:00:01.500 err Map (2/2): two"]),
        (["--vertex", "Map", "--subtask", "7"], []),
        (["--level", "info"], ["00:01:02.000 log coordinator: INFO three"]),
        (["--level", "WARNING"], []),
    ],
)  # fmt: skip
def test_logs_shows_lines_with_their_task(cluster, capsys, given, lines):
    assert main(["logs", "counts", *given]) == 0
    assert capsys.readouterr().out.splitlines() == lines


def test_logs_follows_until_the_job_has_ended(cluster, capsys, monkeypatch):
    asked = []

    def jobs(configuration):
        asked.append(None)
        return [described(JOB, "counts", "RUNNING" if len(asked) < 3 else "FINISHED")]

    monkeypatch.setattr(launch, "list_jobs", jobs)
    monkeypatch.setattr("rayflink.cli.jobs.FOLLOW_EVERY_S", 0)
    assert main(["logs", "counts", "--follow"]) == 0
    assert len(asked) == 3 and capsys.readouterr().out.count("\n") == 3


def test_logs_of_a_job_that_has_ended(cluster, capsys):
    assert main(["logs", OLD]) == 0
    assert capsys.readouterr().out == "00:00:01.000 out Map (1/2): one\n"


def test_logs_of_a_vertex_that_is_not_there_names_those_that_are(cluster, capsys):
    assert main(["logs", "counts", "--vertex", "Filter"]) == 2
    assert capsys.readouterr().err == "rayflink: no vertex 'Filter' in job 'counts', which has 'Map'\n"


def test_cancel_waits_for_the_end(cluster, capsys):
    assert main(["cancel", "counts"]) == 0
    assert cluster == [JOB]
    assert capsys.readouterr().out == f"counts  {JOB}  CANCELED\n"


@pytest.mark.parametrize(("wanted", "message"), [("a", "matches 2 jobs; give more of the id"), ("x", "no job 'x'")])
def test_a_job_that_is_not_one_is_an_error_that_lists_those_there_are(cluster, capsys, wanted, message):
    assert main(["cancel", wanted]) == 1
    shown = capsys.readouterr().err
    assert message in shown and JOB in shown and OTHER in shown
    assert not cluster


@pytest.mark.parametrize("command", ["list", "status", "cancel", "stop", "logs"])
def test_the_help_says_what_becomes_of_a_job_that_has_ended(capsys, command):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "`list -a`, `status` and `logs` also show jobs that have ended" in said


def test_version(capsys):
    assert main(["version"]) == 0
    assert capsys.readouterr().out == f"rayflink {rayflink.__version__}\n"


@pytest.mark.parametrize("flag", ["--wait", "--allow-waiting"])
def test_some_flags_go_with_a_detached_run_alone(script, capsys, flag):
    assert main(["run", "--local", flag, script("x = 1\n")]) == 2
    assert f"{flag} requires -d" in capsys.readouterr().err
