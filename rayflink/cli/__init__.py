"""The command line: `rayflink run`, `list`, `status`, `stop`, `savepoint`, `state`, `sql` and the others.

`main` parses the arguments and calls one module a command. Commands talk to jobs through `rayflink.launch` and
print what they get by `rayflink.common.metrics`; they decide nothing about a job.
"""
