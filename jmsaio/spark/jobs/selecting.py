"""JMS selectors on archived rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from jmsaio.codec.properties import value_of
from jmsaio.model.headers import FIELDS, Holds
from jmsaio.selector import Selector

#: Headers that a selector can name, besides the time.
_HEADERS: Final = tuple(header.name for header in FIELDS if header.selectable and header.holds is not Holds.TIME)
_Texts = Mapping[str, str | None] | None


def select_rows(frame: DataFrame, selector: str) -> DataFrame:
    """Return the rows that match a selector, which is evaluated in the tasks.

    Args:
        frame: rows of the data source or of an archive, with the columns that a selector can name.
        selector: text of the selector.

    Raises:
        InvalidSelectorError: the selector is invalid.
    """
    Selector(selector)  # raises here, not in a task
    selected = f.udf(_matcher(selector), "boolean", useArrow=False)  # Spark's functions on Arrow batches need pandas
    columns = [f.col(name) for name in ("properties", "property_types", *_HEADERS)]
    return frame.where(selected(f.unix_millis("JMSTimestamp"), *columns))


def _matcher(selector: str) -> Callable[..., bool]:
    def matches(timestamp: int | None, texts: _Texts, words: _Texts, *headers: object) -> bool:
        values = {
            **values_of(texts, words),
            **dict(zip(_HEADERS, headers, strict=True)),
            "JMSTimestamp": timestamp or 0,
        }
        return Selector(selector).matches(values) is True  # compiled once for each process

    return matches


def values_of(texts: _Texts, words: _Texts) -> dict[str, object]:
    """Return the values of properties.

    Args:
        texts: the column ``properties``.
        words: the column ``property_types``.
    """
    kinds = words or {}
    return {
        name: text if kinds.get(name) is None else value_of(text, str(kinds[name]))
        for name, text in (texts or {}).items()
        if text is not None
    }
