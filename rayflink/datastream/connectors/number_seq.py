"""PyFlink's module path of the sequence source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.connectors.generator import NumberSequenceSource as NumberSequenceSource
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.connectors.generator": "NumberSequenceSource",
        },
    )
