"""The laws of keyed tables, SQL's state: `rayflink.testing.check_keyed_table` checks a table against them.

`model` draws histories by hypothesis and compares them with a dict: rows added, changed, removed and expired in several
subtasks, checkpoints that are written late, fail or are never confirmed, kills, savepoints and other parallelisms.
`multiset_model` does the same with rows that come and go by value, and `multiset_laws` has the laws of keyed multisets.
`laws` has those histories and laws by example; `subject` is the job whose table is under test. A factory of tables
enters; an assertion names the law that does not hold.

Laws of the state of single values are in `rayflink.testing.backend_laws`.
"""
