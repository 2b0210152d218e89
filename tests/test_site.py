"""The site: pages that say what is so, pictures that come from runs, and a strict build that needs no network."""

from __future__ import annotations

import doctest
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.source_files import ROOT
from tests.test_public_api import named

QUICK_START = ROOT / "docs" / "quickstart.md"
_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```', re.M | re.S)
_COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.M)
WITH_RAY = "with Ray"

NO_NETWORK = """
import socket

def refuse(*given):
    raise OSError(f"the site reached for the network: {given}")

socket.socket.connect = socket.socket.connect_ex = socket.create_connection = socket.getaddrinfo = refuse
"""


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """(language, title, content) of each block of code."""
    return [(kind, title or "", content) for kind, title, content in _BLOCK.findall(page.read_text(encoding="utf-8"))]


def commands(page: Path, title: str = "") -> list[tuple[str, str]]:
    """(command, what it prints) of the terminal sessions with a title."""
    sessions = [content for kind, found, content in blocks(page) if kind == "console" and found == title]
    return [pair for session in sessions for pair in _COMMAND.findall(session)]


def terminal(folder: Path, page: Path) -> dict[str, str]:
    """Write the programs of a page into a folder; gives the environment in which its commands run there."""
    for kind, title, content in blocks(page):
        if kind == "python" and title:
            (folder / title).write_text(content, encoding="utf-8")
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    for name, started in (("python", ""), ("rayflink", "-m rayflink ")):
        (bin_folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {started}"$@"\n', encoding="utf-8")
        (bin_folder / name).chmod(0o755)
    return {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}


def check_session(folder: Path, page: Path, title: str = "") -> int:
    """Run the commands of a page's sessions and compare what they print; gives how many there were."""
    environment = terminal(folder, page)
    checker, found = doctest.OutputChecker(), commands(page, title)
    for command, wanted in found:
        done = subprocess.run(
            ["bash", "-c", command], cwd=folder, env=environment, timeout=90, text=True, stdout=-1, stderr=-2
        )
        is_same = checker.check_output(wanted, done.stdout, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        assert is_same, f"$ {command}\nwanted:\n{wanted}\nfound:\n{done.stdout}"
    return len(found)


@pytest.mark.slow
def test_every_command_of_the_quick_start_prints_what_stands_below_it(tmp_path):
    assert check_session(tmp_path, QUICK_START) >= 9


def test_every_session_of_the_quick_start_is_run():
    titles = {title for kind, title, _ in blocks(QUICK_START) if kind == "console"}
    assert titles == {"", WITH_RAY}  # the latter in tests/cluster/test_examples_on_ray.py
    assert {kind for kind, _, _ in blocks(QUICK_START)} == {"console", "python"}
    assert all(title for kind, title, _ in blocks(QUICK_START) if kind == "python")


@pytest.mark.slow
def test_the_pictures_are_what_the_runs_give(tmp_path):
    script = ROOT / "docs" / "site" / "pictures.py"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, str(script), str(tmp_path)], env=environment, check=True, capture_output=True)
    committed = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "pictures").glob("*.svg")}
    made = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.svg")}
    assert sorted(made) == sorted(committed)
    # Any change of the exchange moves this one a little; what it shows is tested below.
    differing = [name for name in made if made[name] != committed[name] and name != "back_pressure.svg"]
    assert not differing, f"python docs/site/pictures.py makes them anew: {differing}"


@pytest.mark.slow
def test_back_pressure_goes_from_the_sink_to_the_source_as_its_picture_shows(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "site"))
    module = importlib.import_module("back_pressure")
    usage = module.run()
    full_at = []
    for name, index in (("Sink: store", 2), ("enrich", 1), ("Source: readings", 1)):
        samples = usage[name]
        assert max(sample[index] for sample in samples) >= 0.9
        assert all(s[index] == 0 for s in samples if s[0] < module.SLOW_FROM_S or s[0] > module.SLOW_TO_S + 2)
        full_at.append(next(sample[0] for sample in samples if sample[index] >= 0.9))
    assert full_at == sorted(full_at)


with_mkdocs = pytest.mark.skipif(
    importlib.util.find_spec("mkdocs") is None, reason="mkdocs is not installed: make docs sets it up"
)


@with_mkdocs
@pytest.mark.slow
def test_docstrings_become_sections_and_blocks_of_code(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "site"))
    docstrings = importlib.import_module("docstrings")
    assert doctest.testmod(docstrings)[:2] == (0, 1)
    assert docstrings.readable("Two.\n\nArgs:\n    a, b: numbers,\n        whole.").splitlines() == [
        *("Two.", "", "Args:"),
        *("    a: numbers,", "        whole.", "    b: numbers,", "        whole."),
    ]
    assert docstrings.readable("One.\n>>> 1\n1\n\nTwo.").split("\n") == [
        *("One.", "", "```pycon", ">>> 1", "1", "```"),
        *("", "Two."),
    ]
    goes_on = "Raises: ValueError: it is\nnegative.\nSource: apache/flink."
    assert docstrings.readable(goes_on).splitlines() == [
        *("Raises:", "    ValueError: it is", "        negative."),
        *("", "*Source:* apache/flink."),
    ]


@with_mkdocs
@pytest.mark.slow
def test_the_site_is_built_strictly_and_without_network(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(NO_NETWORK, encoding="utf-8")
    site = tmp_path / "site"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(site)]
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=95)
    assert built.returncode == 0, built.stdout + built.stderr

    pages = {path.relative_to(site).as_posix(): path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    assert {"index.html", "quickstart.html", "examples/columnar.html", "api/rayflink.datastream.html"} <= set(pages)
    loaded = [
        (name, address)
        for name, html in pages.items()
        for tag in re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*>", html)
        for address in re.findall(r'(?:src|href)="((?:https?:)?//[^"]*)"', tag)
        if 'rel="canonical"' not in tag
    ]
    assert not loaded, "pages load these from the network"
    names = (ROOT / "tests" / "golden" / "public_api.txt").read_text(encoding="utf-8").splitlines()
    described = set(re.findall(r'id="(rayflink\.[\w.]+)"', "".join(pages.values())))
    ends = {name.rpartition(".")[2] for name in described}
    missing = [name for name in names if "(" not in name and name.rpartition(".")[2] not in ends]
    assert not missing, "public names without a place in the API reference"
    methods = {".".join(name.split(".")[-2:]) for name in described}
    of_fluent = [(line, named(line)) for line in names if "(" in line]
    unseen = [
        line
        for line, (*_, cls, method) in of_fluent
        if not any(f"{base.__name__}.{method.__name__}" in methods for base in cls.__mro__)
    ]
    assert of_fluent and not unseen, "methods without a place in the API reference"
    of_contexts = {
        "KeyedProcessFunction.Context": ("get_current_key", "timer_service", "timestamp"),
        "KeyedProcessFunction.OnTimerContext": ("get_current_key", "timer_service", "timestamp", "time_domain"),
        "ProcessWindowFunction.Context": ("window", "window_state", "global_state", "current_watermark"),
    }
    places = {".".join(name.split(".")[-3:]) for name in described}
    wanted = {f"{context}.{method}" for context, methods in of_contexts.items() for method in methods}
    assert not wanted - places, "methods of contexts that the API reference does not show"
