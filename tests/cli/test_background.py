"""Servers in the background that do not start: what their users read."""

from __future__ import annotations

import pytest

from rayflink.cli.background import Background


@pytest.fixture
def servers(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return lambda ready_s: Background("test server", "test_server", ready_s)


@pytest.mark.slow  # a process of its own
def test_a_server_that_ends_at_its_start_shows_its_code_and_the_end_of_its_log(servers, capsys):
    server = servers(60.0)
    assert server.start_once(["no-such-command"], {}) == 1
    first, *lines = capsys.readouterr().err.splitlines()
    assert first == (
        f"rayflink: the test server ended with code 2 instead of starting; its log {server.log_path} ends with:"
    )
    assert "no-such-command" in "".join(lines)


def test_a_server_that_does_not_listen_in_time_is_ended_and_the_time_is_named(servers, capsys):
    server = servers(0.0)
    assert server.start_once(["sql-gateway", "run", "--local"], {}) == 1
    message = f"rayflink: the test server did not listen within 0 s, and was ended; its log {server.log_path}"
    assert capsys.readouterr().err.startswith(message)
    assert server.running() is None
