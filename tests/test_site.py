"""The site: pages that say what is so, pictures that come from runs, and a strict build that needs no network."""

from __future__ import annotations

import doctest
import importlib.util
import inspect
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

import pytest

from rayflink.cli.main import _parser
from tests.source_files import ROOT
from tests.test_api_pages import described, value_of

QUICK_START = ROOT / "docs" / "quickstart.md"
INDEX = ROOT / "docs" / "README.md"
DEPLOY = ROOT / "docs" / "deploy.md"
_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```', re.M | re.S)
_COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.M)
WITH_RAY = "with Ray"
ON_A_CLUSTER = "on a cluster"
MADE_WHEN_RUN = re.compile("_TYPE_INFO$|^create_backend$")
"""Names of methods that the code does not define, so that nobody who reads it finds them."""

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


@pytest.mark.slow
@pytest.mark.parametrize("page", [INDEX, DEPLOY], ids=lambda page: page.name)
def test_every_command_of_a_page_prints_what_stands_below_it(tmp_path, page):
    assert check_session(tmp_path, page) == {INDEX: 1, DEPLOY: 2}[page]
    assert {title for kind, title, _ in blocks(page) if kind == "console"} <= {"", ON_A_CLUSTER}


def test_the_figures_of_the_index_are_those_of_the_readme():
    index = INDEX.read_text(encoding="utf-8").partition("<!-- The navigation of the site")[0]
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    for claim in (r"\d+ of PyFlink's \d+ DataStream examples", r"\d+ of \d+ Table examples"):
        assert re.findall(claim, " ".join(index.split())) == re.findall(claim, readme) != []
    quick = index[index.index("**It is quick") : index.index("**It survives")]
    figures = set(re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?", quick))
    assert {"2.53", "0.60", "180"} <= figures <= set(re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?", readme))


def shell_commands(page: Path) -> list[list[str]]:
    """The words of each command in the scripts of a page, without what is set for it, and without `&`."""
    scripts = [content.replace("\\\n", " ") for kind, _, content in blocks(page) if kind == "sh"]
    lines = [line for content in scripts for line in content.splitlines()]
    parts = [part for line in lines for part in re.split(r"&&", line)]
    return [[word for word in shlex.split(part, comments=True) if word != "&"] for part in parts if part.strip()]


@pytest.mark.slow  # imports Ray
def test_commands_for_a_cloud_on_the_deployment_page_are_those_that_ray_accepts():
    scripts = importlib.import_module("ray.scripts.scripts")
    found = shell_commands(DEPLOY)
    own = {"/opt/rayflink/bin/pip", "cp", "docker", "helm", "install", "kubectl", "python3", "useradd"}
    assert {words[0] for words in found} == {"pip", "ray", "rayflink", "make", "export", *own}
    of_ray = [words[1:] for words in found if words[0] == "ray"]
    assert {"start", "up", "dashboard", "job", "exec", "down", "get-auth-token"} == {words[0] for words in of_ray}
    for words in of_ray:
        ours = words.index("--") if "--" in words else len(words)
        command, given = scripts.cli.commands[words[0]], words[1:ours]
        if words[0] == "job":
            command, given = command.commands[words[1]], words[2:ours]
        command.make_context(words[0], [*given, *(["--"] + words[ours + 1 :] if words[ours:] else [])])
        assert not words[ours:] or words[ours + 1 : ours + 4] == ["rayflink", "run", "-d"]
    for words in found:
        assert words[0] != "rayflink" or _parser().parse_known_args(words[1:])[1] == [], words
    paths = {word for words in found for word in words if word.startswith("deploy/")}
    assert len(paths) > 3 and all(list(ROOT.glob(path)) for path in paths)


def test_commands_and_options_in_the_text_on_deployment_are_those_of_rayflink():
    text = DEPLOY.read_text(encoding="utf-8")
    found = [shlex.split(line)[1:] for line in re.findall(r"(?<=[`'])rayflink \w[^`']+", text) if " " in line]
    assert len(found) > 10
    for words in found:
        given = [word.replace("=N", "=2") for word in words]
        assert _parser().parse_known_args(given[: given.index("--")] if "--" in given else given)[1] == []
    keys = re.findall(r"\b(?:execution|slot|python|state|restart-strategy)\.[\w.-]*\w", text)
    options = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert len(keys) > 6 and [key for key in keys if f"| `{key}` |" not in options] == []


