"""Conversions between tables and what lies outside: streams, Arrow tables, Python values and printed rows."""
