"""The registry of options, and the ways in which their values are given, read and checked.

`registry` names every option with its type, default and description. `option_types` reads and writes values
(durations, memory sizes, enums), `option_sources` merges a file, the environment and the command line, and
`ignored_options` warns about keys that have no effect. `rayflink.common.configuration` is the user's view.
"""
