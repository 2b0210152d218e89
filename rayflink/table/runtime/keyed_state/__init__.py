"""Keyed state in columns: keys by number, in pages and blocks, with a time to live and snapshots."""
