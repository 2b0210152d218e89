"""`CheckpointingMode` under PyFlink's module path."""

from rayflink.common.options import CheckpointingMode

__all__ = ["CheckpointingMode"]
