"""The terminal: lines with history, completion and colours, by prompt_toolkit."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rayflink.common.errors import RayflinkError

from .commands import is_complete
from .completion import Vocabulary, candidates
from .shell_session import ShellSession

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import CompleteEvent, Completion
    from prompt_toolkit.document import Document
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

__all__ = ["MissingTerminalLibrary", "Prompt"]

PROMPT, CONTINUED = "rayflink> ", "       -> "


class MissingTerminalLibrary(RayflinkError):
    """The package for the terminal is not installed.

    Args:
        package: its name.
    """

    def __init__(self, package: str) -> None:
        super().__init__(package)
        self.package = package

    def __str__(self) -> str:
        remedy = "pip install 'rayflink[shell]', or give statements with -e, -f or through a pipe"
        return f"typing statements requires {self.package}, which is not installed; {remedy}"


class Prompt:
    """Reads statements from a terminal.

    Args:
        session: whose names are completed and whose jobs are shown below the line.
        history: file of the statements before; created when it is missing.

    Raises:
        MissingTerminalLibrary: prompt_toolkit or Pygments is not installed.
    """

    def __init__(self, session: ShellSession, history: Path) -> None:
        try:
            import prompt_toolkit  # noqa: F401
            import pygments  # type: ignore[import-untyped]  # noqa: F401
        except ImportError as error:
            raise MissingTerminalLibrary(str(error.name)) from error
        self._session = session
        self._lines = self._prompt_session(history)

    def read(self) -> str | None:
        """Return what was typed, a whole statement or several; None: Ctrl-D.

        Raises:
            KeyboardInterrupt: Ctrl-C.
        """
        try:
            return self._lines.prompt(PROMPT)
        except EOFError:
            return None

    def _prompt_session(self, history: Path) -> PromptSession[str]:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
        from prompt_toolkit.completion import ThreadedCompleter
        from prompt_toolkit.history import FileHistory
        from prompt_toolkit.lexers import PygmentsLexer
        from pygments.lexers.sql import SqlLexer  # type: ignore[import-untyped]

        history.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(history, os.O_CREAT | os.O_WRONLY, 0o600))  # statements may hold passwords
        return PromptSession(
            history=FileHistory(str(history)),
            lexer=PygmentsLexer(SqlLexer),
            completer=ThreadedCompleter(_completer(self._session.vocabulary)),
            complete_while_typing=False,
            auto_suggest=AutoSuggestFromHistory(),
            multiline=True,
            prompt_continuation=CONTINUED,
            key_bindings=_key_bindings(),
            bottom_toolbar=self._status,
            refresh_interval=1.0,
            enable_open_in_editor=True,
        )

    def _status(self) -> str:
        return f" {self._session.status} | Tab completes, HELP; QUIT;"


def _key_bindings() -> KeyBindings:
    """Return the keys: Enter runs a statement that is complete, and else begins a line."""
    from prompt_toolkit.filters import has_completions
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("enter", filter=~has_completions)
    def enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text) and not buffer.document.text_after_cursor.strip():
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return keys


def _completer(vocabulary: Vocabulary):  # type: ignore[no-untyped-def]  # its class is prompt_toolkit's
    from prompt_toolkit.completion import Completer, Completion

    class SqlCompleter(Completer):
        """Completes words of SQL and names of the environment."""

        def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
            for candidate in candidates(document.text_before_cursor, document.text_after_cursor, vocabulary):
                yield Completion(candidate.text, -candidate.length, display_meta=candidate.kind)

    return SqlCompleter()
