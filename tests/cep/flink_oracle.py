"""Compares rayflink's matches with those of Flink's own CEP, for random patterns and streams.

    python -m tests.cep.flink_oracle --pairs 10000 --seed 1
    python -m tests.cep.flink_oracle --pairs 500 --seed 7 --record    writes the golden file that the tests read

It needs a JDK; Flink's jars are downloaded from PyPI the first time. The pairs run in one JVM.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.runs.environments import Environment, Unavailable, cache_directory
from tests.cep.described_patterns import Described
from tests.cep.flink_differences import difference_of, our_answer
from tests.cep.random_patterns import RandomPatterns

GOLDEN = Path(__file__).parents[1] / "golden" / "cep" / "flink_matches.jsonl"
_SOURCE = Path(__file__).with_name("CepOracle.java")
_JARS = Environment("flink", ("apache-flink-libraries==2.3.0",), dependencies=False)
_LIMIT_S = 1800


def java_program(source: Path, log_level: str = "ERROR") -> list[str]:
    """Return the command that runs a Java program with Flink on its class path, without its arguments.

    Args:
        source: its only file, named like its class; compiled when it has changed.

    Raises:
        Unavailable: there is no JDK, or Flink's jars cannot be installed.
    """
    java, javac = shutil.which("java"), shutil.which("javac")
    if java is None or javac is None:
        raise Unavailable("no java and javac on PATH: install a JDK 17 (openjdk-17-jdk-headless)")
    jars = f"{_JARS.site_packages(cache_directory()) / 'pyflink' / 'lib'}/*"
    classes = cache_directory() / f"classes-{hashlib.sha256(source.read_bytes()).hexdigest()[:12]}"
    if not (classes / f"{source.stem}.class").exists():
        command = [javac, "-nowarn", "-cp", jars, "-d", str(classes), str(source)]
        subprocess.run(command, check=True, timeout=_LIMIT_S)
    return [java, "-Xmx1g", f"-Dlog4j2.level={log_level}", "-cp", f"{classes}:{jars}", source.stem]


def flink_answers(pairs: Iterable[Described]) -> list[dict[str, Any]]:
    """Return what Flink finds for each pair: `found` and, where it fails, `error`.

    Raises:
        Unavailable: there is no JDK, or Flink's jars cannot be installed.
    """
    program = java_program(_SOURCE)
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder) / "pairs", Path(folder) / "answers"
        asked.write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
        subprocess.run([*program, str(asked), str(answered)], check=True, timeout=_LIMIT_S)
        return [json.loads(line) for line in answered.read_text().splitlines()]


def random_pairs(count: int, seed: int) -> list[Described]:
    """Return pairs of patterns and streams that the seed decides."""
    return [RandomPatterns(Random(f"{seed} {number}")).pair() for number in range(count)]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=5, help="differences to print")
    parser.add_argument("--known", default="", help="print also known differences that begin so")
    parser.add_argument("--record", action="store_true", help="write the golden file")
    options = parser.parse_args(arguments)
    pairs = random_pairs(options.pairs, options.seed)
    try:
        answers = flink_answers(pairs)
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return 0
    verdicts: Counter[str] = Counter()
    shown = 0
    recorded: list[str] = []
    shown_verdicts = ("DIFFERENT", *([f"known: {options.known}"] if options.known else []))
    for pair, answer in zip(pairs, answers, strict=True):
        verdict = difference_of(pair, answer)
        verdicts[verdict] += 1
        if answer["found"] or "error" in answer and not verdict.startswith("left out"):
            recorded.append(json.dumps({**pair, "flink": answer}, separators=(",", ":")))
        if verdict.startswith(shown_verdicts) and shown < options.show:
            shown += 1
            print(json.dumps(pair), "\n  flink", answer, "\n  ours ", our_answer(pair))
    for verdict, count in sorted(verdicts.items()):
        print(f"{count:7}  {verdict}")
    if options.record:
        GOLDEN.parent.mkdir(parents=True, exist_ok=True)
        GOLDEN.write_text("\n".join(recorded) + "\n")
    return 1 if any(verdict.startswith("DIFFERENT") for verdict in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
