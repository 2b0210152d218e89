"""The simulator: a whole job in one thread, every choice drawn from a seed.

`cluster` puts the parts together and is what faults act on. Its parts: `scheduler` draws which event happens next;
`tasks`, `network`, `storage` and `coordinators` each offer the events of their own; `fault_plan` says what goes wrong.
A `SimulationContext` gives them chance, the time and the story that they write.

The tasks and the decisions are those of the real runners. Faults, stories and the simulated disk, which users see as
values, are in `rayflink.testing`; nothing here is needed to write a test.
"""
