"""CREATE TABLE ... LIKE: what a table takes from another one.

Source: apache/flink MergeTableLikeUtil.
"""

from __future__ import annotations

from ..definitions import ColumnDefinition, TableDefinition
from ..errors import SqlError
from ..parsing import statements


def like(table: TableDefinition, base: TableDefinition, asked: statements.LikeOf, text: str) -> TableDefinition:
    """Combine a table with the parts that it takes from another one.

    Raises:
        SqlError: both have it, and it is not said which counts.
    """
    everything = asked.options.get("ALL", "INCLUDING")

    def takes(feature: str) -> bool:
        return asked.options.get(feature, everything) != "EXCLUDING"

    def refuse(what: str, feature: str = "") -> SqlError:
        remedy = f"write EXCLUDING {feature} or OVERWRITING {feature} behind LIKE" if feature else "leave it out"
        return SqlError(f"{'.'.join(asked.source)} has {what} already", remedy, text, asked.place)

    own = {column.name: column for column in table.columns}
    base_columns = []
    for column in base.columns:
        feature = _feature(column)
        if feature and not takes(feature):
            continue
        other = own.get(column.name)
        if other is None:
            base_columns.append(column)
        elif not feature or _feature(other) != feature:
            raise refuse(f"a column {column.name!r}")
        elif asked.options.get(feature) != "OVERWRITING":
            raise refuse(f"a column {column.name!r}", feature)
    if table.watermark and base.watermark and takes("WATERMARKS") and asked.options.get("WATERMARKS") != "OVERWRITING":
        raise refuse(f"a watermark of {base.watermark[0]!r}", "WATERMARKS")
    return TableDefinition(
        (*base_columns, *table.columns),
        table.watermark or (base.watermark if takes("WATERMARKS") else None),
        table.primary_key or (base.primary_key if takes("CONSTRAINTS") else ()),
        table.partition_keys or (base.partition_keys if takes("PARTITIONS") else ()),
        {**(base.options if takes("OPTIONS") else {}), **table.options},
        table.comment,
    )


def _feature(column: ColumnDefinition) -> str:
    """Return LIKE's name for such columns; "": they are always included."""
    if column.computed is not None:
        return "GENERATED"
    return "" if column.metadata is None else "METADATA"


__all__ = ["like"]
