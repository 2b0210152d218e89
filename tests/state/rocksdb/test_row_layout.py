"""Rows of the RocksDB backend: bytes that checkpoints already hold stay readable."""

import pickle

from rayflink.state.rocksdb.rocksdb_rows import decode_value
from rayflink.state.rocksdb.row_layout import ValueWithKeys, has_stored_keys, to_pickle

STORED = (
    b"\x80\x05\x955\x00\x00\x00\x00\x00\x00\x00\x8c!rayflink.state.rocksdb.row_layout\x94\x8c\x04Kept\x94\x93\x94"
    b"\x88K\x05\x86\x94R\x94."
)
"""`to_pickle(ValueWithKeys(True, 5))`, under the name that the class has in stored rows."""


def test_a_value_with_its_keys_has_the_bytes_it_always_had():
    assert to_pickle(ValueWithKeys(True, 5)) == STORED


def test_a_stored_value_with_its_keys_is_read_by_its_old_name():
    read = pickle.loads(STORED)
    assert type(read) is ValueWithKeys and (read.keys, read.value) == (True, 5)
    assert has_stored_keys(STORED) and decode_value(STORED) == 5
