"""Typed properties to Pulsar properties and back: the value as text, and its type in the property ``N_jsmtype``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jmsaio.codec.bodies import OBJECT_FORMAT
from jmsaio.errors import MessageFormatError, NumberFormatError
from jmsaio.model.arguments import shown, with_article
from jmsaio.model.headers import NOT_PROPERTIES, RESERVED
from jmsaio.model.messages.properties import Property
from jmsaio.model.text import PARSERS, to_java
from jmsaio.model.values import TYPE_NAMES, Long
from jmsaio.model.wire import (
    DELIVERY_COUNT,
    EXPIRATION,
    GROUP_ID,
    GROUP_SEQ,
    TYPE_SUFFIX,
    TYPE_SUFFIX_READ,
    ReceivedRecord,
    Texts,
)

#: Names of headers and of our own marks: never properties of a message, whichever client wrote them.
HIDDEN: Final = NOT_PROPERTIES | {OBJECT_FORMAT}

#: Expiry time of a dead letter: a long, in milliseconds since the epoch.
EXPIRED_AT: Final = "JMS_jmsaio_expired_at"

#: Type words of the classes except str and int.
MARKS: Final = {kind: word for kind, word in TYPE_NAMES.items() if kind is not int and word in PARSERS}
#: Type words as read, and as written.
_WORDS: Final = {word: word for word in (*MARKS.values(), "int")} | {"integer": "int"}
#: Names are few and recur in every message, so the names of their marks are cached, up to these bounds.
_CACHED: Final = 4096
_LONGEST_CACHED: Final = 128
#: Name of a property to the name of its mark; "" for a property that is omitted.
_WRITTEN: Final[dict[str, str]] = {}
_READ: Final[dict[str, str]] = {}


def write(values: Mapping[str, Property], wire: dict[str, str]) -> None:
    """Write a message's properties, except None and JMSXDeliveryCount, which belongs to one delivery."""
    known = _WRITTEN.get
    for name, value in values.items():
        mark = known(name)
        if mark is None:
            mark = remember(_WRITTEN, name, _mark_to_write(name))
        if not mark:
            continue
        kind = type(value)
        if kind is str:
            if not value.isascii():  # type: ignore[union-attr]  # its class is str
                _check(value, name)  # type: ignore[arg-type]  # its class is str
            wire[name] = value  # type: ignore[assignment]  # its class is str
        elif kind is int:
            wire[name] = str(value)
            wire[mark] = "int"
        elif value is not None:
            word = MARKS.get(kind)
            if word is None:
                raise MessageFormatError(
                    f"property {shown(name)} can't hold {with_article(kind.__name__)}: {shown(value)}"
                )
            wire[name] = to_java(value)
            wire[mark] = word


