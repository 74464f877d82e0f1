"""The table of headers is whole, and what lists headers by hand (public attributes, guides) lists all of them."""

from __future__ import annotations

import re
from pathlib import Path

import attrs
import pytest

import jmsaio
from jmsaio.client.jms_producer import JMSProducer
from jmsaio.model.headers import (
    FIELDS,
    HEADERS,
    JMSX,
    OF_APPLICATION,
    RESERVED,
    Header,
    Headers,
    as_long,
    as_word,
    is_provided,
)
from jmsaio.model.values import Long

GUIDE = Path(jmsaio.__file__).parent / "guide"


def test_headers_start_with_the_defaults_of_jms() -> None:
    head = Headers()
    assert (head.delivery_mode, head.priority, head.timestamp, head.expiration, head.delivery_time) == (2, 4, 0, 0, 0)
    assert head.redelivered is False
    assert {head.destination, head.message_id, head.correlation_id, head.reply_to, head.type} == {None}


def test_no_other_fields() -> None:
    with pytest.raises(AttributeError):
        Headers().prioirty = 5  # type: ignore[attr-defined]  # what is tested


def test_the_table_has_a_row_for_each_field() -> None:
    assert sorted(header.field for header in FIELDS) == sorted(field.name for field in attrs.fields(Headers))


def test_nothing_is_listed_twice() -> None:
    for names in (
        [header.name for header in HEADERS],
        [name for header in HEADERS for name in header.wire],
        [column.name for header in HEADERS for column in header.columns],
    ):
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("header", FIELDS, ids=lambda header: header.name)
def test_each_field_is_a_documented_attribute_of_messages(header: Header) -> None:
    message = jmsaio.TextMessage("tea")
    assert getattr(message, header.attribute) == header.default
    assert header.name in str(getattr(type(message), header.attribute).__doc__)


@pytest.mark.parametrize("header", OF_APPLICATION, ids=lambda header: header.name)
def test_a_producer_of_the_simplified_api_sets_the_headers_of_the_application(header: Header) -> None:
    assert {header.attribute, f"get_{header.attribute}", f"set_{header.attribute}"} <= set(dir(JMSProducer))


def test_the_guide_of_the_wire_format_has_each_property_of_a_header() -> None:
    rows = [line for line in (GUIDE / "wire-format.md").read_text(encoding="utf-8").splitlines() if line[:3] == "| `"]
    named = {name for row in rows for name in re.findall(r"`(JMS\w+)`", row.split("|")[1])}
    carried = {name for header in HEADERS for name in header.wire} - {"JMSXGroupSeq"}  # as any other property
    assert named == carried | {"JMSPulsarMessageType", "JMSConnectionID"}


def test_the_guide_of_selectors_has_the_headers_that_they_may_name() -> None:
    row = next(
        line for line in (GUIDE / "selectors.md").read_text(encoding="utf-8").splitlines() if line[:8] == "| names "
    )
    assert set(re.findall(r"JMS\w+", row)) == {header.name for header in FIELDS if header.selectable}


def test_names_of_properties() -> None:
    assert JMSX == ("JMSXGroupID", "JMSXGroupSeq", "JMSXDeliveryCount")
    assert [name for name in (*JMSX, "JMSXUserID", "region") if is_provided(name)] == [
        "JMSXDeliveryCount", "JMSXUserID"
    ]  # fmt: skip
    assert "JMSXGroupID" not in RESERVED


def test_a_delivery_mode_is_a_word_for_selectors() -> None:
    words = ["NON_PERSISTENT", "PERSISTENT", "PERSISTENT", None]
    assert [as_word(mode) for mode in (1, 2, "PERSISTENT", None)] == words


def test_a_time_is_a_long_for_selectors() -> None:
    assert type(as_long(5)) is Long and as_long(None) is None and as_long("x") == "x"
