"""The properties of many rows at once, as ``properties.write_texts`` writes those of each.

The rows of a table mostly have properties with the same names and types. So the wire form of the names is determined
once, with empty texts, and the texts of all rows are then inserted in place of the empty ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat

import attrs

from jmsaio.codec import properties
from jmsaio.errors import MessageFormatError


@attrs.frozen
class WrittenShape:
    """Common wire form of all rows whose properties have the same names and type words.

    Attributes:
        names: names of the properties, at least one.
        wire: the wire form with empty texts: texts and marks by name, in the order of the wire.
    """

    names: tuple[str, ...]
    wire: Mapping[str, str]

    def write(self, columns: Sequence[Sequence[str]]) -> Iterator[dict[str, str]] | None:
        """Return the properties on the wire, row by row.

        Args:
            columns: the texts of each property, in the order of ``names``.

        Returns:
            A new dictionary for each row; None if a text is not Unicode (a lone surrogate): ``write_texts`` raises the
            error with its name.
        """
        if not all(map(_is_unicode, columns)):
            return None
        texts = dict(zip(self.names, columns, strict=True))
        parts = [texts[name] if name in texts else repeat(word) for name, word in self.wire.items()]
        return map(dict, map(zip, repeat(tuple(self.wire)), zip(*parts, strict=False)))  # the words repeat endlessly


def learn_shape(names: tuple[str, ...], words: Mapping[str, str]) -> WrittenShape | None:
    """Return the common wire form of rows with these properties.

    Args:
        words: the type words of those that are not strings.

    Returns:
        None if ``write_texts`` has to write each row: it refuses them, a name is given twice, or there are no names.
    """
    if not names or len(set(names)) < len(names):
        return None
    wire: dict[str, str] = {}
    try:
        properties.write_texts(dict.fromkeys(names, ""), words, wire)
    except MessageFormatError:
        return None
    return WrittenShape(names, wire)


def _is_unicode(texts: Sequence[str]) -> bool:
    joined = "".join(texts)
    if joined.isascii():
        return True
    try:
        joined.encode()
    except UnicodeEncodeError:
        return False
    return True
