"""Plans that know the text that they were written as, and the views that they came through."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ..definitions import Path
from ..parsing.nesting import deeply
from ..plan.logical import Relation, Scan
from ..plan.typed import Place, QueryText


def place_in_text(plan: Relation, text: str) -> Relation:
    """Return the plan of a query whose places are in a text, but for those of parts that were written elsewhere."""

    def change(relation: Relation) -> Relation:
        if relation.place is None or relation.place.query is not None:
            return relation
        return replace(relation, place=replace(relation.place, query=query))

    query = QueryText(text)
    return deeply(partial(plan.mapped, change), text)


def place_in_view(plan: Relation, path: Path, name: str) -> Relation:
    """Return the plan of a view: places are in the view, and its name is that of the last step and of unnamed tables.

    Args:
        name: the view in errors.
    """

    def placed(place: Place | None) -> Place | None:
        if place is None or place.query is None or place.query.view:
            return place
        return replace(place, query=replace(place.query, view=name))

    def change(relation: Relation) -> Relation:
        is_unnamed = isinstance(relation, Scan) and not relation.is_named
        view = path if not relation.view and (is_unnamed or relation is plan) else relation.view
        place = placed(relation.place)
        return (
            relation
            if (view, place) == (relation.view, relation.place) and place is relation.place
            else replace(relation, view=view, place=place)
        )

    with_view = deeply(partial(plan.mapped, change))
    return with_view if with_view.view else replace(with_view, view=path)


__all__ = ["place_in_text", "place_in_view"]
