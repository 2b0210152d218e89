"""Statements of the shell itself, which SQL does not have."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rayflink.table.errors import SqlError
from rayflink.table.parsing.statement_parser import script_parts

__all__ = ["HELP", "Command", "command_of", "is_complete", "statements_in"]

HELP = """\
Statements end with a semicolon and may have several lines.

  SELECT ...; INSERT INTO ...; CREATE ...; DROP ...; ALTER ...; DESCRIBE ...; EXPLAIN ...;
  SHOW TABLES; SHOW CATALOGS; SHOW DATABASES; SHOW FUNCTIONS; USE ...;
  SET 'key' = 'value';   set an option; SET; shows all, RESET 'key'; takes one back
  COMPILE PLAN 'file' FOR INSERT ...; EXECUTE PLAN 'file';
  SOURCE 'file.sql';     run the statements of a file
  SHOW JOBS;             the jobs that this shell started
  STOP JOB 'id' [WITH SAVEPOINT ['folder']] [WITH DRAIN];
  SAVEPOINT JOB 'id' ['folder'];
  CLEAR; HELP; QUIT;

'sql-client.execution.result-mode' is table (updated where it stands), changelog, or tableau (rows as
they come); 'sql-client.execution.result-format' is text, csv or json. Ctrl-C ends a query, Ctrl-D
the shell. Jobs of INSERT go on while you type; they end with the shell, unless they run on Ray."""


@dataclass(frozen=True)
class Command:
    """A statement of the shell.

    Args:
        name: such as QUIT or STOP JOB.
        argument: what stands in quotes behind it; "": nothing.
        folder: of a savepoint; None: that of the options.
        with_savepoint: STOP JOB takes one.
        drains: STOP JOB first fires all timers and windows.
    """

    name: str
    argument: str = ""
    folder: str | None = None
    with_savepoint: bool = False
    drains: bool = False


_QUOTED = r"'((?:[^']|'')*)'"
_BARE = re.compile(r"(quit|exit|help|clear)\s*;?", re.IGNORECASE)
_SHOW_JOBS = re.compile(r"show\s+jobs", re.IGNORECASE)
_SOURCE = re.compile(rf"source\s+{_QUOTED}", re.IGNORECASE)
_STOP = re.compile(
    rf"stop\s+job\s+{_QUOTED}(?:\s+(with\s+savepoint)(?:\s+{_QUOTED})?)?(?:\s+(with\s+drain))?", re.IGNORECASE
)
_SAVEPOINT = re.compile(rf"savepoint\s+job\s+{_QUOTED}(?:\s+{_QUOTED})?", re.IGNORECASE)


def command_of(text: str) -> Command | None:
    """Return the statement of the shell that a text is; None: it is one of SQL.

    >>> command_of("stop job 'a1' with savepoint")
    Command(name='STOP JOB', argument='a1', folder=None, with_savepoint=True, drains=False)
    """
    text = text.strip().rstrip(";").strip()
    if match := _BARE.fullmatch(text):
        name = match[1].upper()
        return Command("QUIT" if name == "EXIT" else name)
    if _SHOW_JOBS.fullmatch(text):
        return Command("SHOW JOBS")
    if match := _SOURCE.fullmatch(text):
        return Command("SOURCE", _unquoted(match[1]))
    if match := _STOP.fullmatch(text):
        folder = None if match[3] is None else _unquoted(match[3])
        return Command("STOP JOB", _unquoted(match[1]), folder, match[2] is not None, match[4] is not None)
    if match := _SAVEPOINT.fullmatch(text):
        return Command("SAVEPOINT JOB", _unquoted(match[1]), None if match[2] is None else _unquoted(match[2]))
    return None


def is_complete(text: str) -> bool:
    """Return whether what was typed can be run: it ends with a semicolon, outside of quotes and of BEGIN ... END.

    >>> is_complete("SELECT 1"), is_complete("SELECT ';"), is_complete("SELECT 1;"), is_complete("quit")
    (False, False, True, True)
    """
    if not text.strip() or _BARE.fullmatch(text.strip()):
        return True
    try:
        parts = script_parts(f"{text}\n0")
    except SqlError:  # a quote or comment is open, or the last word is no word: the statement is not at its end
        return text.rstrip().endswith(";") and not _is_open(text)
    return [token.text for token in parts[-1].tokens] == ["0"]


def statements_in(text: str) -> list[str]:
    """Return the statements of a text, each with the comments before it and without its semicolon.

    Each stands at its line and column of the text, for errors: blanks fill what is before it.

    >>> statements_in("SELECT 1;\\nSHOW TABLES; SELECT 2")
    ['SELECT 1', '         \\nSHOW TABLES', '\\n             SELECT 2']

    Raises:
        SqlError: a quote or comment is not closed.
    """
    return [f"{_blanks(text[: part.offset])}{part.text}" for part in script_parts(text)]


def _blanks(before: str) -> str:
    return "\n" * before.count("\n") + " " * (len(before) - before.rfind("\n") - 1)


def _is_open(text: str) -> bool:
    try:
        script_parts(text)
    except SqlError as error:
        return "close the quote" in error.remedy
    return False


def _unquoted(text: str) -> str:
    return text.replace("''", "'")
