"""Reads statements, runs them, and shows what comes."""

from __future__ import annotations

import pydoc
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import TextIO

from rayflink.common.errors import JobCancelled, RayflinkError
from rayflink.common.options import registry as options
from rayflink.common.types import Row
from rayflink.table import SqlError
from rayflink.table.display.row_slots import RowSlots
from rayflink.table.table_result import TableResult

from .commands import HELP, Command, command_of, statements_in
from .live_output import LiveTable
from .result_output import ResultColumns, RowStrings, boxed, changes_of, final_rows, write_rows
from .shell_session import Outcome, ShellSession

__all__ = ["Shell"]

_RED, _PLAIN = "\x1b[31m", "\x1b[0m"
_PLACE = re.compile(r"(At |From )?line \d+, column \d+")
"""With which the error of a gateway begins that knows its place, of rayflink or of Flink."""


class Shell:
    """Runs statements one after another and writes their results.

    Args:
        session: in which they are run.
        out: for results.
        errors: for errors.
        is_terminal: whether `out` is one: tables are drawn anew where they stand, and long ones are paged.
    """

    def __init__(self, session: ShellSession, out: TextIO, errors: TextIO, is_terminal: bool) -> None:
        self._session, self._out, self._errors, self._is_terminal = session, out, errors, is_terminal
        self._is_ended = False

    def talk(self, read: Callable[[], str | None]) -> None:
        """Run what a user types until the end; errors are shown, and the next statement is read.

        Args:
            read: gives one or several statements; None: there are no more.
        """
        while not self._is_ended:
            try:
                text = read()
            except KeyboardInterrupt:
                continue
            if text is None:
                return
            self.run_all(text, "")

    def run_all(self, text: str, origin: str) -> bool:
        """Run the statements of a text until one fails.

        Args:
            text: of the statements.
            origin: the file they are from, for errors; "": none.

        Returns: whether all went well.
        """
        try:
            command = command_of(text)
            strings = [text] if command is not None else statements_in(text)
        except SqlError as error:
            self._show_error(error, origin)
            return False
        for statement in strings:
            try:
                self._run(statement)
            except (KeyboardInterrupt, JobCancelled):
                self._say("Query canceled")
                return False
            except RayflinkError as error:
                self._show_error(error, origin and f"{origin}{_line_of(statement, error)}")
                return False
            if self._is_ended:
                break
        return True

    def _run(self, text: str) -> None:
        command = command_of(text)
        if command is not None:
            self._obey(command)
            return
        outcome = self._session.run(text)
        if outcome.is_query:
            self._show_query(outcome)
        elif outcome.job is not None:
            state = "finished" if outcome.job.is_ended else "submitted"
            self._say(f"Job {outcome.job.job_id} {state}")
        else:
            self._show_rows(outcome.result)

    def _obey(self, command: Command) -> None:
        match command.name:
            case "QUIT":
                self._is_ended = True
            case "HELP":
                self._say(HELP)
            case "CLEAR":
                self._out.write("\x1b[2J\x1b[H" if self._is_terminal else "")
            case "SOURCE":
                self._source(command.argument)
            case "SHOW JOBS":
                self._show_jobs()
            case "STOP JOB":
                self._say(self._session.stop_job(command))
            case "SAVEPOINT JOB":
                self._say(self._session.take_savepoint(command))
            case _:
                raise AssertionError(f"{command.name} is no statement of the shell")

    def _source(self, path: str) -> None:
        try:
            text = Path(path).expanduser().read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise SqlError(f"cannot read {path!r}: {error}", "give the path of a file of SQL in UTF-8") from error
        if not self.run_all(text, path):
            raise SqlError(f"the statements of {path!r} ended early", "correct the one above")

    # results

    def _show_query(self, outcome: Outcome) -> None:
        rows = outcome.result.collect()
        try:
            self._show_drawn(outcome, rows)
        finally:
            close = getattr(rows, "close", None)
            if close is not None:
                close()

    def _show_drawn(self, outcome: Outcome, rows: Iterator[Row]) -> None:
        get = self._session.configuration.get
        columns = ResultColumns(outcome.result, get(options.PRINTED_WIDTH))
        mode, form = get(options.RESULT_MODE), get(options.RESULT_FORMAT)
        limit = get(options.MAX_RESULT_ROWS)
        begin = time.monotonic()
        if form is not options.ResultFormat.TEXT:
            is_final = mode is options.ResultMode.TABLE and not self._session.is_batch
            is_changed = not is_final and not self._session.is_batch
            slots = final_rows(columns, rows, limit) if is_final else None
            drawn = rows if slots is None else slots.rows()
            write_rows(columns, changes_of(drawn, is_changed), str(form.value), self._out)
            if slots is not None and slots.dropped:
                print(f"{slots.dropped} older rows left out ({options.MAX_RESULT_ROWS.key})", file=self._errors)
            return
        if mode is options.ResultMode.TABLE and (self._is_terminal or not self._session.is_batch):
            table = self._followed(columns, rows, limit)
            self._page(boxed(columns, table.rows()))
            self._count(len(table), table.dropped, time.monotonic() - begin + outcome.seconds)
            return
        self._print(outcome.result)

    def _followed(self, columns: ResultColumns, rows: Iterable[Row], limit: int) -> RowSlots[RowStrings]:
        """Return the rows of a query at its end, or as they were when it was ended by Ctrl-C."""
        if not self._is_terminal:
            slots = RowSlots[RowStrings](limit)
            for row in rows:
                strings = columns.strings(row)
                slots.change(row.get_row_kind(), strings, strings)
            return slots
        table = LiveTable(columns, limit, self._out)
        try:
            return table.follow(rows)
        except (KeyboardInterrupt, JobCancelled):
            self._say("Query canceled; these are its rows until then:")
            return table.slots

    def _show_rows(self, result: TableResult) -> None:
        form = self._session.configuration.get(options.RESULT_FORMAT)
        if form is options.ResultFormat.TEXT or result.is_message:
            self._print(result)
        else:
            columns = ResultColumns(result, self._session.configuration.get(options.PRINTED_WIDTH))
            write_rows(columns, changes_of(result.collect(), False), str(form.value), self._out)

    def _show_jobs(self) -> None:
        lines = self._session.job_rows()
        if len(lines) == 1:
            self._say("no jobs; INSERT INTO starts one")
            return
        widths = [max(len(line[index]) for line in lines) for index in range(len(lines[0]))]
        for line in lines:
            self._say("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())

    def _page(self, lines: list[str]) -> None:
        """Write lines; in a terminal that is too small for them through the pager of the environment."""
        height = shutil.get_terminal_size().lines
        text = "\n".join(lines) + "\n"
        if self._is_terminal and len(lines) > height - 3:
            pydoc.pager(text)
        else:
            self._out.write(text)

    def _count(self, rows: int, dropped: int, seconds: float) -> None:
        shown = f"{rows} row{'' if rows == 1 else 's'} in set" if rows else "Empty set"
        lost = f", {dropped} older ones left out (sql-client.execution.max-table-result.rows)" if dropped else ""
        cost = f" ({seconds:.2f} seconds)" if self._session.configuration.get(options.PRINT_TIME_COST) else ""
        self._say(f"{shown}{lost}{cost}")

    def _print(self, result: TableResult) -> None:
        with redirect_stdout(self._out):
            result.print()

    def _say(self, text: str) -> None:
        print(text, file=self._out, flush=True)

    def _show_error(self, error: RayflinkError, origin: str) -> None:
        where = f"{origin}: " if origin else ""
        text = f"[ERROR] {where}{error}"
        if self._is_terminal:
            head, _, rest = text.partition("\n")
            text = f"{_RED}{head}{_PLAIN}\n{rest}" if rest else f"{_RED}{head}{_PLAIN}"
        print(text, file=self._errors, flush=True)


def _line_of(statement: str, error: RayflinkError) -> str:
    """Return the line of a statement that stands at its place in a file; "" where the error has a line of its own."""
    has_place = (isinstance(error, SqlError) and error.place is not None) or _PLACE.match(str(error))
    first = statement[: len(statement) - len(statement.lstrip())]
    return "" if has_place else f", statement at line {first.count(chr(10)) + 1}"
