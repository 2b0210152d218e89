"""One run of one contestant in a process of its own: `python -m benchmarks.runs.run_one MODULE DATA PARAMS`.

The contract. MODULE holds `run(data_path, **params) -> dict`, where `data_path` is a string, or None where the
benchmark has no file. The dict's keys are text and its values JSON. Three of them are known to every report:

- `rows`: input records worked, counted by the job itself (for W1: words);
- `seconds_total`: from the entry of `run` to the end of the job;
- `seconds_startup`: from the entry of `run` to the first record in the user's first function.

Any further number gets a line of its own in the report. This module adds the time from the start of the process
to the entry of `run` (interpreter, imports) to both times, and prints the dict as the last line of its output.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time

SPAWNED = "RAYFLINK_BENCH_SPAWNED"
"""The environment variable with the epoch seconds at which the harness started the process."""


def main(module: str, data: str, params: str) -> None:
    """Run `module` on `data` ("" for none) with the JSON object `params` as keyword arguments."""
    run = importlib.import_module(module).run
    before = time.time() - float(os.environ[SPAWNED])
    result = run(data or None, **json.loads(params))
    for seconds in ("seconds_total", "seconds_startup"):
        if seconds in result:
            result[seconds] += before
    sys.stdout.flush()
    print("\n" + json.dumps(result), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
