"""Row patterns (MATCH_RECOGNIZE) over rows that stay in columns until a partial match needs them.

- `match_operator`: the operator: rows that wait for their time, the partial matches of keys, snapshots.
- `rows_before`: what PREV reads.
- `row_masks`: which conditions each row meets, computed by kernels for all rows that are due; and which rows can
  change nothing, as no match begins with them and their key has no partial match.
- `match_values`: what references to the rows of a match give.
- `scalar_code`: conditions on a partial match as Python functions; what these cannot compute is left to the kernels.

The step of matching is that of `rayflink.cep.nfa`.
"""
