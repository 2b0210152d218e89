"""Functions of users in queries: their classes, and the calls of them over the columns of a batch.

Users import the classes of `function_classes` and `aggregate_classes` from `rayflink.table.udf`, which has the
decorators as well.
`user_kernels` calls a function for the rows of a batch, or once for a batch of columns (pandas, Arrow, polars), and
names the function, the row and the line of the program in errors; `aggregate_kernels` does so for the rows of groups,
whose accumulators and results are values of Python here. Columns enter and leave.

Functions that SQL has by itself are in `rayflink.table.functions`.
"""
