"""The laws of keyed state backends, one function each; `rayflink.testing.check_backend` checks a backend against them.

`handles`, `tables`, `timers`, `expiry`, `snapshots`, `captures` and `checkpoints` are laws by example; `model` and
`expiry_model` draw histories by hypothesis and compare with plain dicts (`histories`). `subject` is the backend
under test, `samples` the keys and values. A factory of backends enters; an assertion names the law that does not
hold.

Laws of checkpoint storages are in `rayflink.testing.storage_laws`.
"""
