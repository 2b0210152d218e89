"""The file source and the file sink: which files are read and written, and when written files become visible.

`file_enumeration` finds files and cuts them into splits, `file_source` reads them in a format. `file_sink` sorts
records into `buckets`; `part_files` stay hidden until the checkpoint that contains them is complete. The content of
files is the concern of `rayflink.connectors.formats`.
"""
