"""Joins on columns: of whole tables, of windows, of intervals of time, and with a broadcast side."""
