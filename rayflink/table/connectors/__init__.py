"""Tables of the world outside, chosen by the option `connector`.

`contract` is the interface: options in, columns in or out; `connector_registry` has the connectors by name. `files`
with `formats` and `partitions` is `filesystem`; `datagen`, `nexmark`, `print_and_blackhole` and `in_memory` need no
system. The rooms have the others: `kafka`, `messages` (formats of messages), `cdc`, `jdbc` and `lakes`. `statistics`
has what the planner estimates rows from.

Definitions of tables enter; sources and sinks of `rayflink.connectors` leave. How a system is spoken to is written
there, not here.
"""
