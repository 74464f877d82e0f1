"""Hypothesis strategies of values and messages."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from jmsaio.model.values import Byte, Char, Float, Long, Short

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=50)
#: With halves of characters that stand alone; a high and a low one side by side would be one character.
loose_texts = st.text(st.characters(exclude_categories=["Cs"]) | st.just("\udc00"), max_size=50)
ints = st.integers(-(1 << 31), (1 << 31) - 1)
longs = st.integers(-(1 << 63), (1 << 63) - 1).map(Long)
#: Values of properties, but None.
properties = (
    st.booleans()
    | st.integers(-128, 127).map(Byte)
    | st.integers(-(1 << 15), (1 << 15) - 1).map(Short)
    | ints
    | longs
    | st.floats(width=32).map(Float)
    | st.floats()
    | texts
)
#: Values of map and stream messages.
bodies = properties | loose_texts | st.none() | st.integers(0, 0xFFFF).map(chr).map(Char) | st.binary(max_size=300)


def same(one: Any, other: Any) -> bool:
    """Equal in class, value and sign of zero; NaN equals NaN."""
    return type(one) is type(other) and repr(one) == repr(other)
