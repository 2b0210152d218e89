"""The command line: `rayflink run`, `list`, `status`, `stop`, `savepoint`, `state`, `sql` and the others.

`main` parses the arguments and calls one module a command. Commands talk to jobs through `rayflink.launch` and print
what they get by `rayflink.common.metrics`; they decide nothing about a job. Arguments enter; lines of text and an
exit status leave. What a command shares with a program, such as the check of a savepoint, belongs to the package
that it is about.
"""
