"""Windows of SQL: one operator, `TableWindowOperator`, composed of parts with one idea each.

    TableWindowOperator     leads time to the windows, and their state to snapshots and back
    +-- WindowTime          the progress of time, and late rows
    +-- WindowContents      the windows with their rows; one of
        +-- SlicedWindows       tumbling, hopping, cumulating and attached windows
        |   +-- Slicing             which slice a row lies in, and which windows are over
        |   |   +-- SliceAssigner       `tumbling_windows`, `hopping_windows`, `cumulating_windows`, `attached_windows`
        |   +-- SliceInput          from batches to partial rows of slices (`slice_inputs`)
        |   +-- SliceStore          partial rows by slice, in memory and in files
        |   +-- RunningWindows      merges that windows share
        |   +-- WindowFiring        from windows that are over to results (`aggregate_firing`)
        +-- SessionWindows      sessions: SessionStore, `sessions`, RowFormat
        +-- EmittingWindows     early and late results: OpenWindows, RowByRow

`window_operators` composes the operators of plans. `local_phase` is the operator in front of an exchange; it reduces
rows to partial rows. `window_table` adds the bounds of windows to rows. `zone_shift` knows the zones' local times.
"""
