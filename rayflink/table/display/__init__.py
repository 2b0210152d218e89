"""Tables that show themselves, as notebooks do.

- `row_slots`: the rows of a changelog as they are now.
- `html_tables`: rows, columns and notes in HTML.

Which rows a table shows is decided by `rayflink.table.statements.previews`. Magics, widgets and live tables of
notebooks are in `rayflink.notebooks`; what the SQL shell draws is in `rayflink.shell`.
"""