def test_every_session_of_the_quick_start_is_run():
    titles = {title for kind, title, _ in blocks(QUICK_START) if kind == "console"}
    assert titles == {"", WITH_RAY}  # the latter in tests/cluster/programs/test_examples_on_ray.py
    assert {kind for kind, _, _ in blocks(QUICK_START)} == {"console", "python"}
    assert all(title for kind, title, _ in blocks(QUICK_START) if kind == "python")


@pytest.mark.slow
@pytest.mark.soak
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
    assert full_at[-1] == max(full_at), "the source is the last one"


def methods_of(cls: type) -> Iterator[str]:
    """The public methods and properties of a class with docstrings of their own, but not those of described bases."""
    elsewhere = {id(value_of(path)) for path in described()} - {id(cls)}
    seen: set[str] = set()
    for owner in cls.__mro__:
        if owner.__module__.partition(".")[0] == "rayflink" and id(owner) not in elsewhere:
            own = {name: value for name, value in vars(owner).items() if name[0] != "_" and name not in seen}
            yield from (name for name, value in own.items() if is_function(value) and value.__doc__)
        seen.update(vars(owner))


def is_function(value: object) -> bool:
    """Whether it is a method, a property, or an object with a text of its own that stands for one."""
    is_described = not isinstance(value, type) and "__doc__" in getattr(value, "__dict__", ())
    return inspect.isroutine(value) or isinstance(value, property) or is_described


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
@pytest.mark.timeout(300)
@pytest.mark.slow
@pytest.mark.soak
def test_the_site_is_built_strictly_and_without_network(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(NO_NETWORK, encoding="utf-8")
    site = tmp_path / "site"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(site)]
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=280)
    assert built.returncode == 0, built.stdout + built.stderr

    pages = {path.relative_to(site).as_posix(): path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    wanted = {"index.html", "quickstart.html", "examples/columnar.html", "api/index.html", "api/datastream.html"}
    assert not wanted - set(pages)
    loaded = [
        (name, address)
        for name, html in pages.items()
        for tag in re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*>", html)
        for address in re.findall(r'(?:src|href)="((?:https?:)?//[^"]*)"', tag)
        if 'rel="canonical"' not in tag
    ]
    assert not loaded, "pages load these from the network"
    names = set(re.findall(r'id="(rayflink\.[\w.]+)"', "".join(pages.values())))
    assert not set(described()) - names, "names without a place in the API reference"
    methods = {path: set(methods_of(value_of(path))) for path in described() if isinstance(value_of(path), type)}
    assert {"is_null", "abs", "minutes", "end"} <= methods["rayflink.table.Expression"]
    shown = {path: {m for m in found if not MADE_WHEN_RUN.search(m)} for path, found in methods.items()}
    unseen = [
        f"{path}.{method}" for path, found in shown.items() for method in found if f"{path}.{method}" not in names
    ]
    assert not unseen, "methods without a place in the API reference"
    enums = [path for path in described() if isinstance(value_of(path), type) and issubclass(value_of(path), Enum)]
    for path in enums:
        html = next(html for name, html in pages.items() if name.startswith("api/") and f'id="{path}"' in html)
        assert all(f"<code>{name}</code>" in html for name in value_of(path).__members__), path
    of_contexts = {
        "KeyedProcessFunction.Context": ("get_current_key", "timer_service", "timestamp"),
        "KeyedProcessFunction.OnTimerContext": ("get_current_key", "timer_service", "timestamp", "time_domain"),
        "ProcessWindowFunction.Context": ("window", "window_state", "global_state", "current_watermark"),
        "StateTtlConfig.UpdateType": (),
        "Trigger.OnMergeContext": (),
    }
    places = {".".join(name.split(".")[-depth:]) for name in names for depth in (2, 3)}
    wanted = set(of_contexts) | {f"{name}.{method}" for name, methods in of_contexts.items() for method in methods}
    assert not wanted - places, "classes in classes, and their methods, that the API reference does not show"
