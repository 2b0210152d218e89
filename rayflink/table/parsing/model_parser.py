"""CREATE and ALTER of models."""

from __future__ import annotations

from . import statements
from .name_parser import Names


class ModelDefinitions(Names):
    """The part of the statement parser for models."""

    def _column(self) -> statements.ColumnOf:
        """Parse a column with its type."""
        raise NotImplementedError

    def _create_model(self, temporary: bool) -> statements.CreateModel:
        """Parse what follows CREATE MODEL."""
        unless = self._words("IF", "NOT", "EXISTS")
        place, path = self._path()
        columns: dict[str, tuple[statements.ColumnOf, ...]] = {}
        for role in ("INPUT", "OUTPUT"):
            if not self._words(role):
                self.refuse(f"the columns of {role} are wanted", "write INPUT (a STRING) OUTPUT (b STRING)")
            columns[role] = self._model_columns()
        comment = self._comment()
        self._need("WITH")
        return statements.CreateModel(
            path, columns["INPUT"], columns["OUTPUT"], self._options(), comment, unless, temporary, place=place
        )

    def _model_columns(self) -> tuple[statements.ColumnOf, ...]:
        self._need("(")
        columns = [self._column()]
        while self._words(","):
            columns.append(self._column())
        self._need(")")
        for column in columns:
            if column.type is None or column.metadata is not None:
                self.refuse(f"column {column.name!r} of a model is computed or metadata", "give it a type alone")
        return tuple(columns)

    def _alter_model(self) -> statements.AlterModel:
        """Parse what follows ALTER MODEL."""
        exists = self._words("IF", "EXISTS")
        place, path = self._path()
        if self._words("SET"):
            return statements.AlterModel(path, self._options(), if_exists=exists, place=place)
        if self._words("RESET"):
            return statements.AlterModel(path, {}, self._strings(), if_exists=exists, place=place)
        self._need("RENAME", "TO")
        return statements.AlterModel(path, new_name=self._name(), if_exists=exists, place=place)
