"""The choice of rules that rewrite plans: the planner's own, and the user's beside them or in their place.

Source: apache/flink CalciteConfig, CalciteConfigBuilder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from rayflink.common.errors import ConfigError

from ..errors import nearest
from ..plan.logical import Relation
from .phases import BATCH_ONLY, LOGICAL, NEEDED, PHASES, Rule, name_of

OwnRule: TypeAlias = Callable[[Relation], Relation]
_KEY = "planner config"


@dataclass(frozen=True)
class PlannerConfig:
    """The rules of the planner, with changes to them; each method gives a new one.

    A rule of one's own is a function that is called with each relation of a plan, inputs first, and returns
    the relation itself, or another one with the same rows and columns. See docs/planner-rules.md.

    >>> def without_sort(relation):
    ...     return relation
    >>> config = PlannerConfig().remove_rule("fold_constants").add_rule(without_sort, after="push_filter_through_join")
    >>> config.rule_names()["logical"]
    ('merge_projections_and_filters', 'push_filter_through_join', 'without_sort', 'push_filter_down')
    """

    _phases: Mapping[str, tuple[Rule, ...]] = field(default_factory=lambda: dict(PHASES))
    _own: tuple[OwnRule, ...] = ()

    def add_rule(
        self, rule: OwnRule, phase: str | None = None, before: str | None = None, after: str | None = None
    ) -> PlannerConfig:
        """Return the same with one more rule.

        Args:
            rule: is known by the name of the function.
            phase: the rule is the last of "normalize", "logical" (where nothing else is said), "physical" or "sources".
            before: it stands directly before the first rule of this name.
            after: directly behind the last rule of this name.

        Raises:
            ConfigError: there is a rule of that name, or none of the other's, or no such phase; or several places.
        """
        name = self._new_name(rule)
        arguments = [argument for argument in (phase, before, after) if argument is not None]
        if len(arguments) > 1:
            raise ConfigError(
                _KEY, ", ".join(map(str, arguments)), "one place", f"add {name!r} by phase, before or after"
            )
        if before is None and after is None:
            chosen = LOGICAL if phase is None else phase
            if chosen not in self._phases:
                raise ConfigError(_KEY, chosen, f"a phase: {', '.join(PHASES)}", "correct the name of the phase")
            return self._with({**self._phases, chosen: (*self._phases[chosen], rule)}, rule)
        beside = str(before or after)
        places = [
            (phase, position) for phase, rules in self._phases.items() for position in self._places(beside, rules)
        ]
        if not places:
            raise self._unknown(beside)
        chosen, position = places[0] if after is None else places[-1]
        rules, position = self._phases[chosen], position + (after is not None)
        return self._with({**self._phases, chosen: (*rules[:position], rule, *rules[position:])}, rule)

    def replace_rule(self, name: str, rule: OwnRule) -> PlannerConfig:
        """Return the same with a rule in the place of another, wherever that is applied.

        Raises:
            ConfigError: there is no rule of that name, or the new one has the name of a third.
        """
        self._check(name)
        if name_of(rule) != name:
            self._new_name(rule)
        changed = {
            phase: tuple(rule if name_of(candidate) == name else candidate for candidate in rules)
            for phase, rules in self._phases.items()
        }
        return self._with(changed, rule)

    def remove_rule(self, name: str) -> PlannerConfig:
        """Return the same without a rule.

        Raises:
            ConfigError: there is none of that name, or queries cannot be run without it.
        """
        self._check(name)
        if name in NEEDED and any(name_of(rule) == name and rule not in self._own for rule in self._all()):
            raise ConfigError(_KEY, name, "a rule that can be left out", "replace it: without it queries are errors")
        changed = {
            phase: tuple(rule for rule in rules if name_of(rule) != name) for phase, rules in self._phases.items()
        }
        return replace(self, _phases=changed)

    def rule_names(self, is_batch: bool = True) -> dict[str, tuple[str, ...]]:
        """Return the names of the rules of each phase, in order; with those of batch mode alone where `is_batch`."""
        return {
            phase: tuple(name for name in map(name_of, rules) if is_batch or name not in BATCH_ONLY)
            for phase, rules in self._phases.items()
        }

    def rules(self, phase: str) -> tuple[tuple[Rule, bool], ...]:
        """Return the rules of a phase, and whether each is one of one's own."""
        return tuple((rule, rule in self._own) for rule in self._phases[phase])

    def _with(self, phases: Mapping[str, tuple[Rule, ...]], rule: OwnRule) -> PlannerConfig:
        return replace(self, _phases=phases, _own=(*self._own, rule))

    def _all(self) -> list[Rule]:
        return [rule for rules in self._phases.values() for rule in rules]

    @staticmethod
    def _places(name: str, rules: tuple[Rule, ...]) -> list[int]:
        return [position for position, rule in enumerate(rules) if name_of(rule) == name]

    def _new_name(self, rule: OwnRule) -> str:
        if not callable(rule) or name_of(rule) == "<lambda>":
            raise ConfigError(_KEY, repr(rule), "a function with a name", "write it with def")
        name = name_of(rule)
        if name in map(name_of, self._all()):
            raise ConfigError(_KEY, name, "a name that no other rule has", "rename the function, or use replace_rule")
        return name

    def _check(self, name: str) -> None:
        if name not in map(name_of, self._all()):
            raise self._unknown(name)

    def _unknown(self, name: str) -> ConfigError:
        known = sorted(set(map(name_of, self._all())))
        wanted = f"the name of a rule{nearest(name, known)}"
        return ConfigError(_KEY, name, wanted, f"known are {', '.join(known)}")


__all__ = ["OwnRule", "PlannerConfig"]
