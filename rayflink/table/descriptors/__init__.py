"""Descriptions of columns by properties, as programs before Flink 1.11 wrote them. The path is PyFlink's.

`descriptor` has what every description is, `rowtime` the event time, and `columns` the `Schema` of this module, which
is not the one of `rayflink.table`.

Calls enter, and strings under dotted names leave, by `to_properties`. No table is defined by them, as in Flink 2.x: a
`TableDescriptor` does that, with the `Schema` of `rayflink.table`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.table.descriptors.columns import Schema as Schema
    from rayflink.table.descriptors.descriptor import Descriptor as Descriptor
    from rayflink.table.descriptors.rowtime import Rowtime as Rowtime
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.table.descriptors.columns": "Schema",
            "rayflink.table.descriptors.descriptor": "Descriptor",
            "rayflink.table.descriptors.rowtime": "Rowtime",
        },
    )
