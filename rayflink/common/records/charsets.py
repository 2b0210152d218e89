"""Character sets by name, with an error that says which one could be meant."""

from __future__ import annotations

import codecs
import difflib
from encodings.aliases import aliases

from ..errors import PlanError
from ..user_code.call_sites import call_site


class UnknownCharset(PlanError, LookupError):
    """There is no character set of this name, or it holds no text."""


def charset(name: str) -> str:
    """Return the name that Python gives a character set.

    Raises:
        UnknownCharset: there is none of that name.

    >>> charset("UTF8"), charset("latin-1")
    ('utf-8', 'iso8859-1')
    """
    try:
        codec = codecs.lookup(name)
        if codec._is_text_encoding:
            return codec.name
    except (LookupError, TypeError):
        pass  # said below
    known = sorted({*aliases, *aliases.values()})
    near = difflib.get_close_matches(str(name).lower().replace("-", "_"), known, 1)
    meant = near[0].replace("_", "-") if near else "utf-8"
    raise UnknownCharset(f"there is no charset {name!r}", f"did you mean {meant!r}?", call_site()) from None


__all__ = ["UnknownCharset", "charset"]
