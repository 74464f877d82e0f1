"""The option ``propertySchema``: the properties that a reader declares, in a subset of Spark's DDL."""

from __future__ import annotations

import re
from typing import Final

from jmsaio.config.options import nearest
from jmsaio.spark.model.schema import PROPERTY_TYPES, Property, Type

#: Types that a property can have, by every name in Spark's DDL.
_TYPES: Final = {
    **{each.value: each for each in PROPERTY_TYPES},
    "BYTE": Type.BYTE,
    "SHORT": Type.SHORT,
    "INTEGER": Type.INT,
    "LONG": Type.LONG,
    "REAL": Type.FLOAT,
}
#: A name, plain or in backquotes, and a type; a STRUCT has a colon between them.
_FIELD: Final = re.compile(r"\s*(?:`((?:[^`]|``)+)`|(\w+))\s*(?::|\s)\s*(\w+)\s*(,|$)")


def parse_properties(text: str) -> tuple[Property, ...]:
    """Parse declared properties, such as ``region STRING, qty INT``, in their order.

    Raises:
        ValueError: the text has another form, has a type that no property has, or has a name twice, also in another
            case: Spark ignores case.
    """
    properties: list[Property] = []
    seen: set[str] = set()
    place, separator = 0, ","
    while separator:
        found = _FIELD.match(text, place)
        if found is None:
            raise ValueError(f"must be names and types, such as region STRING, qty INT; see {text[place:][:40]!r}")
        name = found[1].replace("``", "`") if found[1] is not None else found[2]
        if name.lower() in seen:
            raise ValueError(f"declares {name!r} twice; Spark ignores the case of a name")
        seen.add(name.lower())
        properties.append(Property(name, _type(name, found[3])))
        place, separator = found.end(), found[4]
    return tuple(properties)


def _type(name: str, word: str) -> Type:
    kind = _TYPES.get(word.upper())
    if kind is None:
        hint = nearest(word.upper(), _TYPES) or f"; there are {', '.join(_TYPES)}"
        raise ValueError(f"property {name!r} can't have the type {word!r}{hint}")
    return kind
