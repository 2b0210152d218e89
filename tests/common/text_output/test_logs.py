"""Each log line carries the identity bound in its thread."""

import io
import json
import logging
import subprocess
import sys
import threading

import pytest

from rayflink.common.functions.function_classes import MapFunction
from rayflink.common.text_output.logs import (
    IdentityFilter,
    JsonFormatter,
    LineFormatter,
    bind,
    bound,
    get_logger,
    identity,
    keep_logs,
    spoken_by,
    write_json,
)
from rayflink.datastream import StreamExecutionEnvironment


@pytest.fixture
def lines():
    collected = []

    class Collect(logging.Handler):
        def emit(self, record):
            collected.append(record)

    logger, handler = logging.getLogger("rayflink.test_logs"), Collect()
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield collected
    logger.removeHandler(handler)


def test_a_line_carries_what_is_bound_and_what_the_call_adds(lines):
    log = get_logger("rayflink.test_logs")
    with bound(job="j1", vertex="map", subtask=2):
        log.info("checkpoint published", extra={"checkpoint_id": 7})
    text = LineFormatter().format(lines[0])
    assert text.endswith("checkpoint published job=j1 vertex=map subtask=2 checkpoint_id=7")
    assert lines[0].job == "j1" and identity() == {}


def test_blocks_nest_and_none_removes(lines):
    with bound(job="j1"), bound(job="j2", vertex="v"):
        bind(vertex=None)
        assert identity() == {"job": "j2"}
    assert identity() == {}


def test_another_thread_has_its_own_identity():
    seen = []
    with bound(job="j1"):
        thread = threading.Thread(target=lambda: seen.append(identity()))
        thread.start()
        thread.join()
    assert seen == [{}]


def test_a_traceback_follows_the_line(lines):
    try:
        raise KeyError("k")
    except KeyError:
        get_logger("rayflink.test_logs").exception("failed", extra={"n": 1})
    text = LineFormatter().format(lines[0])
    assert "failed n=1\nTraceback" in text and text.endswith("KeyError: 'k'")


def test_a_line_of_json_has_the_identity_the_extras_and_the_traceback(lines):
    log = get_logger("rayflink.test_logs")
    with bound(job="j1", vertex="Map\n-> Sink", subtask=2, attempt=1):
        try:
            raise KeyError("k")
        except KeyError:
            log.exception("failed\nfor %s", "good", extra={"rate": float("nan"), "path": {1}, "level": "shadow"})
    text = JsonFormatter().format(lines[0])
    line = json.loads(text)
    assert "\n" not in text
    assert list(line)[:4] == ["time", "level", "logger", "message"] and line["time"].endswith("Z")
    assert (line["level"], line["message"]) == ("ERROR", "failed\nfor good"), "an extra hides no field of the line"
    assert (line["job"], line["vertex"], line["subtask"], line["attempt"]) == ("j1", "Map\n-> Sink", 2, 1)
    assert (line["rate"], line["path"]) == ("nan", "{1}")
    assert line["exception"].startswith("Traceback") and line["exception"].endswith("KeyError: 'k'")


@pytest.mark.parametrize("formatter", [LineFormatter(), JsonFormatter()])
def test_secrets_are_in_no_line(lines, formatter):
    log = get_logger("rayflink.test_logs")
    try:
        raise ValueError("postgres://me:abc1@db: password='abc2'")
    except ValueError:
        log.exception("Bearer abc3abc3abc3, s3.secret-key=abc4", extra={"token": "abc5", "url": "http://a:abc6@b"})
    text = formatter.format(lines[0])
    assert "abc" not in text and text.count("******") >= 6


def test_the_form_of_a_process_is_that_of_all_its_handlers(tmp_path):
    logger, out = logging.getLogger("rayflink"), io.StringIO()
    before, level = list(logger.handlers), logger.level
    keep_logs(out, warn=False)
    try:
        get_logger("rayflink.x").info("as text")
        write_json(True)
        get_logger("rayflink.x").info("as JSON")
    finally:
        write_json(False)
        logger.handlers[:] = before
        logger.setLevel(level)
    first, second = out.getvalue().splitlines()
    assert first.endswith("INFO  rayflink.x: as text") and json.loads(second)["message"] == "as JSON"


def test_one_identity_in_place_of_another_until_the_block_ends():
    with bound(job="j1", vertex="v"):
        with spoken_by({"job": "j2"}):
            assert identity() == {"job": "j2"}
        assert identity() == {"job": "j1", "vertex": "v"}


class Tells(MapFunction):
    def open(self, runtime_context):
        logging.getLogger("my_job").warning("opened")

    def map(self, value):
        logging.getLogger("my_job").warning("mapped %s", value)
        return value


