"""Columns with a writer's properties: texts, their type words, and a struct of typed fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import filterfalse, pairwise
from typing import Any, Final, cast

import pyarrow as pa

from jmsaio.codec.properties import value_of
from jmsaio.errors import MessageFormatError
from jmsaio.model.text import parse_wire, to_java
from jmsaio.model.values import Float
from jmsaio.spark.arrow.write_columns import FIELD_WORDS

_BOOLEANS: Final = frozenset({"true", "false"})


def _looks(pattern: str) -> Callable[[str], object]:
    return re.compile(pattern, re.ASCII).fullmatch


_FLOATING: Final = _looks(r"-?[0-9]++\.[0-9]++(?:E-?[0-9]++)?")
_INT: Final = _looks("-?[0-9]{1,9}")
#: Usual patterns of texts by type word. Matching is cheaper than parsing; numbers of that many digits always fit.
_USUAL: Final[Mapping[str, Callable[[str], object]]] = {
    "boolean": _looks("true|false"),
    "byte": _looks("-?[0-9]{1,2}"),
    "short": _looks("-?[0-9]{1,4}"),
    "int": _INT,
    "integer": _INT,
    "long": _looks("-?[0-9]{1,18}"),
    "float": _FLOATING,
    "double": _FLOATING,
}
#: Text writers of fields by type word.
_WRITERS: Final[Mapping[str | None, Callable[[Any], str]]] = {
    None: str,
    "boolean": to_java,
    "byte": str,
    "short": str,
    "int": str,
    "long": str,
    "float": lambda value: to_java(Float(value)),
    "double": to_java,
}

#: Entries of a map in one row; values can be NULL.
Texts = dict[str, str | None]
#: Non-NULL fields of one row: text and type word by name.
Declared = dict[str, tuple[str, str | None]]


def read_maps(column: pa.MapArray) -> Iterator[Texts | None]:
    """Iterate over the rows of a column of maps."""
    offsets = column.offsets.to_pylist()
    first, last = offsets[0], offsets[-1]
    keys = column.keys.slice(first, last - first).to_pylist()
    items = column.items.slice(first, last - first).to_pylist()
    valid = column.is_valid().to_pylist() if column.null_count else None
    for row, (start, end) in enumerate(pairwise(offsets)):
        if valid is None or valid[row]:
            yield dict(zip(keys[start - first : end - first], items[start - first : end - first], strict=True))
        else:
            yield None


def read_structs(column: pa.StructArray) -> Iterator[Declared]:
    """Iterate over the rows of a column of typed properties, without NULL fields; a NULL row is empty."""
    names = [field.name for field in column.type]
    if not names:
        yield from ({} for _ in range(len(column)))
        return
    words = [FIELD_WORDS[field.type] for field in column.type]
    writers = [_WRITERS[word] for word in words]
    for values in zip(*(field.to_pylist() for field in column.flatten()), strict=True):
        yield {
            name: (write(value), word)
            for name, word, write, value in zip(names, words, writers, values, strict=True)
            if value is not None
        }


def without_nulls(texts: Texts, words: Texts) -> tuple[dict[str, str], dict[str, str]]:
    """Return the non-NULL entries of one row. A NULL text is left out together with its type word.

    Args:
        texts: the texts by name.
        words: the type words by name; NULL is a string.
    """
    if None in texts.values() or None in words.values():
        words = {name: word for name, word in words.items() if word is not None and texts.get(name, "") is not None}
        texts = {name: text for name, text in texts.items() if text is not None}
    return cast("tuple[dict[str, str], dict[str, str]]", (texts, words))  # no entry is NULL


def read_properties(texts: Texts, words: Texts, declared: Declared) -> tuple[dict[str, str], dict[str, str]]:
    """Return the properties of one row in the form of ``RawRow``.

    NULL properties are left out. A property that is also declared must have the same value in both, as in a table that
    was read; its type word is then that of the text, whose type can be smaller than the field's.

    Args:
        texts: the texts by name.
        words: the type words by name; NULL is a string.
        declared: the typed fields.

    Raises:
        MessageFormatError: a text does not fit its type, or a property has two values; the error names the property.
    """
    found = without_nulls(texts, words)
    if words:
        _check_texts(*found)
    for name, (text, word) in declared.items():
        _add(*found, name, text, word)
    return found


def are_of_type(texts: Sequence[str], word: str | None) -> bool:
    """Return True if all texts fit the type of a word, so that ``read_properties`` accepts them.

    Args:
        texts: texts of one property in many rows.
        word: type word of the property; None is a string.
    """
    if word is None:
        return True
    try:
        for text in filterfalse(_USUAL.get(word, _never), set(texts)):  # often only a few different ones
            _check_text(text, word)
    except MessageFormatError:
        return False
    return True


def _never(text: str) -> bool:
    return False


def _check_texts(texts: Mapping[str, str], words: Mapping[str, str]) -> None:
    """Reject a text that does not fit its type. The codec rejects unknown type words."""
    get, usual = texts.get, _USUAL.get
    for name, word in words.items():
        text = get(name)
        if text is None or usual(word, _never)(text):
            continue
        try:
            _check_text(text, word)
        except MessageFormatError as error:
            raise MessageFormatError(f"property {name!r:.100}: {error}") from error


def _check_text(text: str, word: str) -> None:
    if word == "boolean" and text.lower() not in _BOOLEANS:  # Java reads any other text as false
        raise MessageFormatError(f"{text[:100]!r} is not a boolean: true or false")
    parse_wire(text, word)


def _add(texts: dict[str, str], words: dict[str, str], name: str, text: str, word: str | None) -> None:
    before = texts.get(name)
    if before is None:
        texts[name] = text
        if word is not None:
            words[name] = word
    elif not _same(value_of(before, words.get(name, "")), value_of(text, word or "")):
        raise MessageFormatError(
            f"property {name!r:.100} is {before[:100]!r} in properties and {text[:100]!r} in props: drop one column"
        )


def _same(one: Any, other: Any) -> bool:
    """Return True for equal numbers of any types, equal texts or equal booleans; NaN equals itself."""
    if isinstance(one, bool) is not isinstance(other, bool):
        return False
    return bool(one == other or (one != one and other != other))
