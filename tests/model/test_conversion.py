"""The two conversion tables, every cell."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from jmsaio.errors import JMSError, MessageFormatError, NullValueError, NumberFormatError
from jmsaio.model.conversion import BODY_MATRIX, convert_body, convert_property
from jmsaio.model.values import JmsType
from tests.model.support import PROPERTY_TYPES, READABLE, SAMPLES, expected

WHOLE = [JmsType.BYTE, JmsType.SHORT, JmsType.INT, JmsType.LONG]
FLOATING = [JmsType.FLOAT, JmsType.DOUBLE]


@pytest.mark.parametrize(("source", "target"), list(product(PROPERTY_TYPES, PROPERTY_TYPES)))
def test_properties_convert_as_the_table_of_jms_says(source: JmsType, target: JmsType) -> None:
    if target in READABLE[source]:
        assert convert_property(SAMPLES[source], target, "p") == expected(source, target)
    else:
        article = "an" if source is JmsType.INT else "a"
        with pytest.raises(MessageFormatError, match=f"property 'p' is {article} {source.value}.*{target.value}"):
            convert_property(SAMPLES[source], target, "p")


@pytest.mark.parametrize(("source", "target"), list(product(JmsType, JmsType)))
def test_bodies_convert_as_the_table_of_jms_says(source: JmsType, target: JmsType) -> None:
    if target in READABLE[source]:
        assert convert_body(SAMPLES[source], target) == expected(source, target)
    else:
        with pytest.raises(MessageFormatError):
            convert_body(SAMPLES[source], target)


def test_the_table_itself() -> None:
    assert {source: set(targets) for source, targets in BODY_MATRIX.items()} == READABLE


@pytest.mark.parametrize("convert", [convert_property, convert_body])
@pytest.mark.parametrize("target", [*WHOLE, *FLOATING])
@pytest.mark.parametrize("text", ["mytest string", "", "1 0", "1_0", "0x"])
def test_texts_that_are_no_numbers(convert: Any, target: JmsType, text: str) -> None:
    with pytest.raises(NumberFormatError) as caught:
        convert(text, target)
    assert not isinstance(caught.value, JMSError)


@pytest.mark.parametrize(("text", "target"), [("128", "byte"), ("32768", "short"), (str(2**31), "int")])
def test_texts_out_of_range(text: str, target: str) -> None:
    with pytest.raises(NumberFormatError):
        convert_body(text, JmsType(target))


@pytest.mark.parametrize("convert", [convert_property, convert_body])
def test_null_converts_as_javas_valueof_does(convert: Any) -> None:
    assert convert(None, JmsType.BOOLEAN) is False
    assert convert(None, JmsType.STRING) is None
    assert convert(None, JmsType.BYTES) is None
    for target in WHOLE:
        with pytest.raises(NumberFormatError):
            convert(None, target)
    for target in (*FLOATING, JmsType.CHAR):
        with pytest.raises(NullValueError) as caught:
            convert(None, target)
        assert isinstance(caught.value, TypeError) and not isinstance(caught.value, JMSError)


@pytest.mark.parametrize("value", [0, 1, -1])
def test_no_number_is_a_boolean_and_no_int_a_double(value: int) -> None:
    for target in (JmsType.BOOLEAN, JmsType.SHORT, *FLOATING):
        with pytest.raises(MessageFormatError):
            convert_property(value, target)
