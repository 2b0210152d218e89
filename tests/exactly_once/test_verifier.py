"""The verifier of real kills finds every planted error, and the job it judges is exact where nothing is killed."""

from __future__ import annotations

import ast
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.exactly_once.running import database
from tests.exactly_once.verifier import Expectation, verify
from tests.source_files import imports_of

HERE = Path(__file__).parent
SHAPE = {"lanes": 3, "keys": 4, "records": 1000, "window": 30}


def of_shape(*names: str) -> list[str]:
    return [part for name in names for part in (f"--{name}", str(SHAPE[name]))]


def job(folder: Path, parallelism: int, *more: str) -> subprocess.Popen[str]:
    """The job as a process of its own, on the runner of this process."""
    options = ["execution.target=local", f"parallelism.default={parallelism}"]
    given = [part for option in options for part in ("--option", option)]
    command = ["--out", str(folder / "out"), "--release", str(folder / "release"), *of_shape(*SHAPE), *given, *more]
    return subprocess.Popen([sys.executable, str(HERE / "job.py"), *command], text=True)


def verdict(folder: Path) -> tuple[int, str]:
    """What the verifier ends with and prints."""
    command = [sys.executable, str(HERE / "verifier.py"), "--out", str(folder), *of_shape(*SHAPE)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ended.stderr == ""
    return ended.returncode, ended.stdout


def write(folder: Path, lines: list[str]) -> Path:
    """Two part files that hold the lines, as sinks name them."""
    folder.mkdir()
    half = len(lines) // 2
    for number, part in enumerate((lines[:half], lines[half:])):
        (folder / f"part-0-{number}").write_text("".join(f"{line}\n" for line in part))
    return folder


def test_the_arithmetic_is_that_of_five_positions_of_one_lane_written_by_hand():
    assert set(Expectation(lanes=1, keys=2, records=5, window=3).lines()) == {
        "r,0,0,1,0", "r,0,2,2,2", "r,0,4,3,6", "r,1,1,1,1", "r,1,3,2,4",
        "w,0,0,2,2", "w,0,3,1,4", "w,1,0,1,1", "w,1,3,1,3",
    }  # fmt: skip


def test_keys_of_the_second_lane_go_on_where_those_of_the_first_end():
    assert set(Expectation(lanes=2, keys=1, records=1, window=9).lines()) == {
        "r,0,0,1,0", "w,0,0,1,0", "r,1,0,1,0", "w,1,0,1,0",
    }  # fmt: skip


def test_all_lines_once_in_any_order_is_exact(tmp_path):
    lines = list(Expectation(**SHAPE).lines())[::-1]
    folder = write(tmp_path / "out", lines)
    (folder / ".part-0-2.inprogress").write_text("r,0,0,1,0\n")
    code, told = verdict(folder)
    assert (code, told) == (0, "ALL-RECORDS-DELIVERED-ONCE records=3000 windows=408 files=2\n")


def without_a_file(folder: Path) -> str:
    (folder / "part-0-1").unlink()
    return "missing=1704 repeated=0 wrong=0"


def a_line_twice(folder: Path) -> str:
    path = folder / "part-0-0"
    path.write_text(path.read_text() + path.read_text().splitlines()[7] + "\n")
    return "missing=0 repeated=1 wrong=0"


def a_file_twice(folder: Path) -> str:
    (folder / "part-1-0").write_text((folder / "part-0-0").read_text())
    return "missing=0 repeated=1704 wrong=0"


def a_line_left_out(folder: Path) -> str:
    path = folder / "part-0-0"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    return "missing=1 repeated=0 wrong=0"


def a_file_cut_off(folder: Path) -> str:
    path = folder / "part-0-0"
    path.write_text(path.read_text()[:-3])
    return "missing=1 repeated=0 wrong=1"


def a_state_that_counted_a_record_twice(folder: Path) -> str:
    path = folder / "part-0-0"
    first, rest = path.read_text().split("\n", 1)
    kind, key, position, count, total = first.split(",")
    path.write_text(f"{kind},{key},{position},{int(count) + 1},{total}\n{rest}")
    return "missing=1 repeated=0 wrong=1"


def records_beyond_the_end(folder: Path) -> str:
    path = folder / "part-0-0"
    path.write_text(path.read_text() + "r,0,1000,251,125500\n")
    return "missing=0 repeated=0 wrong=1"


def a_file_still_hidden(folder: Path) -> str:
    (folder / "part-0-1").rename(folder / ".part-0-1.inprogress")
    return "missing=1704 repeated=0 wrong=0"


PLANTED = [without_a_file, a_line_twice, a_file_twice, a_line_left_out, a_file_cut_off,
           a_state_that_counted_a_record_twice, records_beyond_the_end, a_file_still_hidden]  # fmt: skip


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_error_is_found(plant: Callable[[Path], str], tmp_path):
    folder = write(tmp_path / "out", list(Expectation(**SHAPE).lines()))
    counts = plant(folder)
    code, told = verdict(folder)
    assert code == 1
    assert told.startswith(f"NOT-EXACTLY-ONCE {counts} of records=3000 windows=408\n")
    assert "ALL-RECORDS" not in told


@pytest.mark.slow
def test_rows_of_a_table_are_judged_as_lines_of_files():
    import psycopg

    def judged(dsn: str) -> tuple[int, str]:
        command = [sys.executable, str(HERE / "verifier.py"), "--postgres", dsn, *of_shape(*SHAPE)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        return ended.returncode, ended.stdout.splitlines()[0]

    with database() as dsn:
        with psycopg.connect(dsn) as connection, connection.cursor() as cursor:
            cursor.executemany("INSERT INTO lines VALUES (%s)", [(line,) for line in Expectation(**SHAPE).lines()])
        assert judged(dsn) == (0, "ALL-RECORDS-DELIVERED-ONCE records=3000 windows=408 table=lines")
        with psycopg.connect(dsn) as connection:
            connection.execute("DELETE FROM lines WHERE line = 'r,0,0,1,0'")
            connection.execute("INSERT INTO lines SELECT line FROM lines WHERE line LIKE 'w,7,0,%'")
        assert judged(dsn) == (1, "NOT-EXACTLY-ONCE missing=1 repeated=1 wrong=0 of records=3000 windows=408")


def test_what_is_wrong_is_listed_up_to_twenty_of_a_kind():
    found = [*Expectation(1, 1, 30, 100).lines(), "r,0,0,1,0", "r,0,0,1,0", "nonsense"]
    told = verify(Expectation(1, 1, 60, 100), found).report().splitlines()
    assert told[0] == "NOT-EXACTLY-ONCE missing=31 repeated=1 wrong=2 of records=60 windows=1"
    assert told[1:3] == ["missing: r,0,30,31,465", "missing: r,0,31,32,496"]
    assert told[21:] == [
        "missing: and 11 more", "repeated: r,0,0,1,0 (3 times)", "wrong: w,0,0,30,435", "wrong: nonsense",
    ]  # fmt: skip


def test_no_output_at_all_is_no_success(tmp_path):
    assert verdict(tmp_path / "nowhere") == (1, f"NOT-EXACTLY-ONCE there is no folder {tmp_path / 'nowhere'}\n")
    code, told = verdict(write(tmp_path / "empty", []))
    assert (code, told.split(" of ")[0]) == (1, "NOT-EXACTLY-ONCE missing=3408 repeated=0 wrong=0")


def test_the_verifier_shares_no_code_with_the_engine():
    names = {
        imported.module.split(".")[0] for imported in imports_of(ast.parse((HERE / "verifier.py").read_text()), "")
    }
    assert names <= sys.stdlib_module_names | {"psycopg"}


@pytest.mark.slow
@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_the_job_is_exact_where_nothing_is_killed(parallelism, tmp_path):
    (tmp_path / "release").touch()
    assert job(tmp_path, parallelism).wait(timeout=60) == 0
    code, told = verdict(tmp_path / "out")
    assert (code, told.split(" files")[0]) == (0, "ALL-RECORDS-DELIVERED-ONCE records=3000 windows=408")


@pytest.mark.slow
def test_the_job_goes_on_gently_until_it_is_released(tmp_path):
    running = job(tmp_path, 1, "--rate", "50")
    try:
        deadline = time.monotonic() + 30
        while not any(tmp_path.glob("out/.*")):
            assert time.monotonic() < deadline and running.poll() is None
            time.sleep(0.05)
        (tmp_path / "release").touch()
        assert running.wait(timeout=60) == 0, "at 50 records a second it would take a minute"
    finally:
        running.kill()
        running.wait()
    assert verdict(tmp_path / "out")[0] == 0
