"""Tables whose rows are found by key, for lookup joins.

`lookup_options` are the options `lookup.*` that several connectors have; `whole_tables` reads bounded sources, whose
rows are then found in memory. The definition of a table enters, and a `TableLookup` leaves, with the function that a
subtask calls.

What calls it is in `rayflink.table.runtime.lookups`; what asks PostgreSQL is in the room `jdbc`.
"""
