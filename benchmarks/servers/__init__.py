"""Servers on loopback that benchmarks and tests start: Kafka, PostgreSQL, MariaDB and object stores.

Each is bounded in memory, has a free port and a folder of its own, and ends with the process that started it
(`bound_process.py`). Where a server is not installed, `pytest.skip` says what installs it. `bring_servers.py` brings
those that are in no package of Debian. What is imported here is shipped to Ray with a benchmark, and `tests/` is not.
"""
