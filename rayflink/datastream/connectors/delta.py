"""Delta tables as sinks and sources; needs `pip install 'rayflink[delta]'`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.connectors.delta.delta_sink import DeltaSink as DeltaSink
    from rayflink.connectors.delta.delta_sink import RowDataDeltaSinkBuilder as RowDataDeltaSinkBuilder
    from rayflink.connectors.delta.delta_source import DeltaSource as DeltaSource
    from rayflink.connectors.delta.delta_source import DeltaSourceBuilder as DeltaSourceBuilder
    from rayflink.connectors.lakes.lake_errors import LakeError as LakeError
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.connectors.delta.delta_sink": "DeltaSink RowDataDeltaSinkBuilder",
            "rayflink.connectors.delta.delta_source": "DeltaSource DeltaSourceBuilder",
            "rayflink.connectors.lakes.lake_errors": "LakeError",
        },
    )
