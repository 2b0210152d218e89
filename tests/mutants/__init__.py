"""Break the behaviour of rows of docs/flink-semantics.md and see whether the tests they cite fail.

`make mutants` runs it by hand. Enters: a seed and a number of rows. Leaves: a report of the changes of the product that
no cited test noticed. `mutations` changes one place of a function, `tracing` records what each test runs, `sampling`
draws rows and changes, `other_tests` finds tests that a row does not cite, `trial` runs tests against a change, `named`
has changes written by hand, `report` prints. Not here: what a test should assert.
"""
