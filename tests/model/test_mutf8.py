"""Modified UTF-8. The malformed and overlong forms are what a Java machine says about them."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from jmsaio.errors import MessageFormatError
from jmsaio.model.mutf8 import decode_mutf8, encode_mutf8

VECTORS = {
    "": "", "a": "61", "\x00": "c080", "\x7f": "7f", "\x80": "c280", "é": "c3a9", "\u07ff": "dfbf", "\u0800": "e0a080",
    "€": "e282ac", "\uffff": "efbfbf", "\U00010000": "eda080edb080", "\U0001f600": "eda0bdedb880", "\ud800": "eda080",
    "\udc00\ud800": "edb080eda080", "a\x00é\U0001f600": "61c080c3a9eda0bdedb880", "a\x00b": "61c08062",
}  # fmt: skip


@pytest.mark.parametrize(("text", "data"), VECTORS.items())
def test_the_vectors_are_encoded_and_decoded(text: str, data: str) -> None:
    assert encode_mutf8(text).hex() == data
    assert decode_mutf8(bytes.fromhex(data)) == text


@pytest.mark.parametrize(
    ("data", "text"),
    [("00", "\x00"), ("00c3a9", "\x00é"), ("c181", "A"), ("e08181", "A"), ("c1bf", "\x7f"), ("e08080", "\x00")],
)
def test_forms_that_java_reads_and_never_writes(data: str, text: str) -> None:
    assert decode_mutf8(bytes.fromhex(data)) == text


@pytest.mark.parametrize(
    "data", ["80", "bf", "c3", "c341", "e2", "e282", "e28241", "e24180", "f09f9880", "f0", "ff", "fe", "61f8",
        "c3a9f09f9880",
             "ed", "eda0", "c0", "c0c080", "e0c080"]
)  # fmt: skip
def test_malformed_modified_utf_8_is_refused(data: str) -> None:
    with pytest.raises(MessageFormatError, match="modified UTF-8"):
        decode_mutf8(bytes.fromhex(data))


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_survives_and_no_byte_is_zero(text: str) -> None:
    """Two lone surrogates that happen to be a pair come back as the character that they are for Java."""
    joined = text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
    data = encode_mutf8(text)
    assert decode_mutf8(data) == joined and b"\x00" not in data


@given(st.binary())
def test_any_bytes_give_a_text_or_a_clear_error(data: bytes) -> None:
    try:
        decode_mutf8(data)
    except MessageFormatError as error:
        assert "modified UTF-8" in str(error)
