"""The public class: the specification's examples, what it is evaluated on, the cache."""

from __future__ import annotations

import pytest

from jmsaio.model.messages.map_message import MapMessage
from jmsaio.model.messages.message import Message, TextMessage
from jmsaio.model.values import Float
from jmsaio.selector import Selector, selector as module
from tests.kit.records import Record

VALUES = {
    "i": 5, "s": "abc", "b": True, "d": 1.5, "u": "a_c", "big": 2**40, "f": Float(1.1), "n": "5", "order": 1,
    "JMSPriority": 7, "JMSDeliveryMode": "PERSISTENT", "JMSTimestamp": 0, "JMSType": "t",
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i = 5 AND s = 'abc'", True),
        ("i <> 5 OR x = 1", None),
        ("NOT i = 6", True),
        ("NOT (x = 1)", None),
        ("x IS NULL AND i IS NOT NULL", True),
        ("i BETWEEN 1 AND 5 AND b", True),
        ("i NOT BETWEEN x AND 3", True),
        ("i BETWEEN x AND 3", False),
        ("s IN ('x', 'abc')", True),
        ("i NOT IN ('5')", None),
        ("s LIKE 'a%'", True),
        ("i LIKE '5'", False),
        ("i NOT LIKE '5'", False),
        ("u LIKE 'a\\_c' ESCAPE '\\'", True),
        ("s LIKE 'a\\_c' ESCAPE '\\'", False),
        ("n = 5", False),
        ("n <> 5", False),
        ("NOT (n = 5)", True),
        ("f = 1.1", False),
        ("f = 1.1f", True),
        ("i / 2 = 2", True),
        ("-7 / 2 = -3", True),
        ("i / 0 = 1", None),
        ("s + 1 > 0", False),
        ("2147483647 + 1 < 0", True),
        ("2147483647 + 1L > 0", True),
        ("big * 2 = 2199023255552", True),
        ("b = TRUE", True),
        ("(i = 5) = b", True),
        ("s", False),
        ("x", None),
        ("order = 1", True),
        ("JMSPriority > 6 AND JMSDeliveryMode = 'PERSISTENT'", True),
        ("JMSDeliveryMode = 1", False),
        ("JMSTimestamp - 1 < 0 AND JMSType = 't'", True),
        ("i = 0x5 AND i = 05 AND i = 5L AND i = 5. AND i = .5e1", True),
        ("--i = 5", True),
        ("s\n=\t'abc'", True),
        ("TRUE", True),
        ("9223372036854775807 + 1 = -9223372036854775808", True),
    ],
)
def test_selectors_are_true_false_or_unknown(text: str, expected: bool | None) -> None:
    assert Selector(text).matches(VALUES) is expected


def test_a_message_matches_by_its_properties_and_headers() -> None:
    message = TextMessage("x")
    message.properties.update({"region": "EU", "amount": 5})
    message.jms_priority = 7
    message.jms_delivery_mode = 1
    message.jms_correlation_id = "c"
    text = "region = 'EU' AND amount > 3 AND JMSPriority = 7 AND JMSDeliveryMode = 'NON_PERSISTENT'"
    assert Selector(f"{text} AND JMSCorrelationID = 'c' AND JMSType IS NULL AND JMSMessageID IS NULL").matches(message)
    assert Selector("JMSTimestamp = 0").matches(Message()) is True
    assert Selector("region = 'EU'").matches(MapMessage({"region": "US"}, properties={"region": "EU"})) is True


def test_a_record_matches_without_a_message_and_only_named_headers_are_read() -> None:
    record = Record(
        properties={"region": "EU", "amount": "5", "amount_jsmtype": "int", "old": "7", "old_jmstype": "integer"}
    )
    asked: list[str] = []

    def header(record: object, name: str) -> object:
        asked.append(name)
        return {"JMSPriority": 7}.get(name)

    text = "region = 'EU' AND amount > 3 AND old = 7 AND JMSPriority = 7 AND JMSXGroupID IS NULL"
    assert Selector(f"{text} AND JMSMessageID IS NULL").matches_record(record, header) is True
    assert asked == ["JMSPriority", "JMSXGroupID", "JMSMessageID"]


@pytest.mark.parametrize("bad", ["five", "", "5.0", "1_0", " 5", "99999999999", "0x5"])
def test_a_bad_number_on_the_wire_is_unknown(bad: str) -> None:
    record = Record(properties={"n": bad, "n_jsmtype": "int"})
    for text in ("n = 5", "n <> 5", "n > 5", "n + 1 > 5", "n BETWEEN 1 AND 5", "NOT (n = 5)", "n IN ('five')"):
        assert Selector(text).matches_record(record, lambda record, name: None) is None, text
    assert Selector("n IS NULL").matches_record(record, lambda record, name: None) is False


def test_odd_values_in_a_mapping_never_raise() -> None:
    for value in (b"x", [1], object(), 1j, 2**70):
        for text in ("x = 5", "x <> 'a'", "x > 1", "x + 1 = 2", "x LIKE 'a'", "x", "x BETWEEN 1 AND 2"):
            assert Selector(text).matches({"x": value}) is False
        assert Selector("x IN ('a')").matches({"x": value}) is None


def test_the_cache_is_bounded_and_hits() -> None:
    first = Selector("cached = 1")
    assert Selector("cached = 1").matches_record is first.matches_record
    for number in range(module.CACHED + 10):
        Selector(f"a = {number}")
    assert module._compiled.cache_info().currsize <= module.CACHED


def test_identity_of_selectors() -> None:
    assert Selector("a = 1") == Selector("a = 1") != Selector("a  = 1")
    assert len({Selector("a = 1"), Selector("a = 1")}) == 1
    assert repr(Selector("a = 1")) == "Selector('a = 1')"
