"""Plans for people: EXPLAIN as text, and as a picture.

`explain_text` has the sections of EXPLAIN with Flink's titles, `plan_advice` its advice; `plan_drawing` draws a plan in
SVG, with boxes where `layered_layout` places them. Steps come from `rayflink.table.plan.explain_steps`,
costs from `rayflink.table.optimizer`. Nothing here changes a plan, and nothing here knows the statement; the shell and
notebooks show what leaves.
"""
