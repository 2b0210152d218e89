"""JOIN t FOR SYSTEM_TIME AS OF a time of the row: which of the joins with versions of a table it is."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from ..errors import SqlError
from ..parsing.statements import Tree
from ..plan.joins import Join, JoinKind
from ..plan.logical import Attribute, Relation
from ..plan.lookup_joins import SnapshotJoin
from ..plan.typed import Column
from .expressions import ExpressionBinder, place_of
from .hints.lookup_hints import lookup_hint
from .remedies import REMEDY_FOR_VERSIONS

_USAGE = "write FROM a JOIN t FOR SYSTEM_TIME AS OF a.proc_time AS b ON a.k = b.k, with proc_time AS PROCTIME() in a"


def version_of(tree: Tree) -> Tree | None:
    """Return the FOR SYSTEM_TIME AS OF behind a table; None: there is none."""
    version: Tree | None = tree.args.get("version") if isinstance(tree, exp.Table) else None
    return version


def tables_with_versions(tree: Tree) -> list[str]:
    """Return the names of the tables of a SELECT that are joined by FOR SYSTEM_TIME AS OF."""
    tables = (join.this for join in tree.args.get("joins") or ())
    return [table.alias_or_name for table in tables if version_of(table) is not None]


def misplaced_version(tree: Tree) -> SqlError:
    """Return the error for a FOR SYSTEM_TIME AS OF behind a table that is not joined to another."""
    return SqlError("FOR SYSTEM_TIME AS OF is not behind a table that JOIN names", _USAGE, "", place_of(tree))


def time_of_rows(binder: ExpressionBinder, relation: Relation, version: Tree, is_batch: bool) -> int:
    """Return the number of the left side's column at whose time rows of the right side are wanted.

    Raises:
        SqlError: it is no time attribute; in batch mode, it is no processing time.
    """
    value = binder.bind(version.expression)
    attribute: Attribute | None = relation.schema[value.index] if isinstance(value, Column) else None
    if attribute is None or not attribute.is_time:
        if is_batch and attribute is not None:
            raise _unsupported_event_time(version)
        problem = f"FOR SYSTEM_TIME AS OF {value}, which is not a time attribute of the table before JOIN"
        raise SqlError(problem, _USAGE, "", place_of(version))
    if attribute.is_event_time and is_batch:
        raise _unsupported_event_time(version)
    assert isinstance(value, Column)
    return value.index


def _unsupported_event_time(version: Tree) -> SqlError:
    """Return the error for a join with the versions of a table by event time."""
    problem = "FOR SYSTEM_TIME AS OF an event time is not supported in batch mode"
    return SqlError(problem, REMEDY_FOR_VERSIONS, "", place_of(version))


def ensure_kind(kind: JoinKind, tree: Tree) -> None:
    """Check the kind of a join with versions.

    Raises:
        SqlError: rows of the right side would be in the result that no row of the left side asks for.
    """
    if kind not in (JoinKind.INNER, JoinKind.LEFT):
        problem = f"a {kind.name} JOIN with FOR SYSTEM_TIME AS OF"
        raise SqlError(problem, "write JOIN or LEFT JOIN: rows on the right are looked up", "", place_of(tree))


def snapshot_join(join: Join, tree: Tree, time: int) -> SnapshotJoin:
    """Return a join with the rows that the right side has at the time of each row; its columns are no times behind it.

    Args:
        time: number of the column with that time.

    Raises:
        SqlError: the hint LOOKUP of the table has an option that is unknown, or of another form.
    """
    hint = lookup_hint(tree.find_ancestor(exp.Select), tree.this.alias_or_name)
    width = len(join.left.schema)
    schema = (*join.schema[:width], *(replace(column, part=None, windowing=None) for column in join.schema[width:]))
    return SnapshotJoin(
        schema, join.left, join.right, join.kind, join.condition, False, time, hint, place=join.place
    )


def without_version(tree: Tree) -> Tree:
    """Return the table alone."""
    table: Tree = tree.copy()
    table.set("version", None)
    return table


__all__ = ["ensure_kind", "misplaced_version", "snapshot_join", "tables_with_versions", "time_of_rows", "version_of",
           "without_version"]  # fmt: skip
