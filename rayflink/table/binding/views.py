"""Views in queries: their own queries are bound where they stand."""

from __future__ import annotations

from collections.abc import Callable

from ..catalog.named_objects import Catalogs
from ..definitions import Path, ViewDefinition
from ..errors import SqlError
from ..parsing import statements
from ..parsing.statement_parser import parse_statement
from ..plan.logical import Relation
from ..plan.typed import Place
from .queries import rename_columns, restore_view_columns
from .query_places import place_in_view


class Views:
    """Binds the queries of views.

    Args:
        catalogs: where tables and views are found by name.
        bound: gives the plan of a query and its text.
    """

    def __init__(self, catalogs: Catalogs, bound: Callable[[statements.Tree, str], Relation]) -> None:
        self._catalogs, self._bound = catalogs, bound
        self._begun: list[Path] = []

    def plan(self, path: Path, view: ViewDefinition, place: Place | None) -> Relation:
        """Return the plan of a view.

        Args:
            place: where its name stands.

        Raises:
            SqlError: its query cannot be bound any more; with the view's name, and the place in its query.
        """
        name = self._catalogs.short_name(path)
        if view.relation is not None:
            return place_in_view(view.relation, path, name)
        if path in self._begun:
            raise SqlError(f"view {name!r} reads itself", "remove the view from its own query", "", place)
        self._begun.append(path)
        try:
            query = parse_statement(view.text)
            assert isinstance(query, statements.Query)
            with self._catalogs.inside(view.home):
                plan = self._bound(query.tree, view.text)
        except SqlError as error:
            raise error.in_view(name) from error
        finally:
            self._begun.pop()
        plan = restore_view_columns(plan, view.selected, path[-1], place)
        return place_in_view(rename_columns(plan, list(view.columns), place) if view.columns else plan, path, name)


__all__ = ["Views"]
