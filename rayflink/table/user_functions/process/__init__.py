"""Process table functions: functions of whole tables, with state and timers for each partition.

`declarations` has what a program declares of their arguments and states, `function_classes` their base classes,
`contexts` what `eval` and `on_timer` are given, and `kernels` the checked declaration that plans and operators use.
How they are called is in `binding`, how they run in `runtime/processing`.
"""
