"""Expressions as programs write them: each builds the tree that the parser would make of the text of SQL."""
