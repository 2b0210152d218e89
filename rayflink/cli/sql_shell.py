"""`rayflink sql`: statements that are typed, piped, or read from a file."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from rayflink.common.options import registry as options
from rayflink.dbapi.gateway_client import Gateway
from rayflink.shell.gateway_session import GatewaySession
from rayflink.shell.prompt import Prompt
from rayflink.shell.shell_loop import Shell
from rayflink.shell.shell_session import ShellSession
from rayflink.shell.sql_session import SqlSession

from .given_options import configuration_of, of_command_line
from .script import FAILED, OK, USAGE


def run(chosen: argparse.Namespace) -> int:
    """Run statements and return the exit code: 0 unless one failed that was not typed."""
    configuration_of(chosen)  # reports what is wrong in the file and the environment
    own_options = of_command_line(chosen)
    is_typed = not chosen.execute and not chosen.file and sys.stdin.isatty()
    if not own_options.contains_key(options.RESULT_MODE.key) and not is_typed:
        own_options.set(options.RESULT_MODE, options.ResultMode.TABLEAU)
    if chosen.format:
        own_options.set(options.RESULT_FORMAT, chosen.format)
    if chosen.local:
        own_options.set(options.TARGET, "local")
    if not is_typed and not own_options.contains_key(options.DML_SYNC.key):
        own_options.set(options.DML_SYNC, True)
    session = _session(chosen, own_options.to_dict())
    shell = Shell(session, sys.stdout, sys.stderr, is_typed and sys.stdout.isatty())
    try:
        for path in [*chosen.init, *chosen.file]:
            text = _text_of(path)
            if text is None:
                return USAGE
            if not shell.run_all(text, path):
                return FAILED
        for text in chosen.execute:
            if not shell.run_all(text, ""):
                return FAILED
        if is_typed:
            return _talk(shell, session)
        if not chosen.execute and not chosen.file:
            return OK if shell.run_all(sys.stdin.read(), "standard input") else FAILED
        return OK
    finally:
        session.close()


def _talk(shell: Shell, session: ShellSession) -> int:
    prompt = Prompt(session, _history_file())
    print("Type statements that end with a semicolon; HELP; shows how, QUIT; or Ctrl-D ends.")
    shell.talk(prompt.read)
    return OK


def _session(chosen: argparse.Namespace, own_options: dict[str, str]) -> ShellSession:
    return GatewaySession(_gateway(chosen.gateway), own_options) if chosen.gateway else SqlSession(own_options)


def _gateway(url: str) -> Gateway:
    """Return a gateway, with the token of the environment."""
    token, ca_file = os.environ.get("RAYFLINK_GATEWAY_TOKEN"), os.environ.get("RAYFLINK_GATEWAY_CA_FILE")
    return Gateway(url if "://" in url else f"http://{url}", token, ca_file=ca_file)


def _history_file() -> Path:
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "rayflink" / "sql_history"


def _text_of(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        print(f"rayflink: cannot read {path}: {error}; give an SQL file in UTF-8", file=sys.stderr)
        return None


__all__ = ["run"]
