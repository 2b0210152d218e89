"""Says whether every line that `job.py` has to write is there exactly once. It shares no code with the engine.

    python tests/exactly_once/verifier.py --out FOLDER --lanes 4 --keys 10 --records 10000 --window 100
    python tests/exactly_once/verifier.py --postgres "host=... dbname=..." --lanes 4 ...

Prints ALL-RECORDS-DELIVERED-ONCE and the counts and ends with 0; else it lists what is missing, repeated and wrong and
ends with 1. What was expected nowhere is read from the arguments alone, never from the output.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

SHOWN = 20
"""Lines of each kind that are listed."""


@dataclass(frozen=True)
class Expectation:
    """The arithmetic of the job.

    Args:
        lanes: each has `keys` keys and `records` positions.
        window: positions of a window.
    """

    lanes: int
    keys: int
    records: int
    window: int

    def lines(self) -> Iterator[str]:
        """Every line, once."""
        for lane in range(self.lanes):
            for slot in range(self.keys):
                key = lane * self.keys + slot
                for count, position in enumerate(range(slot, self.records, self.keys), start=1):
                    total = count * slot + self.keys * count * (count - 1) // 2
                    yield f"r,{key},{position},{count},{total}"
                for start in range(0, self.records, self.window):
                    end = min(start + self.window, self.records)
                    inside = [position for position in range(start, end) if position % self.keys == slot]
                    if inside:
                        yield f"w,{key},{start},{len(inside)},{sum(inside)}"


@dataclass
class Verdict:
    """What was found against what was wanted."""

    records: int = 0
    windows: int = 0
    missing: list[str] = field(default_factory=list)
    repeated: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    @property
    def is_exact(self) -> bool:
        """Every line is there once, and no other."""
        return not (self.missing or self.repeated or self.wrong)

    def report(self) -> str:
        """For people, and for who greps."""
        if self.is_exact:
            return f"ALL-RECORDS-DELIVERED-ONCE records={self.records} windows={self.windows}"
        repeated = [f"{line} ({times} times)" for line, times in self.repeated.items()]
        kinds = {"missing": self.missing, "repeated": repeated, "wrong": self.wrong}
        counts = " ".join(f"{kind}={len(lines)}" for kind, lines in kinds.items())
        told = [f"NOT-EXACTLY-ONCE {counts} of records={self.records} windows={self.windows}"]
        for kind, lines in kinds.items():
            told += [f"{kind}: {line}" for line in lines[:SHOWN]]
            told += [f"{kind}: and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
        return "\n".join(told)


def verify(expected: Expectation, found: Iterable[str]) -> Verdict:
    """Compare lines with what the arithmetic says."""
    verdict = Verdict()
    seen: dict[str, int] = {}
    for line in expected.lines():
        seen[line] = 0
        verdict.records += line[0] == "r"
        verdict.windows += line[0] == "w"
    for line in found:
        if line in seen:
            seen[line] += 1
        else:
            verdict.wrong.append(line)
    verdict.missing = [line for line, times in seen.items() if times == 0]
    verdict.repeated = {line: times for line, times in seen.items() if times > 1}
    return verdict


def visible_files(folder: Path) -> list[Path]:
    """The files a reader of the folder sees: neither they nor a folder above them begins with a dot or underscore."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return [path for path in files if not any(part[0] in "._" for part in path.relative_to(folder).parts)]


def lines_of_files(folder: Path) -> Iterator[str]:
    """The lines of all finished part files; one that is cut off keeps what there is of it."""
    for path in visible_files(folder):
        yield from path.read_text(encoding="utf-8").splitlines()


def lines_of_table(dsn: str) -> list[str]:
    """The rows of the table `lines`, which has one column of that meaning."""
    import psycopg

    with psycopg.connect(dsn) as connection:
        return [str(line) for (line,) in connection.execute("SELECT line FROM lines")]


def main(given: list[str]) -> int:
    """The verdict, printed; the code to end with."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder of the part files")
    parser.add_argument("--postgres", help="connection string of the database whose table `lines` is read instead")
    for name in ("lanes", "keys", "records", "window"):
        parser.add_argument(f"--{name}", type=int, required=True)
    asked = parser.parse_args(given)
    expected = Expectation(asked.lanes, asked.keys, asked.records, asked.window)
    if asked.postgres:
        verdict, where = verify(expected, lines_of_table(asked.postgres)), "table=lines"
    elif asked.out is None or not asked.out.is_dir():
        print(f"NOT-EXACTLY-ONCE there is no folder {asked.out}")
        return 1
    else:
        verdict = verify(expected, lines_of_files(asked.out))
        where = f"files={len(visible_files(asked.out))}"
    print(f"{verdict.report()} {where}")
    return 0 if verdict.is_exact else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
