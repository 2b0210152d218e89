"""Split a stream of log lines into three: requests to count, slow requests, and malformed lines.

Shows: a process function with two side outputs, ordinary steps after each of the three streams, and malformed data that
is reported with a reason instead of failing the job.

Output: the three streams, one after the other:

    requests by path
      /            3
      /cart        2
      /search      2
    slow
      /search took 2100 ms
      /cart took 950 ms
    not understood
      line 4: 'GET /cart' (a request has 3 words, found 2)
      line 8: 'GET / fast' (a duration in ms is a whole number, found 'fast')

    python examples/side_outputs.py           in this process
    python examples/side_outputs.py --ray     the same program on Ray
"""

import argparse

from rayflink.common import OutputTag
from rayflink.datastream import ProcessFunction, StreamExecutionEnvironment

LINES = [
    "GET / 12",
    "GET /search 2100",
    "GET / 9",
    "GET /cart",
    "POST /cart 950",
    "GET /search 340",
    "GET / 11",
    "GET / fast",
    "GET /cart 30",
]
SLOW_MS = 500
SLOW = OutputTag("slow")
NOT_UNDERSTOOD = OutputTag("not understood")


class Requests(ProcessFunction):
    """(path, ms) of each request; a slow one goes to `SLOW` as well, what is no request to `NOT_UNDERSTOOD`."""

    def process_element(self, value, ctx):
        number, line = value
        words = line.split()
        if len(words) != 3:
            yield NOT_UNDERSTOOD, (number, line, f"a request has 3 words, found {len(words)}")
        elif not words[2].isdigit():
            yield NOT_UNDERSTOOD, (number, line, f"a duration in ms is a whole number, found {words[2]!r}")
        else:
            path, took_ms = words[1], int(words[2])
            if took_ms > SLOW_MS:
                yield SLOW, (path, took_ms)
            yield path, took_ms


def streams(env):
    """(which, text) of all three streams in one."""
    requests = env.from_collection(list(enumerate(LINES, start=1))).process(Requests()).name("requests")
    counted = requests.map(lambda request: (request[0], 1)).key_by(0).sum(1)
    slow = requests.get_side_output(SLOW)
    others = requests.get_side_output(NOT_UNDERSTOOD)
    return counted.map(lambda pair: ("count", *pair)).union(
        slow.map(lambda request: ("slow", f"{request[0]} took {request[1]} ms")),
        others.map(lambda found: ("other", f"line {found[0]}: {found[1]!r} ({found[2]})")),
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--ray", action="store_true", help="run on Ray instead of in this process")
    target = "ray" if arguments.parse_args().ray else "local"
    env = StreamExecutionEnvironment.get_execution_environment({"execution.target": target})

    counts, texts = {}, {"slow": [], "other": []}
    for which, *found in streams(env).execute_and_collect("side outputs"):
        if which == "count":
            counts[found[0]] = found[1]  # each request gives a new count of its path: the last is the total
        else:
            texts[which].append(found[0])

    print("requests by path")
    for path, count in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])):
        print(f"  {path:12} {count}")
    for title, which in (("slow", "slow"), ("not understood", "other")):
        print(title, *(f"  {text}" for text in texts[which]), sep="\n")


if __name__ == "__main__":
    main()
