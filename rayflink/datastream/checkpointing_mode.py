"""`CheckpointingMode` under PyFlink's module path."""

from rayflink.common.options.registry import CheckpointingMode

__all__ = ["CheckpointingMode"]
