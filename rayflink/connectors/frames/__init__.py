"""Tables in blocks of columns: DataFrames of Spark, Datasets of Ray and cached results, as sources and sinks.

`frame_source` reads partitions of blocks as a bounded source, `frame_writing` writes a stream's result into a store
of blocks; `spark_frames` and `spark_results` do so in Spark's Python workers; `cached` has results that later jobs
read. Blocks of Arrow enter and leave. Where the blocks lie, in Ray's object store or in memory, is decided in
`rayflink.launch.frames`; sessions of Spark are made in `rayflink.spark`.
"""