def _check(text: str, name: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise MessageFormatError(f"property {shown(name)} has a lone surrogate at {error.start}") from error


def remember(cache: dict[str, str], name: str, mark: str) -> str:
    if len(cache) < _CACHED and len(name) <= _LONGEST_CACHED:
        cache[name] = mark
    return mark


def _mark_to_write(name: str) -> str:
    """Return the name of a property's mark, "" for a property that is omitted."""
    if name in RESERVED:
        return ""
    if name in HIDDEN or name.endswith(TYPE_SUFFIX):
        raise MessageFormatError(f"{shown(name)} can't name a property: Pulsar records use it for something else")
    _check(name, name)
    return name + TYPE_SUFFIX


def read(record: ReceivedRecord) -> dict[str, Property]:
    """Read the application's properties and the JMSX properties of a record, as canonical values.

    The values of ``read_texts``, converted in the same pass, which takes a quarter less time. A text that is not of its
    marked type stays a text, so that one invalid property does not hide the others.
    """
    wire = record.properties
    get, known = wire.get, _READ.get
    values: dict[str, Property] = {}
    old: list[str] | None = None
    for name, text in wire.items():
        mark = known(name)
        if mark is None:
            mark = remember(_READ, name, _mark_to_read(name))
        if not mark:
            continue
        word = get(mark)
        if word is None:
            values[name] = text
            if name.endswith(TYPE_SUFFIX_READ):
                old = [*(old or ()), name]
        elif word == "int" and len(text) < 10 and text.isascii() and text.isdecimal():
            values[name] = int(text)
        else:
            values[name] = value_of(text, word)
    if old is not None:
        for name, word in _remove_old_marks(wire, values, old).items():
            values[name] = value_of(wire[name], word)
    _add_group(record.key, values)
    if GROUP_SEQ not in values:
        number = record.sequence_id
        if number is not None:
            values[GROUP_SEQ] = sequence(number)
    values[DELIVERY_COUNT] = record.redelivery_count + 1
    return values


def read_texts(
    wire: Mapping[str, str], key: str | None, sequence_id: int | None
) -> tuple[dict[str, str], dict[str, str]]:
    """Read the properties that ``read`` returns, except JMSXDeliveryCount, as texts on the wire.

    Return the texts by name, and the type words of those that are not strings; ``value_of`` converts each to its value.
    """
    get, known, known_word = wire.get, _READ.get, _WORDS.get
    texts: dict[str, str] = {}
    words: dict[str, str] = {}
    old: list[str] | None = None
    for name, text in wire.items():
        mark = known(name)
        if mark is None:
            mark = remember(_READ, name, _mark_to_read(name))
        if not mark:
            continue
        texts[name] = text
        found = get(mark)
        if found is None:
            if name.endswith(TYPE_SUFFIX_READ):
                old = [*(old or ()), name]
        elif (word := known_word(found)) is not None:
            words[name] = word
    if old is not None:
        words |= _remove_old_marks(wire, texts, old)
    _add_group(key, texts)
    if GROUP_ID in words and (key or GROUP_ID not in texts):
        del words[GROUP_ID]
    if sequence_id is not None and GROUP_SEQ not in texts:
        texts[GROUP_SEQ] = str(sequence_id)
        words[GROUP_SEQ] = "long" if type(sequence(sequence_id)) is Long else "int"
    return texts, words


def write_texts(texts: Mapping[str, str], words: Mapping[str, str], wire: dict[str, str]) -> None:
    """Write properties in the form that ``read_texts`` returns.

    Texts are not checked against their types: receivers read a text that is not of its type as a string.
    """
    known, word_of, known_word = _WRITTEN.get, words.get, _WORDS.get
    typed = 0
    for name, text in texts.items():
        mark = known(name)
        if mark is None:
            mark = remember(_WRITTEN, name, _mark_to_write(name))
        if not mark:
            raise MessageFormatError(f"{shown(name)} can't name a property: it is a header")
        if not text.isascii():
            _check(text, name)
        wire[name] = text
        given = word_of(name)
        if given is not None:
            word = known_word(given)
            if word is None:
                words_known = ", ".join(_WORDS)
                raise MessageFormatError(
                    f"property {shown(name)} can't have the type {shown(given)}: take {words_known}"
                )
            wire[mark] = word
            typed += 1
    if typed != len(words):
        lost = next(name for name in words if name not in texts)
        raise MessageFormatError(f"property {shown(lost)} has the type {shown(words[lost])}, but no text")


def _mark_to_read(name: str) -> str:
    return "" if name in HIDDEN or name.endswith(TYPE_SUFFIX) else name + TYPE_SUFFIX


def value_of(text: str, word: str) -> Property:
    """Return the value of a text and its type word; the text itself if it does not fit or the type is unknown."""
    parse = PARSERS.get(word)
    if parse is None:
        return text
    try:
        return parse(text)  # type: ignore[no-any-return]  # none makes bytes
    except NumberFormatError:
        return text


def _remove_old_marks(wire: Mapping[str, str], values: dict[str, Any], marks: list[str]) -> dict[str, str]:
    """Remove the marks in the documented spelling; return the words of the properties that have no other mark.

    A property that merely has such a name stays.
    """
    words: dict[str, str] = {}
    for mark in marks:
        name = mark.removesuffix(TYPE_SUFFIX_READ)
        if name in values and wire[mark] in _WORDS:
            del values[mark]
            words.pop(mark, None)  # it has its own mark
            if name + TYPE_SUFFIX not in wire:
                words[name] = _WORDS[wire[mark]]
    return words


def _add_group(key: str | None, values: dict[str, Any]) -> None:
    if key:
        values[GROUP_ID] = key
    elif values.get(GROUP_ID) == "":  # forwarded by Java for a message without a group
        del values[GROUP_ID]


def sequence(number: int) -> int:
    """Return a sequence id as JMSXGroupSeq: an int, or a long if it is too large."""
    return number if -(1 << 31) <= number < 1 << 31 else int.__new__(Long, number)


def read_one(wire: Texts, name: str) -> Property:
    """Return one property of a record, typed by its marks; None if it is missing or hidden."""
    get = wire.get
    text = get(name)
    if text is None:
        return None
    mark = _READ.get(name)
    if mark is None:
        mark = remember(_READ, name, _mark_to_read(name))
    if not mark:
        return None
    word = get(mark)
    if word is None:
        word = get(name + TYPE_SUFFIX_READ)
        if word not in _WORDS:
            return None if _is_old_mark(wire, name, text) else text
    if word == "int" and len(text) < 10 and text.isascii() and text.isdecimal():
        return int(text)
    return value_of(text, word)


def _is_old_mark(wire: Texts, name: str, text: str) -> bool:
    if not name.endswith(TYPE_SUFFIX_READ) or text not in _WORDS:
        return False
    marked = name.removesuffix(TYPE_SUFFIX_READ)
    return marked not in HIDDEN and wire.get(marked) is not None


def as_dead_letter(wire: Mapping[str, str]) -> dict[str, str]:
    """Return the properties for the dead letter of an expired record, which must not expire again."""
    letter = dict(wire)
    expired_at = letter.pop(EXPIRATION, None)
    letter.pop(EXPIRATION + TYPE_SUFFIX, None)
    if expired_at is not None:
        letter[EXPIRED_AT], letter[EXPIRED_AT + TYPE_SUFFIX] = expired_at, "long"
    return letter
