"""The RocksDB backend: keyed state that is larger than memory, behind a write-back cache of decoded values.

`rocksdb_backend` implements `state.backend`. Its tables (`rocksdb_tables`) read and write through `row_cache`:
two generations of entries (`cache_generation`), what is known not to be on disk (`missing_rows`), and how dirty entries
reach their rows (`write_back`), within the memory of `cache_budget`.
`rocksdb_store` holds one database, `column_family` the sorted rows of one state, `row_layout` the bytes of a row.
How many bytes of its files (`sorted_files`) each state and key group has is read from their indexes (`block_index`).
A checkpoint (`rocksdb_capture`) links the database's files and stores the new ones; `dirty_rows` are the cache
entries that had changed at the barrier, `write_overlay` what is written meanwhile.
"""
