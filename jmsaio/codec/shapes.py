"""The texts and type words of properties, as ``properties.read_texts`` returns them, cached by the names of a record.

The records of a sender mostly have the same names in the same order. So each name (a header, a mark, a property and its
mark) is classified once for all records with these names, and the type words of all of them are one dictionary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, Final

import attrs

from jmsaio.codec import properties
from jmsaio.model.wire import GROUP_ID, TYPE_SUFFIX, TYPE_SUFFIX_READ

#: Maximum number of cached lists of names, of names in one of them, and of characters of these.
_SHAPES_KEPT: Final = 256
_NAMES: Final = 64
_CHARACTERS: Final = 4096
#: Maximum number of combinations of type words cached for one list of names.
_WORDS_KEPT: Final = 64


@attrs.frozen
class Shape:
    """Common values of all records with the same names in the same order.

    Attributes:
        names: names of the properties.
        marks: names of their marks, for the properties that have one.
        texts: returns the texts of the properties of a record.
        read_words: returns the texts of its marks.
        words: type words by name, for each known combination of marks.
    """

    names: tuple[str, ...]
    marks: tuple[str, ...]
    texts: Callable[[Mapping[str, str]], tuple[str, ...]] = attrs.field(init=False)
    read_words: Callable[[Mapping[str, str]], tuple[str, ...]] = attrs.field(init=False)
    words: dict[tuple[str, ...], Mapping[str, str]] = attrs.field(init=False, factory=dict)

    @texts.default
    def _get_texts(self) -> Callable[[Mapping[str, str]], tuple[str, ...]]:
        return text_getter(self.names)

    @read_words.default
    def _get_words(self) -> Callable[[Mapping[str, str]], tuple[str, ...]]:
        return text_getter(self.marks)

    def words_of(self, read: tuple[str, ...], wire: Mapping[str, str]) -> Mapping[str, str]:
        """Return the type words by name. Records can share them: don't change them.

        Args:
            read: the texts of the record's marks.
            wire: the record's properties.
        """
        words = self.words.get(read)
        if words is None:
            words = properties.read_texts(wire, None, None)[1]
            if len(self.words) < _WORDS_KEPT and sum(map(len, read)) <= _CHARACTERS:
                self.words[read] = words
        return words


#: Shapes by the names of a record. None: the classification depends on the texts.
_SHAPES: Final[dict[tuple[str, ...], Shape | None]] = {}
#: Names seen in one record. Names that differ in each record are not worth more.
_SEEN: Final[set[tuple[str, ...]]] = set()


def read_texts(
    wire: Mapping[str, str], key: str | None, sequence_id: int | None
) -> tuple[dict[str, str], Mapping[str, str]]:
    """Read as ``properties.read_texts``, with type words that other records can share: don't change them.

    Args:
        wire: the record's properties.
        key: the record's key.
        sequence_id: the producer's number for the record, or None.
    """
    names = tuple(wire)
    try:
        shape = _SHAPES[names]
    except KeyError:
        shape = _learn(names, wire)
    if shape is None or sequence_id is not None:
        return properties.read_texts(wire, key, sequence_id)
    marks = shape.read_words(wire)
    words = shape.words.get(marks)
    if words is None:
        words = shape.words_of(marks, wire)
    texts = dict(zip(shape.names, shape.texts(wire), strict=True))
    if key:
        texts[GROUP_ID] = key
    return texts, words


def known_shape(names: tuple[str, ...]) -> Shape | None:
    """Return the common values of records with these names.

    None if each record has to be read by itself, or until ``read_texts`` has read these names twice.

    Args:
        names: names of the record's properties, in their order.
    """
    return _SHAPES.get(names)


def _learn(names: tuple[str, ...], wire: Mapping[str, str]) -> Shape | None:
    """Return the shape of names that were seen before; None if each record has to be read by itself."""
    if names not in _SEEN:
        if len(names) <= _NAMES and sum(map(len, names)) <= _CHARACTERS:
            _make_room(_SEEN)
            _SEEN.add(names)
        return None
    shape = None
    if GROUP_ID not in wire and not any(name.endswith(TYPE_SUFFIX_READ) for name in names):
        texts = list(properties.read_texts(wire, None, None)[0])
        marks = [name + TYPE_SUFFIX for name in texts if name + TYPE_SUFFIX in wire]
        shape = Shape(tuple(texts), tuple(marks))
    _make_room(_SHAPES)
    _SHAPES[names] = shape
    return shape


def _make_room(kept: set[Any] | dict[Any, Any]) -> None:
    if len(kept) >= _SHAPES_KEPT:
        kept.clear()


def text_getter(names: tuple[str, ...]) -> Callable[[Mapping[str, str]], tuple[str, ...]]:
    """Return a function that returns the texts of some names as a tuple."""
    if len(names) > 1:
        found: Any = itemgetter(*names)
        return found  # type: ignore[no-any-return]  # a tuple of the argument's values
    return lambda wire: tuple(wire[name] for name in names)
