"""Files as sources and sinks, under PyFlink's module path."""
# ruff: noqa: I001 - the imports are a table of names

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.connectors.files.buckets import BucketAssigner as BucketAssigner, BucketContext as BucketContext
    from rayflink.connectors.files.file_enumeration import (
        FileEnumeratorProvider as FileEnumeratorProvider,
        FileSplitAssignerProvider as FileSplitAssignerProvider,
    )
    from rayflink.connectors.files.file_sink import (
        FileCompactor as FileCompactor,
        FileCompactStrategy as FileCompactStrategy,
        FileSink as FileSink,
        OutputFileConfig as OutputFileConfig,
        StreamingFileSink as StreamingFileSink,
    )
    from rayflink.connectors.files.file_source import (
        BulkFormat as BulkFormat,
        FileSource as FileSource,
        FileSourceBuilder as FileSourceBuilder,
        StreamFormat as StreamFormat,
    )
    from rayflink.connectors.files.rolling import (
        DefaultRollingPolicy as DefaultRollingPolicy,
        OnCheckpointRollingPolicy as OnCheckpointRollingPolicy,
        RollingPolicy as RollingPolicy,
    )
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.connectors.files.buckets": "BucketAssigner BucketContext",
            "rayflink.connectors.files.file_enumeration": "FileEnumeratorProvider FileSplitAssignerProvider",
            "rayflink.connectors.files.file_sink": (
                "FileCompactor FileCompactStrategy FileSink OutputFileConfig StreamingFileSink"
            ),
            "rayflink.connectors.files.file_source": "BulkFormat FileSource FileSourceBuilder StreamFormat",
            "rayflink.connectors.files.rolling": "DefaultRollingPolicy OnCheckpointRollingPolicy RollingPolicy",
        },
    )
