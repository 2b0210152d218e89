"""`rayflink config`: all options, one, those that are set; as text and as JSON."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from rayflink.cli.main import main
from rayflink.common.configuration import Configuration
from rayflink.common.options import registry as options
from rayflink.common.text_output.logs import write_json


@pytest.fixture(autouse=True)
def nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RAYFLINK_CONF", "RAYFLINK_CONF_DIR", "RAYFLINK_OPTIONS", "RAYFLINK_COMMAND_LINE"):
        monkeypatch.delenv(name, raising=False)


def test_all_options_are_shown_with_type_default_and_help(capsys: Any) -> None:
    assert main(["config"]) == 0
    shown = capsys.readouterr().out.split("\n\n")
    assert [entry.partition("\n")[0] for entry in shown] == [option.key for option in options.all_options()]
    for option, entry in zip(options.all_options(), shown, strict=True):
        default = "refused" if option.refused else option.default_text() or "(none)"
        assert f"\n  {option.type.name}, default {default}\n  {option.help.replace('`', '')}" in entry


def test_one_option(capsys: Any) -> None:
    assert main(["config", "restart-strategy.type"]) == 0
    assert capsys.readouterr().out == (
        "restart-strategy.type\n"
        "  one of none, off, disable, fixed-delay, failure-rate, exponential-delay, default (none)\n"
        "  none, off and disable never restart. Unset: exponential-delay if checkpoints are on; "
        "none with execution.target: local.\n"
        "  Also read: restart-strategy\n"
    )
    assert main(["config", "restart-strategy"]) == 0
    assert capsys.readouterr().out.startswith("restart-strategy.type\n")


def test_one_option_as_json_with_its_value(capsys: Any) -> None:
    assert main(["config", "parallelism.default", "--json", "-D", "parallelism.default=3"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["key"], shown["type"], shown["default"]) == ("parallelism.default", "int", "1")
    assert (shown["value"], shown["origin"]) == ("3", "command line")
    assert main(["config", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == len(options.all_options())


def test_an_option_that_is_not_there_names_the_nearest(capsys: Any) -> None:
    assert main(["config", "paralelism.default"]) == 1
    assert "did you mean parallelism.default?" in capsys.readouterr().err
    assert main(["config", "zzz"]) == 1
    assert "`rayflink config` lists all options" in capsys.readouterr().err


def test_what_is_set_is_shown_with_its_place(capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "rayflink.yaml"
    file.write_text("pipeline:\n  name: n\nparalelism: 2\nio.tmp.dirs: [/a, /b]\n", encoding="utf-8")
    monkeypatch.setenv("RAYFLINK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("RAYFLINK_OPTIONS", "pipeline.name=m")
    assert main(["config", "--set", "-D", "parallelism.default=4"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "pipeline.name: m  ($RAYFLINK_OPTIONS)",
        f"paralelism: 2  ({file}:3)  no option; did you mean parallelism.default?",
        f"io.tmp.dirs: /a;/b  ({file}:4)",
        "parallelism.default: 4  (command line)",
    ]
    assert main(["config", "--set", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[2] == {"key": "io.tmp.dirs", "value": "/a;/b", "origin": f"{file}:4"}


def test_nothing_set_is_said(capsys: Any) -> None:
    assert main(["config", "--set"]) == 0
    assert capsys.readouterr().out == "no option is set from outside\n"


def test_secrets_are_not_shown(capsys: Any) -> None:
    secret = ["-D", "s3.secret-key=abc123", "-D", "s3.region=us-east-1"]
    for words in (["--set"], ["--set", "--json"], ["s3.secret-key"], ["s3.secret-key", "--json"], []):
        assert main(["config", *words, *secret]) == 0
        shown = capsys.readouterr().out
        assert "abc123" not in shown and "******" in shown
    configuration = Configuration().set_string("s3.secret-key", "abc123").set_string("s3.region", "us-east-1")
    assert str(configuration) == "{s3.secret-key=******, s3.region=us-east-1}"
    assert "abc123" not in repr(configuration) and configuration.to_dict()["s3.secret-key"] == "abc123"


def test_commands_write_log_lines_as_json_where_an_option_says_so(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(logging, "lastResort", logging.lastResort)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    try:
        assert main(["config", "rayflink.log.format", "-D", "rayflink.log.format=json"]) == 0
        logging.getLogger("my_job").warning("no price")
        assert json.loads(capsys.readouterr().err)["message"] == "no price"
    finally:
        write_json(False)
