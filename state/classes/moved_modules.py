"""Modules of this package that had another name when a savepoint was written.

Snapshots refer to a class by its module, so savepoints from before a move still restore.
"""

from __future__ import annotations

MOVED_MODULES = {
    "rayflink.common.batches": "rayflink.common.records.batches",
    "rayflink.connectors.cached": "rayflink.connectors.frames.cached",
    "rayflink.connectors.file_blocks": "rayflink.connectors.files.file_blocks",
    "rayflink.connectors.file_enumeration": "rayflink.connectors.files.file_enumeration",
    "rayflink.connectors.frame_writing": "rayflink.connectors.frames.frame_writing",
    "rayflink.connectors.frames": "rayflink.connectors.frames.frame_source",
    "rayflink.connectors.part_files": "rayflink.connectors.files.part_files",
    "rayflink.operators.window": "rayflink.operators.windows.window",
    "rayflink.state.class_names": "rayflink.state.classes.class_names",
    "rayflink.state.key_forms": "rayflink.state.keys.key_forms",
    "rayflink.state.list_key": "rayflink.state.keys.list_key",
    "rayflink.state.row_layout": "rayflink.state.rocksdb.row_layout",
}


def current_module(name: str) -> str:
    """Return the present name of a module that a snapshot names.

    >>> current_module("rayflink.operators.window"), current_module("shop.carts")
    ('rayflink.operators.windows.window', 'shop.carts')
    """
    return MOVED_MODULES.get(name, name)


def current_class(name: str) -> str:
    """Return the present name, as `module:qualname`, of a class that a snapshot names.

    >>> current_class("rayflink.operators.window:TimeWindow")
    'rayflink.operators.windows.window:TimeWindow'
    """
    module, _, qualname = name.partition(":")
    return f"{current_module(module)}:{qualname}"


__all__ = ["MOVED_MODULES", "current_class", "current_module"]
