"""Code of the user's program: wrapped, called, copied, sent to other processes, and blamed by line.

`callables` turns what a user passes (a lambda, a function, an object) into one plain callable. `isolated_copy` and
`value_bytes` copy it as if it had travelled, `unpicklable` names the part that cannot. `call_sites` and
`tracebacks` find the user's line for an error message. `python_files`, `python_archives`, `python_requirements` and
`python_executable` check what a program takes along to other processes. Operators that call the code are in
`rayflink.operators`.
"""
