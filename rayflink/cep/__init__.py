"""Complex event processing: patterns of events, and the streams of their matches. See docs/cep.md.

- `pattern`, `quantifier`, `conditions`, `column_conditions`, `skip_strategies`: the Pattern API, as values; `growth`
  and `explain` describe a pattern.
- `saved_matches`: partial matches in savepoints, for people.
- `cep`, `match_stream`, `functions`: a stream, how it is matched, and the functions that matches are given to;
  `pattern_stream` has one pattern, `patterns_stream` several, which are `rules` and may change.
- the room `nfa` compiles patterns and matches events; the room `runtime` has the operator with its state.

PyFlink has no such API; the names are those of Flink's Java API. SQL's MATCH_RECOGNIZE, in `rayflink.table`, stands on
the same automata.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.cep.cep import CEP as CEP
    from rayflink.cep.conditions import IterativeCondition as IterativeCondition
    from rayflink.cep.conditions import SimpleCondition as SimpleCondition
    from rayflink.cep.errors import MalformedPatternException as MalformedPatternException
    from rayflink.cep.functions import PatternFlatSelectFunction as PatternFlatSelectFunction
    from rayflink.cep.functions import PatternFlatTimeoutFunction as PatternFlatTimeoutFunction
    from rayflink.cep.functions import PatternProcessFunction as PatternProcessFunction
    from rayflink.cep.functions import PatternSelectFunction as PatternSelectFunction
    from rayflink.cep.functions import PatternTimeoutFunction as PatternTimeoutFunction
    from rayflink.cep.functions import TimedOutPartialMatchHandler as TimedOutPartialMatchHandler
    from rayflink.cep.pattern import GroupPattern as GroupPattern
    from rayflink.cep.pattern import Pattern as Pattern
    from rayflink.cep.pattern_stream import PatternStream as PatternStream
    from rayflink.cep.patterns_stream import PatternsStream as PatternsStream
    from rayflink.cep.quantifier import Quantifier as Quantifier
    from rayflink.cep.quantifier import WithinType as WithinType
    from rayflink.cep.rules import PatternMatch as PatternMatch
    from rayflink.cep.rules import PatternRule as PatternRule
    from rayflink.cep.rules import RejectedRule as RejectedRule
    from rayflink.cep.skip_strategies import AfterMatchSkipStrategy as AfterMatchSkipStrategy
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.cep.cep": "CEP",
            "rayflink.cep.conditions": "IterativeCondition SimpleCondition",
            "rayflink.cep.errors": "MalformedPatternException",
            "rayflink.cep.functions": (
                "PatternFlatSelectFunction PatternFlatTimeoutFunction PatternProcessFunction PatternSelectFunction "
                "PatternTimeoutFunction TimedOutPartialMatchHandler"
            ),
            "rayflink.cep.pattern": "GroupPattern Pattern",
            "rayflink.cep.pattern_stream": "PatternStream",
            "rayflink.cep.patterns_stream": "PatternsStream",
            "rayflink.cep.quantifier": "Quantifier WithinType",
            "rayflink.cep.rules": "PatternMatch PatternRule RejectedRule",
            "rayflink.cep.skip_strategies": "AfterMatchSkipStrategy",
        },
    )
