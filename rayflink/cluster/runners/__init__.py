"""The runners of a cluster: on Ray, where each job has a coordinator of its own, and in this process.

- `runner`: the protocol of both.
- `ray_runner`, `ray_processes`: jobs on Ray and the processes of their slots.
- `local_runner`, `local_job`, `local_processes`: jobs in threads, for a laptop and tests; `printed_lines`: what they
  print.

Stored submissions enter, jobs that can be read and asked leave.

Which jobs there should be is not decided here, but by the dispatcher.
"""
