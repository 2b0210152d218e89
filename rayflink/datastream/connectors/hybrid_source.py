"""Sources read one after the other, under PyFlink's module path."""
# ruff: noqa: I001 - the imports are a table of names

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.connectors.hybrid_source import (
        HybridSource as HybridSource,
        HybridSourceBuilder as HybridSourceBuilder,
    )
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.connectors.hybrid_source": "HybridSource HybridSourceBuilder",
        },
    )
