"""Functions of users in queries: their classes, and the calls of them over the columns of a batch.

Users import them from `rayflink.table.udf`.
"""
