"""The operator of pattern matching: it sorts events by time, keeps partial matches in keyed state, and emits matches.

- `match_state`: the tables of a key's waiting events and partial matches, and what may change between two programs.
- `cep_operator`: the operator; `column_batches`: which rows of a batch of columns it needs.
- `recent_events`: the events since the last watermark, which are not in state yet.
- `match_metrics`: what is counted by condition and by state of the automaton.

The step of matching itself is in `rayflink.cep.nfa`, and knows neither state nor time.
"""
