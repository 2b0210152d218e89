"""The parts that tables of data lakes share: Parquet files with a log of commits beside them.

- `lake_errors`: the error, and the import of a library that may be missing.
- `partitioned_rows`: rows of a batch, divided by the values of a partition.
- `data_file_writing`: rolling Parquet files, one for each partition.
- `data_file_reading`: splits that are data files, and the cursor that reads one.
- `background_reading`: a cursor in a thread of its own, for files that are not local.
- `background_compaction`: small files of a table merged beside the job.
- `lake_source`: the enumerator and the readers of snapshots and of new commits.

The libraries that know a table format are called in `delta` and `iceberg` beside this room.
"""
