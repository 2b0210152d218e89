"""Sinks of tables as objects, as Flink 1.x had them; newer programs describe a table by `TableDescriptor`."""

from __future__ import annotations

import os
from collections.abc import Iterable

from .errors import SqlError
from .schema import TableDescriptor
from .sources import csv_table
from .types import DataType


class WriteMode:
    """The treatment of existing files."""

    NO_OVERWRITE = 0
    OVERWRITE = 1


class TableSink:
    """A sink as an object; `CsvTableSink` is the only kind."""

    descriptor: TableDescriptor
    """The same as a table of the connector 'filesystem'."""

    def overwrites(self) -> bool:
        """Return whether files that are there are replaced."""
        return False


class CsvTableSink(TableSink):
    """Rows as CSV files in a folder; each subtask writes files of its own.

    >>> from rayflink.table.types import DataTypes
    >>> sink = CsvTableSink(["a", "b"], [DataTypes.INT(), DataTypes.STRING()], "out", "|")
    >>> sink.descriptor.get_options()["path"]
    'out'

    Args:
        field_names: of the columns, in their order.
        field_types: of the columns.
        path: of the folder.
        field_delimiter: one character.
        num_files: -1: as many as there are subtasks. For a number of files set the parallelism of the job.
        write_mode: `WriteMode.OVERWRITE` puts files in the place of those there, in batch mode; else it is an error
            that there are some.

    Raises:
        SqlError: `num_files` is a number, or there are more names than types, or fewer.
    """

    def __init__(
        self, field_names: Iterable[str], field_types: Iterable[DataType], path: str, field_delimiter: str = ",",
        num_files: int = -1, write_mode: int | None = None,
    ) -> None:  # fmt: skip
        if num_files != -1:
            remedy = "leave it out and set the parallelism, as by table.exec.resource.default-parallelism"
            raise SqlError(f"CsvTableSink with num_files={num_files}", remedy)
        # that of Flink 1.x joins the strings of the values, and quotes none
        options = {"csv.field-delimiter": field_delimiter, "csv.disable-quote-character": "true"}
        self.descriptor = csv_table(path, field_names, field_types, options)
        self._path, self._mode = path, WriteMode.NO_OVERWRITE if write_mode is None else write_mode

    def overwrites(self) -> bool:
        """Return whether files that are there are replaced.

        Raises:
            SqlError: there are some, and they are not to be.
        """
        if self._mode == WriteMode.OVERWRITE:
            return True
        local = self._path.removeprefix("file://")
        if os.path.isfile(local) or (os.path.isdir(local) and os.listdir(local)):
            remedy = "name another folder, or give WriteMode.OVERWRITE and run it in batch mode"
            raise SqlError(f"there are files at {self._path!r}, which CsvTableSink is not to overwrite", remedy)
        return False


__all__ = ["CsvTableSink", "TableSink", "WriteMode"]
