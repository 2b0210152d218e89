"""Keys: which values may be keys, when two are the same, their bytes and their hash.

The rule stands in ``key_forms``, the bytes in ``key_encoding``, the hash in ``key_hash`` and, for whole batches, in
``key_columns``; ``key_groups`` divides hashes among subtasks. Hot paths use plain dicts keyed by ``canonical_key``.
Values of users enter; canonical keys, bytes and numbers leave. All of it is pure: what is stored under a key is in
the backends.
"""

from __future__ import annotations

from .key_columns import hash_column, hash_columns, hash_keys
from .key_encoding import KEY_ENCODING_VERSION, canonical_key, decode_key, encode_key, read_key, write_key
from .key_hash import key_hash

__all__ = [
    "KEY_ENCODING_VERSION",
    "canonical_key",
    "decode_key",
    "encode_key",
    "hash_column",
    "hash_columns",
    "hash_keys",
    "key_hash",
    "read_key",
    "write_key",
]
