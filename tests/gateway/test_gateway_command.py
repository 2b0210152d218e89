"""`rayflink sql-gateway` in the background."""

from __future__ import annotations

import json
import os

import pytest

from rayflink.cli.main import main
from tests.gateway.gateway_client import GatewayClient

OPTIONS = ["--local", "-D", "sql-gateway.endpoint.rest.port=0"]


@pytest.fixture
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "rayflink" / "sql_gateway.json"


@pytest.mark.slow
def test_a_gateway_is_started_asked_for_and_stopped(state, capsys):
    try:
        assert main(["sql-gateway", "start", *OPTIONS]) == 0
        url = json.loads(state.read_text())["url"]
        assert f"listens on {url}; its log is" in capsys.readouterr().out
        assert main(["sql-gateway", "start", *OPTIONS]) == 1
        assert f"listens on {url} already" in capsys.readouterr().err
        assert GatewayClient(url).rows("SELECT 1") == [[1]]
        assert main(["sql-gateway", "status"]) == 0
        shown = capsys.readouterr().out
        assert f"listens on {url}\n  sessions: 1\n" in shown and "requestsRefused: {}" in shown
    finally:
        assert main(["sql-gateway", "stop"]) == 0
    assert main(["sql-gateway", "status"]) == 1
    assert not state.exists()


def test_a_file_of_another_process_is_no_gateway(state, capsys):
    state.parent.mkdir()
    state.write_text(json.dumps({"pid": os.getpid(), "begin": "1", "url": "http://127.0.0.1:1"}))
    assert main(["sql-gateway", "status"]) == 1
    assert main(["sql-gateway", "stop"]) == 1
    assert "no SQL gateway runs here" in capsys.readouterr().err


def test_an_address_that_others_reach_is_refused_before_a_process_starts(state, capsys):
    command = ["sql-gateway", "start", *OPTIONS, "-D", "sql-gateway.endpoint.rest.address=0.0.0.0"]
    assert main(command) == 2
    assert "a loopback address where there is no token" in capsys.readouterr().err
    assert not state.parent.exists()
