"""Plans that know the text that they were written as, and the views that they came through."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ..definitions import Path
from ..parsing.nesting import deeply
from ..plan.logical import Relation, Scan
from ..plan.typed import Place, QueryText


def of_text(plan: Relation, text: str) -> Relation:
    """Return the plan of a query whose places are in a text, but for those of parts that were written elsewhere."""

    def change(one: Relation) -> Relation:
        if one.place is None or one.place.query is not None:
            return one
        return replace(one, place=replace(one.place, query=query))

    query = QueryText(text)
    return deeply(partial(plan.mapped, change), text)


def of_view(plan: Relation, path: Path, name: str) -> Relation:
    """Return the plan of a view: places are in the view, and its name is that of the last step and of unnamed tables.

    Args:
        name: the view in errors.
    """

    def placed(place: Place | None) -> Place | None:
        if place is None or place.query is None or place.query.view:
            return place
        return replace(place, query=replace(place.query, view=name))

    def change(one: Relation) -> Relation:
        is_unnamed = isinstance(one, Scan) and not one.is_named
        view = path if not one.view and (is_unnamed or one is plan) else one.view
        place = placed(one.place)
        return (
            one
            if (view, place) == (one.view, one.place) and place is one.place
            else replace(one, view=view, place=place)
        )

    found = deeply(partial(plan.mapped, change))
    return found if found.view else replace(found, view=path)


__all__ = ["of_text", "of_view"]
