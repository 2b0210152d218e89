"""Functions of dates, times and intervals, and the strings that they are read from and written as.

`dates` takes times apart and rounds them, `time_sums` adds intervals, `time_casts` converts; `time_format`,
`date_format` and `time_patterns` read and write strings, by SQL's forms and by Java's patterns; `zones` converts
between instants and local times. Columns enter and leave.

No function here reads a clock: the time of a query is an argument.
"""
