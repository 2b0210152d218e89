"""MATCH_RECOGNIZE behind a table of FROM."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar, NoReturn

from sqlglot import Token, TokenType, exp

from .dialect import FlinkParser
from .statements import Tree

_RUNS = ("FINAL", "RUNNING")
_PATTERN = "write variables with quantifiers, such as PATTERN (A B+ C)"
_QUANTIFIERS = {"*": ("0", ""), "+": ("1", ""), "?": ("0", "1")}


class MatchClause(exp.TableAlias):
    """MATCH_RECOGNIZE (...), with the alias of its rows.

    Args:
        rows: "ONE" or "ALL" rows per match.
        after: "PAST LAST ROW", "TO NEXT ROW", "TO FIRST" or "TO LAST"; of these `after_variable` is the variable.
        define: the conditions of variables, as aliases.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "this": False, "columns": False, "partition_by": False, "order": False, "measures": False, "rows": True,
        "after": True, "after_variable": False, "pattern": True, "within": False, "subsets": False, "define": True,
    }  # fmt: skip


class PatternVariable(exp.Expression):
    """A variable in a pattern."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class PatternSequence(exp.Expression):
    """Patterns that follow one another."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}


class PatternChoice(exp.Expression):
    """Patterns of which one occurs."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}


class PatternRepetition(exp.Expression):
    """A pattern with a quantifier: numbers as strings, `most` is "" without an upper bound."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "least": True, "most": True, "reluctant": True}


