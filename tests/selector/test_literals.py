"""Numbers and strings as they are written."""

from __future__ import annotations

import pytest

from jmsaio.model.values import Float, Long
from jmsaio.selector.literals import BEYOND, jms_number, starlight_number, string_value
from jmsaio.selector.nodes import Big


@pytest.mark.parametrize(
    ("image", "value"),
    [
        ("0", 0), ("5", 5), ("2147483647", 2**31 - 1), ("2147483648", Long(2**31)), ("5L", Long(5)), ("5l", Long(5)),
        ("0x1F", 31), ("0XfL", Long(15)), ("017", 15), ("00", 0), ("07L", Long(7)), ("5.", 5.0), (".5", 0.5),
        ("9223372036854775807", Long(2**63 - 1)), ("9223372036854775808", BEYOND), ("1e3", 1000.0), ("1.5E-1", 0.15),
        ("1.5f", Float(1.5)), ("0.1F", Float(0.1)), ("2D", 2.0), ("5f", Float(5)), ("08.5", 8.5), ("09e1", 90.0),
        ("1.e2d", 100.0),
    ],
)  # fmt: skip
def test_a_number_literal_of_jms_has_the_type_that_java_gives_it(image: str, value: object) -> None:
    found = jms_number(image)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    "image",
    ["1abc", "0x", "0xg", "08", "1_0", "1e", "1e+", "1.2.3", "0b1", "9223372036854775809", "0x8000000000000001",
     "1e400", "4e38f", "5ll", "5.L", ".e1", "9" * 5000, "0" * 5000 + "8"],
)  # fmt: skip
def test_no_jms_numbers(image: str) -> None:
    with pytest.raises(ValueError):
        jms_number(image)


@pytest.mark.parametrize(
    ("image", "value"),
    [
        ("5", 5), ("5L", 5), ("2147483648", Long(2**31)), ("9223372036854775808", Big(2**63)), ("1e400", float("inf")),
        ("18446744073709551621", 5), ("0xff", 255), ("0xffffffff", Long(2**32 - 1)), ("010", 8), ("0", 0),
    ],
)  # fmt: skip
def test_a_number_literal_of_starlight_wraps_and_widens_as_there(image: str, value: object) -> None:
    found = starlight_number(image)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize("image", ["0xffffffffffffffff", "0x8000000000000000", "01000000000000000000000", "9" * 101])
def test_no_starlight_numbers(image: str) -> None:
    with pytest.raises(ValueError):
        starlight_number(image)


def test_two_quotes_in_a_string_are_one() -> None:
    images = {"''": "", "'a'": "a", "'it''s'": "it's", "''''": "'", "'a\\b'": "a\\b"}
    assert {image: string_value(image) for image in images} == images
