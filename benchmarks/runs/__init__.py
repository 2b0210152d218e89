"""How benchmarks run: each run of a contestant is a process, runs take turns, and a report compares them.

- `contestants.py`: the commands of our engine and of each peer; `environments.py`: the virtual environments of peers.
- `rounds.py` runs them in turns; `run_one.py` is what one Python process of a run does.
- `job_numbers.py`, `machine.py` and `report.py`: the figures of a job, of the machine, and the tables made of them.
- `ray_bounded.py`, `starting_gun.py` and `page_cache.py`: a bounded Ray, sources that start together, a bound on file
  pages.

What a benchmark measures is in the folders beside this one, whose modules `ours_NAME.py` define `run`.
"""
