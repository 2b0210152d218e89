"""Every example runs by itself and prints what its docstring says."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.source_files import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def run_example(name: str, *arguments: str, cwd: Path) -> str:
    command = [sys.executable, str(ROOT / "examples" / name), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=90, cwd=cwd)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_states_its_output_and_is_short(path):
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert docstring is not None
    assert re.search(r"^Output: ", docstring, re.M)
    assert f"python examples/{path.name}" in docstring
    assert len(path.read_text(encoding="utf-8").splitlines()) < 150


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
