"""Names of properties and of map entries."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from jmsaio.errors import IllegalArgumentError, JMSError
from jmsaio.model import names
from jmsaio.model.headers import RESERVED
from jmsaio.model.names import check_map_name, check_property_name, is_identifier_part, is_identifier_start


@pytest.mark.parametrize(
    "name",
    ["a", "_", "$", "€uro", "größe", "名前", "JMSXGroupID", "JMSXGroupSeq", "JMSXUserID", "JMS_vendor_x",
        "order", "inside",
     "android", "notify", "x1", "a" * 10_000, "Ⅷ", "𝒜", "jmstype", "_jmstypes"],
)  # fmt: skip
def test_names_of_properties(name: str) -> None:
    check_property_name(name)
    check_property_name(name)


@pytest.mark.parametrize(
    "name",
    ["", None, 5, b"a", "1a", "a b", "a-b", "a.b", "a'", "٣a", " a", "a\n", "NULL", "null", "True", "Not", "between",
     "ESCAPE", "is", "x_jsmtype", "x_jmstype", "JMSTimestamp", "JMSMessageID", "JMSDestination", "JMSRedelivered",
     "JMSConnectionID", *sorted(RESERVED)],
)  # fmt: skip
def test_names_that_are_refused(name: Any) -> None:
    for _ in range(2):
        with pytest.raises(IllegalArgumentError) as caught:
            check_property_name(name)
        assert isinstance(caught.value, ValueError) and isinstance(caught.value, JMSError)


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "allowed_names", set())
    monkeypatch.setattr(names, "_MOST_REMEMBERED", 3)
    for number in range(10):
        check_property_name(f"n{number}")
    assert len(names.allowed_names) == 3


@pytest.mark.parametrize(
    ("character", "start", "part"),
    [("a", True, True), ("1", False, True), ("$", True, True), ("_", True, True), ("‿", True, True), ("\u0301",
     False, True),
     ("\u200d", False, True), ("\x00", False, True), ("\x08", False, True), ("\t", False, False), ("\x0e", False, True),
     ("\x1c", False, False), ("\x7f", False, True), ("\x9f", False, True), ("\xa0", False, False), ("-", False, False)],
)  # fmt: skip
def test_characters_of_java_identifiers(character: str, start: bool, part: bool) -> None:
    assert (is_identifier_start(character), is_identifier_part(character)) == (start, part)


@given(st.characters())
def test_a_start_is_a_part(character: str) -> None:
    assert is_identifier_part(character) or not is_identifier_start(character)


@pytest.mark.parametrize("name", ["a b", "1", "NULL", "x_jsmtype", "JMSType", "\n"])
def test_map_names_are_free(name: str) -> None:
    check_map_name(name)


@pytest.mark.parametrize("name", ["", None, 1])
def test_map_names_that_are_refused(name: Any) -> None:
    with pytest.raises(IllegalArgumentError):
        check_map_name(name)
