"""Records in batches: as Python objects, as columns of Arrow, and as CSV and JSON strings.

`batches` defines everything that flows in a stream: batches and events. `row_columns` holds rows as columns until
somebody asks for the rows. The rest converts: rows to Arrow and back, declared types to Arrow's, rows to CSV, JSON
and printed strings. Whole files are in `rayflink.connectors`.
"""
