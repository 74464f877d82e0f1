"""JMS's getters: ``get_priority()`` beside the property ``priority``, for hands that know Java."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

#: JMS spellings whose words differ from the property's.
_SPELLINGS: Final = {"meta_data": "metadata"}


class Getters:
    """Gives each property of a class a method ``get_<property>``, which reads it and raises as it does."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("get_"):
            read = _SPELLINGS.get(name[4:], name[4:])
            if isinstance(getattr(type(self), read, None), property):
                return partial(getattr, self, read)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
