"""Iceberg tables as a sink and as a source, by the library pyiceberg."""
