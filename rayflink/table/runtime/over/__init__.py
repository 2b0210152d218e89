"""Functions OVER the rows around each row: streams, where these are rows before it, and whole tables.

- `over_spec`: what is computed. `over_operator`: the operator of streams: rows that wait for their time, the state of
  keys. `running_results`: results of rows in the order of time from what is stored of the rows before them.
- `frame_spans`: the frame of each row as a span of rows, and values folded over spans. `frame_aggregates`: aggregates
  over the frames of rows. `bounded_over`: whole tables, whose rows are sorted first.

Batches of columns enter and leave; there is no loop over rows or keys.
"""
