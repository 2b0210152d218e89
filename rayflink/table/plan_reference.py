"""References to compiled plans: in a file, or as JSON."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["FilePlanReference", "JsonContentPlanReference", "PlanReference"]


class PlanReference:
    """A plan that `TableEnvironment.load_plan` and `execute_plan` read.

    >>> PlanReference.from_json_string('{"planVersion": 1}').get_content()
    '{"planVersion": 1}'
    """

    @staticmethod
    def from_file(path: str | Path) -> FilePlanReference:
        """Return a reference to a plan in a file, which is read when the plan is loaded."""
        return FilePlanReference(Path(path))

    @staticmethod
    def from_json_string(json_string: str) -> JsonContentPlanReference:
        """Return a reference to a plan as JSON, as `CompiledPlan.as_json_string` returns it."""
        return JsonContentPlanReference(json_string)


@dataclass(frozen=True)
class FilePlanReference(PlanReference):
    """A plan in a file."""

    path: Path

    def get_file(self) -> Path:
        """Return the path of the file, without links and relative parts."""
        return Path(os.path.realpath(self.path))


@dataclass(frozen=True)
class JsonContentPlanReference(PlanReference):
    """A plan as JSON."""

    content: str

    def get_content(self) -> str:
        """Return the JSON."""
        return self.content
