"""The laws of connectors, which `check_source` and `check_sink` hold a connector against.

- `subjects`: a connector under test, with the outside system behind it.
- `crash_points`: places in a reader, a writer or a committer at which a run is made to fail.
- `crashing_job`: a job in this process that loses tasks, ends without notice, and goes on with other parallelisms.
- `laws`: what must be so after each run.

All is drawn from a seed, but the outside system is a real one, so a run takes real time.
"""