class Subset(exp.Expression):
    """The name of several variables."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": True}


class MatchClauses(FlinkParser):
    """The part of the statement parser for MATCH_RECOGNIZE."""

    text: str
    _is_in_match = False

    def refuse(self, problem: str, remedy: str, token: Token | None = None) -> NoReturn:
        """Raise an error about the next token."""
        raise NotImplementedError

    def _need(self, *words: str) -> None:
        raise NotImplementedError

    def _match_follows(self) -> bool:
        is_word = self._curr.token_type is not TokenType.IDENTIFIER and self._curr.text.upper() == "MATCH_RECOGNIZE"
        return is_word and self._next.token_type is TokenType.L_PAREN

    def _parse_unary(self) -> Any:
        """FINAL and RUNNING before a function."""
        first, word = self._curr, self._curr.text.upper()
        if self._is_in_match and word in _RUNS and self._next.text[:1].isidentifier():
            self._advance()
            function = self._parse_function()
            if function is None:
                self.refuse(f"a function is wanted behind {word}", f"write {word} LAST(A.x)")
            return self._call(word, function).update_positions(first)
        return super()._parse_unary()

    def _match_clause(self, alias_tokens: Collection[TokenType] | None) -> MatchClause:
        """Parse the clause, and the alias behind it."""
        first = self._curr
        self._advance(2)
        outer, self._is_in_match = self._is_in_match, True
        clause = MatchClause(
            partition_by=self._parse_csv(self._parse_disjunction) if self._words("PARTITION", "BY") else [],
            order=self._parse_order(),
            measures=self._parse_csv(self._measure) if self._words("MEASURES") else [],
            rows=self._rows_per_match(),
            **self._after_match(),
            **self._pattern_clause(),
            subsets=self._parse_csv(self._subset) if self._words("SUBSET") else [],
            define=self._definitions(),
        )
        self._is_in_match = outer
        self._need(")")
        clause.meta.update(start=first.start, end=first.end)
        if self._match_follows():
            self.refuse("a second MATCH_RECOGNIZE", "put the first one into a query in parentheses")
        alias = self._parse_table_alias(alias_tokens)
        if alias is not None:
            clause.set("this", alias.this)
            clause.set("columns", alias.args.get("columns"))
        return clause

    def _measure(self) -> Tree:
        first = self._curr
        tree = self._parse_disjunction()
        if tree is None:
            self.refuse("a measure is wanted", "write for example LAST(A.price) AS last_price")
        self._need("AS")
        name = self._identifier("a name of the measure")
        measure = exp.Alias(this=tree, alias=name)
        measure.meta.update(start=first.start, end=self._prev.end)
        return measure

    def _identifier(self, what: str) -> Tree:
        first = self._curr
        kinds = (TokenType.STRING, TokenType.NUMBER, TokenType.L_PAREN, TokenType.R_PAREN, TokenType.COMMA)
        if not first or first.token_type in kinds or not first.text[:1].isidentifier():
            if not first or first.token_type is not TokenType.IDENTIFIER:
                self.refuse(f"{what} is wanted, found {first.text if first else 'the end'!r}", _PATTERN)
        self._advance()
        name = exp.to_identifier(first.text, quoted=first.token_type is TokenType.IDENTIFIER)
        name.meta.update(start=first.start, end=first.end)
        return name

    def _rows_per_match(self) -> str:
        if self._words("ALL"):
            self._need("ROWS", "PER", "MATCH")
            for words in (("SHOW", "EMPTY", "MATCHES"), ("OMIT", "EMPTY", "MATCHES"), ("WITH", "UNMATCHED", "ROWS")):
                start = self._curr
                if self._words(*words):
                    problem = f"ALL ROWS PER MATCH {' '.join(words)} is not supported"
                    self.refuse(problem, "leave it out: a match has at least one row", start)
            return "ALL"
        if self._words("ONE"):
            self._need("ROW", "PER", "MATCH")
        return "ONE"

    def _after_match(self) -> dict[str, Any]:
        """Parse AFTER MATCH SKIP; without it matching goes on at the next row, as in Flink."""
        if not self._words("AFTER", "MATCH"):
            return {"after": "TO NEXT ROW"}
        self._need("SKIP")
        if self._words("PAST", "LAST", "ROW") or self._words("PAST", "LAST"):
            return {"after": "PAST LAST ROW"}
        self._need("TO")
        if self._words("NEXT", "ROW"):
            return {"after": "TO NEXT ROW"}
        how = "TO FIRST" if self._words("FIRST") else "TO LAST"
        if how == "TO LAST":
            self._words("LAST")
        return {"after": how, "after_variable": self._identifier("a variable of the pattern")}

    def _pattern_clause(self) -> dict[str, Any]:
        if not self._words("PATTERN"):
            text = self._curr.text if self._curr else "the end"
            self.refuse(f"PATTERN is wanted, found {text!r}", "write PATTERN (A B+ C) behind MEASURES and AFTER MATCH")
        self._need("(")
        pattern = self._choice()
        self._need(")")
        within = None
        if self._words("WITHIN"):
            within = self._parse_interval()
            if within is None:
                self.refuse("a constant interval is wanted behind WITHIN", "write WITHIN INTERVAL '1' HOUR")
        return {"pattern": pattern, "within": within}

    def _choice(self) -> Tree:
        first = self._curr
        ways = [self._sequence()]
        while self._words("|"):
            ways.append(self._sequence())
        return ways[0] if len(ways) == 1 else self._placed(PatternChoice(expressions=ways), first)

    def _sequence(self) -> Tree:
        first = self._curr
        parts: list[Tree] = []
        while self._curr and self._curr.text not in ("|", ")"):
            parts.append(self._quantified())
        if not parts:
            self.refuse("a variable of the pattern is wanted", _PATTERN)
        return parts[0] if len(parts) == 1 else self._placed(PatternSequence(expressions=parts), first)

    def _quantified(self) -> Tree:
        first = self._curr
        part = self._pattern_part()
        bounds = self._quantifier()
        if bounds is None:
            return part
        reluctant = self._words("?")
        repetition = PatternRepetition(this=part, least=bounds[0], most=bounds[1], reluctant=reluctant)
        if self._curr and (self._curr.text in _QUANTIFIERS or self._curr.text == "{"):
            self.refuse("a second quantifier", "write one, or a group in parentheses: (A+)?")
        return self._placed(repetition, first)

    def _pattern_part(self) -> Tree:
        first, word = self._curr, self._curr.text.upper()
        if self._words("("):
            inner = self._choice()
            self._need(")")
            return inner
        if word == "{" and self._next.text == "-":
            remedy = "give the rows a variable, and leave it out of MEASURES"
            self.refuse("an exclusion {- -} is not supported", remedy)
        if word == "PERMUTE" and self._next.token_type is TokenType.L_PAREN:
            self.refuse("PERMUTE is not supported", "write the orders as a choice: (A B | B A)")
        if word in ("^", "$"):
            self.refuse(f"the anchor {word} is not supported", "leave it out: a stream has no first or last row")
        return self._placed(PatternVariable(this=self._identifier("a variable of the pattern")), first)

    def _quantifier(self) -> tuple[str, str] | None:
        text = self._curr.text if self._curr else ""
        if text == "??":
            remedy = "write ?: matches with and without the row are tried, and the one that is over first is given"
            self.refuse("?? is the reluctant form of ?, which is not supported", remedy)
        if text in _QUANTIFIERS:
            self._advance()
            return _QUANTIFIERS[text]
        if text != "{" or self._next.text == "-":
            return None
        self._advance()
        least = self._number()
        if self._words(","):
            most = self._number()
            if not least and not most:
                self.refuse("a quantifier has no number", "write {2}, {2,}, {2,5} or {,5}", self._prev)
            least = least or "0"
        else:
            most = least
        if not least:
            self.refuse("a quantifier has no number", "write {2}, {2,}, {2,5} or {,5}", self._prev)
        self._need("}")
        return least, most

    def _number(self) -> str:
        if self._curr.token_type is not TokenType.NUMBER:
            return ""
        if not self._curr.text.isdecimal():
            self.refuse(f"{self._curr.text} is not a whole number", "write {2}, {2,}, {2,5} or {,5}")
        self._advance()
        return str(self._prev.text)

    def _subset(self) -> Tree:
        name = self._identifier("a name of the variables together")
        self._need("=")
        self._need("(")
        variables = self._parse_csv(lambda: self._identifier("a variable of the pattern"))
        self._need(")")
        return Subset(this=name, expressions=variables)

    def _definitions(self) -> list[Tree]:
        return self._parse_csv(self._definition) if self._words("DEFINE") else []

    def _definition(self) -> Tree:
        name = self._identifier("a variable of the pattern")
        self._need("AS")
        condition = self._parse_disjunction()
        if condition is None:
            self.refuse("a condition is wanted", "write for example A AS A.price > 10")
        return exp.Alias(this=condition, alias=name)

    def _placed(self, tree: Tree, first: Token) -> Tree:
        tree.meta.update(start=first.start, end=self._prev.end)
        return tree


__all__ = [
    "MatchClause", "MatchClauses", "PatternChoice", "PatternRepetition", "PatternSequence", "PatternVariable", "Subset",
]  # fmt: skip
