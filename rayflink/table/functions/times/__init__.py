"""Functions of dates, times and intervals, and the strings that they are read from and written as."""
