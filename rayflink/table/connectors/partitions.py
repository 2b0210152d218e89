"""Partitions of tables in files: folders named `key=value`, one within the other in the order of the keys."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from rayflink.connectors.file_systems.object_paths import ObjectPath
from rayflink.connectors.files.file_blocks import find_files
from rayflink.connectors.files.file_enumeration import FileEnumeratorProvider

from ..errors import SqlError
from ..plan.logical import Schema
from ..plan.typed import Evaluation, Expr, Session
from ..types import DataType, Root
from .json_values import JsonValues

DEFAULT_NAME = "__DEFAULT_PARTITION__"
_KNOWN = (Root.CHAR, Root.VARCHAR, Root.BOOLEAN, Root.TINYINT, Root.SMALLINT, Root.INT, Root.BIGINT, Root.FLOAT,
          Root.DOUBLE, Root.DATE, Root.TIMESTAMP)  # fmt: skip
_ESCAPED = re.compile(r"[\x00-\x1f\"#%'*/:=?\\\x7f{\[\]^]")


def check_partition_types(table: str, keys: Schema) -> None:
    """Check whether values of the keys can be names of folders.

    Raises:
        SqlError: those of one cannot.
    """
    for key in keys:
        if key.type.root not in _KNOWN:
            problem = f"{table} is partitioned by {key.name!r} of type {key.type}"
            raise SqlError(problem, "partition by strings, truth values, numbers but DECIMAL, DATE or TIMESTAMP")


def escape(text: str) -> str:
    """Return a text as part of a folder's name, as Flink and Hive escape it.

    >>> escape("a/b=50%"), unescape("a%2Fb%3D50%25")
    ('a%2Fb%3D50%25', 'a/b=50%')
    """
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text)


def unescape(text: str) -> str:
    """Return the text of which `escape` made a name."""
    return unquote(text)


def value_of(text: str, kind: DataType, default_name: str) -> Any:
    """Parse the name of a folder to a value that pyarrow accepts for the type.

    Raises:
        ValueError: it says nothing of that type.
    """
    if text == default_name:
        return None
    if kind.is_text:
        return text
    if kind.root is Root.TIMESTAMP:
        text = text.replace("T", " ") + (":00" if text.count(":") == 1 else "")
    value = JsonValues().converter(kind)(text)
    if kind.root is Root.BOOLEAN and text.lower() not in ("true", "false"):
        raise ValueError(f"found {text!r}, expected {kind}")
    return value


@dataclass(frozen=True)
class Partitions:
    """The partitioning of a table's folder.

    Args:
        root: the folder.
        keys: names and types of the columns by which it is divided, in order.
        default_name: stands for NULL.
    """

    root: str
    keys: Schema
    default_name: str = DEFAULT_NAME

    def values(self, path: str) -> list[Any]:
        """Return the values of a file's partition.

        Raises:
            ValueError: a folder's name says nothing of its key's type.
        """
        parts = os.path.relpath(path, self.root).split(os.sep)
        parsed = []
        for key, folder in zip(self.keys, parts, strict=False):
            text = unescape(folder.partition("=")[2])
            try:
                parsed.append(value_of(text, key.type, self.default_name))
            except ValueError as error:
                remedy = f"rename the folder, or declare column {key.name!r} as what it holds"
                raise ValueError(f"{path!r}: folder {folder!r}: {error}; {remedy}") from error
        return parsed

    def folders(self, root: str | None = None) -> list[str]:
        """Return the folders of all partitions, in order of name.

        Args:
            root: the folder, with its store where it is in one; None: as it was declared.
        """
        level = [self.root if root is None else root]
        for key in self.keys:
            level = [folder for above in level for folder in self._within(above, key.name)]
        return level

    def _within(self, folder: str, key: str) -> list[str]:
        if isinstance(folder, ObjectPath):
            names = folder.store.folders(folder.key)
            return [folder.child(name) for name in names if name.startswith(f"{key}=")]
        try:
            there = sorted(os.listdir(folder))
        except FileNotFoundError:  # taken away meanwhile, or not made yet
            return []
        return [os.path.join(folder, name) for name in there if name.startswith(f"{key}=")]

    def chosen(self, conditions: Sequence[Expr], root: str | None = None) -> list[str]:
        """Return the folders of the partitions for which all conditions are true.

        Args:
            conditions: over the keys alone.
            root: the folder, with its store where it is in one; None: as it was declared.
        """
        folders = self.folders(root)
        if not conditions or not folders:
            return folders
        import pyarrow
        from pyarrow import compute

        rows = [self.values(os.path.join(folder, "file")) for folder in folders]
        columns = [
            pyarrow.array([row[index] for row in rows], key.type.to_arrow()) for index, key in enumerate(self.keys)
        ]
        evaluation = Evaluation(columns, len(rows), Session())
        is_chosen = [compute.fill_null(evaluation.column(condition), False).to_pylist() for condition in conditions]
        return [folder for folder, *each in zip(folders, *is_chosen, strict=True) if all(each)]


class TableFiles(FileEnumeratorProvider):
    """Lists the files of a table.

    Args:
        partitions: how its folder is divided; None: it is not.
        conditions: over the partition keys: other partitions are not read.
        pattern: what whole paths are to match; None: any.
    """

    def __init__(
        self, partitions: Partitions | None, conditions: Sequence[Expr] = (), pattern: str | None = None
    ) -> None:
        super().__init__()
        self._partitions, self._conditions, self._pattern = partitions, tuple(conditions), pattern

    def list_files(self, paths: Sequence[str], watching: bool) -> list[str]:
        folders = paths if self._partitions is None else self._partitions.chosen(self._conditions, paths[0])
        files = find_files(folders, may_be_empty=True) if folders else []
        if self._pattern is None:
            return files
        pattern = re.compile(self._pattern)
        return [path for path in files if pattern.fullmatch(_whole(path))]


def _whole(path: str) -> str:
    return path if isinstance(path, ObjectPath) else os.path.abspath(path)
