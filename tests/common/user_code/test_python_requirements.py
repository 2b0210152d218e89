"""Required packages: lines that are checked early, and packages that pip installs into a folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy
import pytest

from rayflink.common.errors import ConfigError
from rayflink.common.user_code.python_executable import check_executable, refuse_executable_here
from rayflink.common.user_code.python_requirements import PythonRequirements
from tests.common.user_code.tiny_wheel import write_wheel


def requirements(tmp_path: Path, text: str, cached: Path | None = None) -> PythonRequirements:
    (tmp_path / "requirements.txt").write_text(text)
    return PythonRequirements.of(str(tmp_path / "requirements.txt"), None if cached is None else str(cached))


def test_a_line_that_is_no_requirement_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"found 'numpy=!1' in line 3 of .*requirements.txt.*wanted a requirement"):
        requirements(tmp_path, "# packages\nnumpy>=1 --hash=sha256:0 # ours\nnumpy=!1\n")
    with pytest.raises(ConfigError, match="a folder with packages"):
        requirements(tmp_path, "numpy", tmp_path / "cached")


@pytest.mark.parametrize(
    ("text", "are_met"),
    [
        (f"numpy=={numpy.__version__}\npytest; python_version < '3'\nno-such; python_version < '3'", True),
        ("numpy<1", False),
        ("no-such-package", False),
        ("-r other.txt", False),
        ("./folder", False),
    ],
)
def test_what_this_interpreter_has_is_met(tmp_path, text, are_met):
    assert requirements(tmp_path, text).are_met() == are_met


@pytest.mark.slow
def test_packages_are_installed_with_those_they_require_but_for_our_own(tmp_path):
    write_wheel(tmp_path / "cached", "tinyflink", "import tinyneeds\n", "Requires-Dist: tinyneeds\n")
    write_wheel(tmp_path / "cached", "tinyneeds", "VALUE = 42\n")
    wanted = requirements(tmp_path, "tinyflink>=1\n", tmp_path / "cached")
    folder = wanted.install()
    assert {"tinyflink.py", "tinyneeds.py"} <= set(os.listdir(folder)) and wanted.install() is folder
    with pytest.raises(ConfigError, match="packages that pip can install.*No matching distribution found for nothing"):
        requirements(tmp_path, "nothing-of-that-name", tmp_path / "cached").install()


@pytest.mark.slow
def test_another_interpreter_needs_the_same_versions(tmp_path):
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\necho Python 2.7 and Ray 0.1\n")
    fake.chmod(0o755)
    with pytest.raises(ConfigError, match="with Python 2.7 and Ray 0.1, wanted an interpreter with Python 3"):
        check_executable(str(fake))
    fake.write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(ConfigError, match="an interpreter with rayflink.*it ended with 3"):
        check_executable(str(fake))


def test_functions_of_a_local_run_have_the_interpreter_of_the_program():
    refuse_executable_here(sys.executable)
    refuse_executable_here("")
    check_executable("env/bin/python")  # in an archive
    with pytest.raises(ConfigError, match="start the program with that interpreter"):
        refuse_executable_here("env/bin/python")
