"""State descriptors and handles, under PyFlink's module path."""
# ruff: noqa: I001 - the imports are a table of names

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.state.descriptors import (
        AggregatingStateDescriptor as AggregatingStateDescriptor,
        ListStateDescriptor as ListStateDescriptor,
        MapStateDescriptor as MapStateDescriptor,
        ReducingStateDescriptor as ReducingStateDescriptor,
        StateDescriptor as StateDescriptor,
        ValueStateDescriptor as ValueStateDescriptor,
    )
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.state.descriptors": (
                "AggregatingStateDescriptor ListStateDescriptor MapStateDescriptor ReducingStateDescriptor "
                "StateDescriptor ValueStateDescriptor"
            ),
        },
    )
