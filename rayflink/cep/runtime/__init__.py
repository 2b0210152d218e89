"""The operator of pattern matching: it sorts events by time, keeps partial matches in keyed state, and emits matches.

- `match_state`: the tables of a key's waiting events and partial matches, and what may change between two programs.
- `matching_operator`: events that wait, timers and results of the operators below, but for `cep_operator`.
- `cep_operator`: the operator of one pattern; `column_batches`: which rows of a batch of columns it needs.
- `patterns_operator`: the common part of those with several automata, `pattern_runs`: `finishing_operator` has one
  pattern and old ones, `dynamic_operator` the patterns of rules that change, which `rule_book` orders.
- `recent_events`: the events since the last watermark, which are not in state yet; `event_order`: how they are sorted.
- `match_metrics`: what is counted by condition and by state of the automaton.

The step of matching itself is in `rayflink.cep.nfa`, and knows neither state nor time.
"""
