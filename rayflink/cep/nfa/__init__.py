"""Patterns as automata: compiling them, and matching events against them, without streams, state or clocks.

- `automaton` and `logic`: a compiled pattern, as a value; `compiler` makes it of a pattern.
- `masks`: the conditions that depend on an event alone, for many events at a time.
- `partial_matches`: what is known of a key between two events; `match_heap`: matches that wait to be emitted.
- `raw_values`: the values of columns as partial matches have them, where events are rows of a table.
- `matcher`: the step: an event, or the passing of time, applied to the partial matches of a key.

The operator that keeps partial matches in keyed state is in `rayflink.cep.runtime`.
"""
