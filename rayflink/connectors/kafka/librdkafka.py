"""The C interface of librdkafka, the library within confluent-kafka: functions, structures and constants.

They are of rdkafka.h, which is public and has been extended since 1.0 and not changed. confluent-kafka's module is
linked to the library, so that its functions are found through the module.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p
from functools import cache
from importlib import import_module
from typing import Any, Final

import numpy as np

MESSAGE: Final = np.dtype(
    {
        "names": ["error", "topic", "partition", "value", "value_bytes", "key", "key_bytes", "offset", "opaque"],
        "formats": ["i4", "u8", "i4", "u8", "u8", "u8", "u8", "i8", "u8"],
        "offsets": [0, 8, 16, 24, 32, 40, 48, 56, 64],
        "itemsize": 72,
    }
)
"""`rd_kafka_message_t`, an entry of `rd_kafka_produce_batch`."""
FIELD: Final = np.dtype(
    {"names": ["kind", "first", "second", "third"], "formats": ["i4", "i8", "i8", "i8"], "offsets": [0, 8, 16, 24],
     "itemsize": 72}
)  # fmt: skip
"""`rd_kafka_vu_t`, a field of a message of `rd_kafka_produceva`: its kind, and three words."""
TOPIC, PARTITION, VALUE, KEY, FLAGS, TIMESTAMP, HEADER = 2, 3, 4, 5, 7, 8, 9
"""Kinds of fields; the topic is a handle."""
COPY, PARTITIONS = 0x2, 0x8
"""Flags of a message: the library copies it; of a batch: each message names its partition."""
PURGE_ALL: Final = 0x1 | 0x2 | 0x4
"""Drop what is queued and what is sent, and do not wait for that."""
PRODUCER: Final = 0
FATAL: Final = -150
"""The code of an error that stands for the fatal error of a client."""
INVALID_ARGUMENT: Final = -186
"""The code of the error of a value that the library refuses."""
ERROR_BYTES: Final = 512


class Message(ctypes.Structure):
    """`rd_kafka_message_t` in a report."""

    _fields_ = [
        ("error", c_int), ("topic", c_void_p), ("partition", c_int32), ("value", c_void_p), ("value_bytes", c_size_t),
        ("key", c_void_p), ("key_bytes", c_size_t), ("offset", c_int64), ("opaque", c_void_p),
    ]  # fmt: skip


class PartitionMetadata(ctypes.Structure):
    """`rd_kafka_metadata_partition`."""

    _fields_ = [
        ("id", c_int32), ("error", c_int), ("leader", c_int32), ("replica_count", c_int), ("replicas", c_void_p),
        ("in_sync_count", c_int), ("in_sync", c_void_p),
    ]  # fmt: skip


class TopicMetadata(ctypes.Structure):
    """`rd_kafka_metadata_topic`."""

    _fields_ = [
        ("topic", c_char_p), ("partition_count", c_int), ("partitions", POINTER(PartitionMetadata)), ("error", c_int),
    ]  # fmt: skip


class Metadata(ctypes.Structure):
    """`rd_kafka_metadata`."""

    _fields_ = [
        ("broker_count", c_int), ("brokers", c_void_p), ("topic_count", c_int), ("topics", POINTER(TopicMetadata)),
        ("broker_id", c_int32), ("broker_name", c_char_p),
    ]  # fmt: skip


class TopicPartition(ctypes.Structure):
    """`rd_kafka_topic_partition_t`."""

    _fields_ = [
        ("topic", c_char_p), ("partition", c_int32), ("offset", c_int64), ("metadata", c_void_p),
        ("metadata_bytes", c_size_t), ("opaque", c_void_p), ("error", c_int), ("private", c_void_p),
    ]  # fmt: skip


Report = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_void_p)
NoteError = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p, c_void_p)
NoteLog = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p, c_char_p)

_FUNCTIONS: Final = {
    "conf_new": (c_void_p, ()),
    "conf_destroy": (None, (c_void_p,)),
    "conf_set": (c_int, (c_void_p, c_char_p, c_char_p, c_char_p, c_size_t)),
    "conf_set_dr_msg_cb": (None, (c_void_p, Report)),
    "conf_set_error_cb": (None, (c_void_p, NoteError)),
    "conf_set_log_cb": (None, (c_void_p, NoteLog)),
    "new": (c_void_p, (c_int, c_void_p, c_char_p, c_size_t)),
    "destroy": (None, (c_void_p,)),
    "name": (c_char_p, (c_void_p,)),
    "set_log_queue": (c_int, (c_void_p, c_void_p)),
    "fatal_error": (c_int, (c_void_p, c_char_p, c_size_t)),
    "topic_new": (c_void_p, (c_void_p, c_char_p, c_void_p)),
    "topic_destroy": (None, (c_void_p,)),
    "topic_name": (c_char_p, (c_void_p,)),
    "produce_batch": (c_int, (c_void_p, c_int32, c_int, c_void_p, c_int)),
    "poll": (c_int, (c_void_p, c_int)),
    "flush": (c_int, (c_void_p, c_int)),
    "purge": (c_int, (c_void_p, c_int)),
    "outq_len": (c_int, (c_void_p,)),
    "metadata": (c_int, (c_void_p, c_int, c_void_p, POINTER(POINTER(Metadata)), c_int)),
    "metadata_destroy": (None, (POINTER(Metadata),)),
    "init_transactions": (c_void_p, (c_void_p, c_int)),
    "begin_transaction": (c_void_p, (c_void_p,)),
    "commit_transaction": (c_void_p, (c_void_p, c_int)),
    "abort_transaction": (c_void_p, (c_void_p, c_int)),
    "send_offsets_to_transaction": (c_void_p, (c_void_p, c_void_p, c_void_p, c_int)),
    "consumer_group_metadata_new": (c_void_p, (c_char_p,)),
    "consumer_group_metadata_destroy": (None, (c_void_p,)),
    "topic_partition_list_new": (c_void_p, (c_int,)),
    "topic_partition_list_add": (POINTER(TopicPartition), (c_void_p, c_char_p, c_int32)),
    "topic_partition_list_destroy": (None, (c_void_p,)),
    "mem_malloc": (c_void_p, (c_void_p, c_size_t)),
    "error_code": (c_int, (c_void_p,)),
    "error_string": (c_char_p, (c_void_p,)),
    "error_is_fatal": (c_int, (c_void_p,)),
    "error_is_retriable": (c_int, (c_void_p,)),
    "error_txn_requires_abort": (c_int, (c_void_p,)),
    "error_destroy": (None, (c_void_p,)),
}
"""Name without its prefix -> type of the result, types of the arguments."""


class Library:
    """The functions of the library, each under its name without `rd_kafka_`.

    Other threads run Python while one works, but for `produceva`, which takes less time than letting them.
    """

    def __init__(self, path: str) -> None:
        calls, quick = ctypes.CDLL(path), ctypes.PyDLL(path)
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(calls, f"rd_kafka_{name}")
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)
        self.produceva = quick.rd_kafka_produceva
        self.produceva.restype, self.produceva.argtypes = c_void_p, (c_void_p, c_void_p, c_size_t)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        raise AttributeError(f"librdkafka's function {name} is not declared")


@cache
def load() -> Library | None:
    """Return the library that confluent-kafka's module is linked to; None: it shows no functions, or is missing."""
    try:
        return Library(str(import_module("confluent_kafka.cimpl").__file__))
    except (ImportError, OSError, AttributeError):
        return None


__all__ = [
    "COPY", "ERROR_BYTES", "FATAL", "FIELD", "FLAGS", "HEADER", "INVALID_ARGUMENT", "KEY", "MESSAGE",
    "PARTITION", "PARTITIONS", "PRODUCER", "PURGE_ALL", "TIMESTAMP", "TOPIC", "VALUE", "Library", "Message",
    "Metadata", "NoteError", "NoteLog", "Report", "load",
]  # fmt: skip
