"""Every example runs by itself and prints what its docstring says."""

from __future__ import annotations

import ast
import os
import re
import socket
import subprocess
import sys
import textwrap
import threading
from collections import Counter
from pathlib import Path

import pytest

from tests.source_files import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


AS_STATED = (
    "async_enrichment",
    "broadcast_rules",
    "columnar",
    "connected_streams",
    "exactly_once",
    "fraud_rules",
    "rescale",
    "sessionisation",
    "side_outputs",
    "socket_words",
)
"""Those whose docstring states the whole of what they print."""


def run_example(name: str, *arguments: str, cwd: Path) -> str:
    command = [sys.executable, str(ROOT / "examples" / name), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=90, cwd=cwd)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


def stated_output(name: str) -> str:
    """What the docstring of an example says it prints: the indented block behind `Output:`."""
    docstring = ast.get_docstring(ast.parse((ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")))
    block = re.search(r"^Output: [^\n]*(?:\n[^\n]+)*\n\n((?:    [^\n]*\n)+)", docstring, re.M)
    return textwrap.dedent(block[1])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_states_its_output_and_is_short(path):
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert docstring is not None
    assert re.search(r"^Output: ", docstring, re.M)
    assert f"python examples/{path.name}" in docstring
    of_several_programs = {"flight_pipeline": 420, "late_in_a_row": 180}  # with two for Spark; with the same in SQL
    assert len(path.read_text(encoding="utf-8").splitlines()) < of_several_programs.get(path.stem, 150)


@pytest.mark.slow
def test_word_count_counts_hamlet_as_its_docstring_says(tmp_path):
    printed = run_example("word_count.py", cwd=tmp_path).splitlines()
    docstring = ast.get_docstring(ast.parse((ROOT / "examples" / "word_count.py").read_text(encoding="utf-8")))
    sample = [line.strip() for line in docstring.splitlines() if re.fullmatch(r"    \w+ +\d+", line)]
    assert len(sample) == 3
    assert printed[:3] == sample
    assert sum(int(line.split()[1]) for line in printed) == 34
    assert "tis          1" in printed


@pytest.mark.slow
@pytest.mark.ray
def test_word_count_gives_the_same_on_ray(tmp_path):
    file = tmp_path / "lines.txt"
    file.write_text("to be or not\nto be\n", encoding="utf-8")
    here = run_example("word_count.py", str(file), cwd=tmp_path)
    assert here.split() == ["be", "2", "to", "2", "not", "1", "or", "1"]
    assert run_example("word_count.py", "--ray", str(file), cwd=tmp_path) == here


@pytest.mark.slow
@pytest.mark.parametrize("name", AS_STATED)
def test_an_example_prints_what_its_docstring_states(name, tmp_path):
    assert run_example(f"{name}.py", cwd=tmp_path) == stated_output(name)


def test_every_example_is_compared_with_what_it_states():
    with_own_tests = {"flight_delays", "flight_pipeline", "kafka_clickstream", "late_in_a_row", "word_count"}
    assert {path.stem for path in EXAMPLES} == with_own_tests | set(AS_STATED)


@pytest.mark.slow
def test_the_columnar_example_states_the_sums_of_its_readings():
    found, sums = Counter(), Counter()
    for number in range(1_000_000):
        mixed = number * 2_654_435_761 % 4_294_967_296
        degrees = mixed // 65_536 % 101
        if degrees > 90:
            site = ("north", "east", "south", "west")[mixed % 1000 % 4]
            found[site] += 1
            sums[site] += degrees
    rows = [line.split() for line in stated_output("columnar").splitlines()[1:]]
    assert rows == [[site, str(found[site]), str(sums[site])] for site in sorted(found)]


@pytest.mark.slow
def test_the_socket_example_reads_a_server_of_ones_own(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)

        def serve():
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"3 hello\n30 world\n")

        serving = threading.Thread(target=serve)
        serving.start()
        printed = run_example("socket_words.py", "127.0.0.1", str(server.getsockname()[1]), cwd=tmp_path)
        serving.join()
    assert printed == "00:00 - 00:10  hello 1\n00:30 - 00:40  world 1\n"