def test_lines_of_a_users_logger_carry_job_vertex_and_subtask():
    out = io.StringIO()
    handler, logger = logging.StreamHandler(out), logging.getLogger("my_job")
    handler.setFormatter(LineFormatter())
    handler.addFilter(IdentityFilter())
    logger.addHandler(handler)
    try:
        env = StreamExecutionEnvironment({"execution.target": "local"})
        stream = env.from_collection([10, 20]).rebalance().map(Tells()).set_parallelism(2).name("Tells")
        stream.disable_chaining().add_sink(lambda value: None)
        job = env.execute("told").get_job_id()
    finally:
        logger.removeHandler(handler)
    told = sorted(line.split("my_job: ")[1] for line in out.getvalue().splitlines())
    who = [f"job={job} vertex=Tells subtask={subtask} attempt=0" for subtask in (0, 1)]
    assert told == [f"mapped 10 {who[0]}", f"mapped 20 {who[1]}", f"opened {who[0]}", f"opened {who[1]}"]


PROGRAM = """
import logging, sys
from rayflink.common.text_output.logs import bound, get_logger, keep_logs
{before}
keep_logs(open(sys.argv[1], "w"))
with bound(job="j1", vertex="Map", subtask=2):
    get_logger("rayflink.x").info("quiet")
    get_logger("rayflink.x").warning("loud", extra={{"n": 1}})
    logging.getLogger("mine").info("unheard")
    logging.getLogger("mine").warning("mine")
"""


def told(tmp_path, before=""):
    """Lines of a process without their times: in its log file, and on its standard error."""
    file = tmp_path / "log"
    command = [sys.executable, "-c", PROGRAM.format(before=before), str(file)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return [[line.split(" ", 2)[-1] for line in text.splitlines()] for text in (file.read_text(), ran.stderr)]


@pytest.mark.slow
def test_a_process_that_runs_tasks_keeps_its_lines_and_shows_warnings(tmp_path):
    kept, shown = told(tmp_path)
    who = "job=j1 vertex=Map subtask=2"
    assert kept == [f"INFO  rayflink.x: quiet {who}", f"WARNING rayflink.x: loud {who} n=1"]
    assert shown == [f"WARNING rayflink.x: loud {who} n=1", f"WARNING mine: mine {who}"]


@pytest.mark.slow
def test_a_program_that_sets_up_logging_itself_is_left_alone(tmp_path):
    kept, shown = told(tmp_path, before="logging.basicConfig(format='a b %(message)s', level='INFO')")
    assert len(kept) == 2
    assert shown == ["quiet", "loud", "unheard", "mine"]


TASKS = """
import logging, sys
from pathlib import Path
from rayflink.actors.on_ray.task_log import TaskLog, lines_of, log_goes_to, read_pieces
from rayflink.common.options.log_levels import LogLevels
from rayflink.common.text_output.logs import bound, get_logger, keep_logs
{before}
keep_logs(open("process", "w"))
log_goes_to(TaskLog(Path("kept"), "slot"), below=logging.WARNING)
LogLevels.of({options}).apply()
with bound(job="j1", vertex="Map", subtask=2):
    for name in ("mine", "mine.below", "other", "rayflink.x"):
        for level in (logging.DEBUG, logging.INFO, logging.WARNING):
            logging.getLogger(name).log(level, "said")
for piece in read_pieces(Path("kept"), {{}}):
    for line in lines_of(piece):
        print(line.vertex, line.subtask, line.text)
"""
ALL = [f"Map 2 INFO {name}: said" for name in ("mine", "mine.below", "other", "rayflink.x")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "before", "expected"),
    [
        ({}, "", ALL),
        ({"rayflink.log.level": "warning"}, "", []),
        (
            {"rayflink.log.level": "ERROR", "rayflink.log.loggers": "mine:DEBUG,mine.below:INFO"},
            "",
            ["Map 2 DEBUG mine: said", *ALL[:2]],
        ),
        ({}, "logging.basicConfig(handlers=[logging.NullHandler()])", ALL[3:]),
    ],
)
def test_the_loggers_of_a_program_reach_the_log_of_its_job(options, before, expected, tmp_path):
    program = TASKS.format(options=options, before=before)
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == expected
    assert all(" WARNING " in line for line in ran.stderr.splitlines())


@pytest.mark.slow
def test_a_local_program_shows_its_lines_from_the_level_of_the_option_on(tmp_path):
    program = """
import logging, sys
from rayflink.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment({"execution.target": "local", **dict(word.split("=") for word in sys.argv[1:])})
def say(number):
    logging.getLogger("mine").info("number %d", number)
    return number
env.from_collection([7]).map(say).name("Say").add_sink(lambda number: None)
env.execute()
"""
    said = []
    for options in ([], ["rayflink.log.level=INFO"], ["rayflink.log.loggers=mine:INFO", "rayflink.log.level=ERROR"]):
        command = [sys.executable, "-c", program, *options]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        said.append([line for line in ran.stderr.splitlines() if "number 7" in line])
    assert said[0] == [] and all(len(lines) == 1 and "subtask=0" in lines[0] for lines in said[1:])
