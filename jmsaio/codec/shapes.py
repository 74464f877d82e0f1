"""The texts and type words of properties, as ``properties.read_texts`` gives them, learned by the names of a record.

The records of a sender mostly have the same names in the same order. So what a name is (a header, a mark, a property
and its mark) is asked once for all records with these names, and the type words of all of them are one dictionary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, Final

import attrs

from jmsaio.codec import properties
from jmsaio.model.wire import GROUP_ID, TYPE_SUFFIX, TYPE_SUFFIX_READ

#: Lists of names that are remembered, names in one of them, and characters of these, at most.
_SHAPES_KEPT: Final = 256
_NAMES: Final = 64
_CHARACTERS: Final = 4096
#: Combinations of type words that are remembered for one list of names, at most.
_WORDS_KEPT: Final = 64


@attrs.frozen
class Shape:
    """What all records with the same names in the same order have in common.

    Attributes:
        names: of the properties.
        marks: names of their marks; of those that have one.
        texts: gets the texts of the properties of a record.
        read_words: gets the texts of its marks.
        words: type words by name, for each combination of marks that was seen.
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
        """The type words by name, which records may share: don't change them.

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


#: By the names of a record. None: what they are depends on their texts.
_SHAPES: Final[dict[tuple[str, ...], Shape | None]] = {}
#: Names that one record had. What differs in each record is not worth more.
_SEEN: Final[set[tuple[str, ...]]] = set()


def read_texts(
    wire: Mapping[str, str], key: str | None, sequence_id: int | None
) -> tuple[dict[str, str], Mapping[str, str]]:
    """The same as ``properties.read_texts``, but the type words may be those of other records, too: don't change them.

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
    """What records with these names have in common.

    None where each record has to be looked at by itself, and as long as ``read_texts`` has not met these names twice.

    Args:
        names: of the record's properties, in their order.
    """
    return _SHAPES.get(names)


def _learn(names: tuple[str, ...], wire: Mapping[str, str]) -> Shape | None:
    """The shape of names that were seen before; None where each record has to be looked at by itself."""
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
    """Gets the texts of some names as a tuple."""
    if len(names) > 1:
        found: Any = itemgetter(*names)
        return found  # type: ignore[no-any-return]  # a tuple of what it is given
    return lambda wire: tuple(wire[name] for name in names)
