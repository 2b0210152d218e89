"""`ExternalizedCheckpointRetention` under PyFlink's module path."""

from rayflink.common.options import ExternalizedCheckpointRetention

__all__ = ["ExternalizedCheckpointRetention"]
