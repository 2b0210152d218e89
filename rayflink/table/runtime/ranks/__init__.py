"""Rows in an order: ORDER BY, LIMIT, Top-N and deduplication, for streams, windows and whole tables."""
