"""Count how often each word occurs: the first ten minutes.

Output: a line per word, in order of frequency:

    to           4
    the          3
    be           2
    ...

    python examples/word_count.py                 in this process, the quickest way to try a program
    python examples/word_count.py --ray           the same program on Ray
    python examples/word_count.py --ray FILE      the words of a text file
"""

import argparse

from rayflink.datastream import StreamExecutionEnvironment

LINES = [
    "To be, or not to be, that is the question:",
    "Whether 'tis nobler in the mind to suffer",
    "The slings and arrows of outrageous fortune,",
    "Or to take arms against a sea of troubles",
]


def words(line):
    """The words of a line, in lower case and without punctuation."""
    return [word.strip(".,:;!?'\"").lower() for word in line.split()]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("file", nargs="?", help="a text file instead of Hamlet's lines")
    arguments.add_argument("--ray", action="store_true", help="run on Ray instead of in this process")
    chosen = arguments.parse_args()

    target = "ray" if chosen.ray else "local"
    env = StreamExecutionEnvironment.get_execution_environment({"execution.target": target})
    lines = env.read_text_file(chosen.file) if chosen.file else env.from_collection(LINES)

    # A stream has no end at which to count, so each word gives a new count: the last one a word is its total.
    counts = lines.flat_map(words).map(lambda word: (word, 1)).key_by(0).sum(1)
    totals = dict(counts.execute_and_collect("word count"))

    for word, count in sorted(totals.items(), key=lambda entry: (-entry[1], entry[0])):
        print(f"{word:12} {count}")


if __name__ == "__main__":
    main()
