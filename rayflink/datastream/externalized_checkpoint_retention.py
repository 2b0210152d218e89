"""`ExternalizedCheckpointRetention` under PyFlink's module path."""

from rayflink.common.options.registry import ExternalizedCheckpointRetention

__all__ = ["ExternalizedCheckpointRetention"]
