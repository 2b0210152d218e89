"""The exchange of records between tasks: from the writer of one task to the input gate of the next.

A record enters through `writer`, which asks a selector for its channel and appends it to an open batch. Encoded
buffers wait in a `subpartition` until the receiver has granted credit; `endpoint` puts them into envelopes and
takes them out. On the other side `gate` offers the buffers of all channels in turn, `current_buffer` decodes
them slice by slice, and `alignment` decides when the barriers of all channels have come.

No transport is here: a runner carries envelopes. Operators, state and checkpoint files do not belong here.
"""
