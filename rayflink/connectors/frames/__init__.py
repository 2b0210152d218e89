"""Tables in blocks of columns: DataFrames of Spark, Datasets of Ray and cached results, as sources and sinks."""
