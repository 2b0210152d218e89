"""The instructions of deploy/Dockerfile, by stage."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from io import BytesIO

from dockerfile_parse import DockerfileParser

from tests.deploy.cloud_files import ROOT

FILE = ROOT / "deploy" / "Dockerfile"


@dataclass
class Stage:
    """A stage: its base, its name, and its instructions as (instruction, text)."""

    base: str
    name: str
    instructions: list[tuple[str, str]] = field(default_factory=list)

    def arguments(self, instruction: str) -> list[str]:
        """The arguments of all instructions of a kind."""
        return [text for kind, text in self.instructions if kind == instruction]

    def copies(self) -> list[tuple[str, list[str], str]]:
        """What is copied: from which stage ("": the checkout), which paths, and where to."""
        copies = []
        for words in map(shlex.split, self.arguments("COPY")):
            flags = dict(word[2:].split("=", 1) for word in words if word.startswith("--"))
            paths = [word for word in words if not word.startswith("--")]
            copies.append((flags.get("from", ""), paths[:-1], paths[-1]))
        return copies


def stages() -> list[Stage]:
    """The stages, in order."""
    parser = DockerfileParser(fileobj=BytesIO(FILE.read_bytes()))
    result: list[Stage] = []
    for part in parser.structure:
        if part["instruction"] == "FROM":
            words = part["value"].split()
            result.append(Stage(words[0], words[2] if len(words) > 2 else ""))
        elif result and part["instruction"] != "COMMENT":
            result[-1].instructions.append((part["instruction"], part["value"]))
    return result


def default(argument: str) -> str:
    """The default of a build argument."""
    words = [text for stage in stages() for text in stage.arguments("ARG")]
    (value,) = [word.partition("=")[2] for word in words if word.startswith(f"{argument}=")]
    return value
