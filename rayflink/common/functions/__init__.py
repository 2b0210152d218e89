"""The functions that users write, one abstract class a kind, and the context that they run in.

`function_classes` holds map, filter, process, window and source functions with PyFlink's names; the other modules
hold families (broadcast, join, two-phase sinks). `runtime_context` is what a function may ask about its task.
User code imports these names from `rayflink.datastream` or `rayflink.common`.
"""
