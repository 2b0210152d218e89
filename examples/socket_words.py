"""Count words from a TCP server in windows of ten seconds, by the time in each line.

Without arguments the program starts its own server on this machine. The server sends ten lines `second word ...`, some
of them too early or too late, and then closes the connection, which ends the job. With HOST and PORT the program reads
from your server, such as `nc -lk 9999`, until that ends or you press Ctrl-C.

Shows: a socket source, event time that is read from the lines, a custom watermark generator that is 5 seconds behind
and sends a watermark with each record, windows that fire while the stream continues, and a record that is too late.

Output: each window when the watermark has passed its end, then the words that arrived too late:

    00:00 - 00:10  the 3, tide 2, turns 1
    00:10 - 00:20  the 2, ship 2, sails 1
    00:20 - 00:30  rain 2
    00:30 - 00:40  harbour 1
    too late: 7 s, gull

    python examples/socket_words.py                    in this process, with a server of its own
    python examples/socket_words.py --ray              on Ray
    python examples/socket_words.py HOST PORT          lines such as `12 the tide` from a server of yours
"""

import argparse
import socket
import threading
from collections import Counter
from contextlib import contextmanager

from rayflink.common import Duration, OutputTag, Watermark, WatermarkGenerator, WatermarkStrategy
from rayflink.datastream import ProcessAllWindowFunction, StreamExecutionEnvironment
from rayflink.datastream.connectors import SocketTextSource
from rayflink.datastream.window import TumblingEventTimeWindows

LINES = (
    "1 the tide",
    "4 the tide turns",
    "12 the ship",
    "9 the",  # the watermark is at 7 s, so the first window is still open: in time
    "16 the ship sails",  # the watermark moves to 11 s: the first window fires
    "7 gull",  # its window has fired: too late
    "21 rain",
    "26 rain",  # 21 s: the second window fires
    "36 harbour",  # 31 s: the third one
)
BEHIND_MS = 5_000
TOO_LATE = OutputTag("too late")


class WithEachRecord(WatermarkGenerator):
    """Watermarks `BEHIND_MS` behind the greatest timestamp, sent at once; the usual ones are sent every 200 ms."""

    def __init__(self):
        self.greatest_ms = 0

    def on_event(self, event, event_timestamp, output):
        self.greatest_ms = max(self.greatest_ms, event_timestamp)
        output.emit_watermark(Watermark(self.greatest_ms - BEHIND_MS))

    def on_periodic_emit(self, output):
        """Every watermark has been sent already."""


def timed_words(line):
    """(second, word) for each word of a line `second word ...`."""
    second, *words = line.split()
    return [(int(second), word) for word in words]


class MostFrequent(ProcessAllWindowFunction):
    """A line for each window: its words, the most frequent first."""

    def process(self, context, elements):
        counts = Counter(word for _, word in elements)
        start, end = (f"00:{edge // 1000:02}" for edge in (context.window().start, context.window().end))
        yield f"{start} - {end}  " + ", ".join(f"{word} {count}" for word, count in counts.most_common())


@contextmanager
def own_server():
    """A server on this machine that sends `LINES` to the first who connects; gives its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            connection, _ = server.accept()
            with connection:
                connection.sendall("".join(f"{line}\n" for line in LINES).encode())

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]


def count_words(env, host, port):
    """The program; prints what its docstring says."""
    by_second = WatermarkStrategy.for_generator(WithEachRecord).with_timestamp_assigner(
        lambda timed_word, _: timed_word[0] * 1000
    )
    windows = (
        env.from_source(SocketTextSource(host, port), source_name="socket")
        .flat_map(timed_words)
        .name("words")
        .assign_timestamps_and_watermarks(by_second)
        .window_all(TumblingEventTimeWindows.of(Duration.of_seconds(10)))
        .side_output_late_data(TOO_LATE)
        .process(MostFrequent())
        .name("most frequent")
    )
    late = windows.get_side_output(TOO_LATE).map(lambda timed_word: f"too late: {timed_word[0]} s, {timed_word[1]}")
    kept = []
    for line in windows.union(late).execute_and_collect("socket words"):
        if line.startswith("too late"):
            kept.append(line)
        else:
            print(line, flush=True)
    for line in kept:
        print(line)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("address", nargs="*", metavar="HOST PORT", help="a server of yours")
    arguments.add_argument("--ray", action="store_true", help="run on Ray instead of in this process")
    chosen = arguments.parse_args()

    target = "ray" if chosen.ray else "local"
    env = StreamExecutionEnvironment.get_execution_environment({"execution.target": target})
    if chosen.address:
        host, port = chosen.address
        count_words(env, host, int(port))
    else:
        with own_server() as port:
            count_words(env, "127.0.0.1", port)


if __name__ == "__main__":
    main()
