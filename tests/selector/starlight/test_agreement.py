"""A selector is left to the filter plugin only if the plugin then holds back no message that it selects."""

from __future__ import annotations

import math

import pytest

from jmsaio.errors import InvalidSelectorError
from jmsaio.model.messages.message import Message
from jmsaio.selector import Selector
from jmsaio.selector.starlight.agreement import objection
from tests.selector.generator import Generator, Values, pairs


@pytest.mark.parametrize(
    "text",
    [
        "a = 5", "a = -5", "a <> 5", "5.0 >= 1", "b", "TRUE", "'x' = a", "TRUE = b", "a BETWEEN -1 AND 5",
        "s LIKE 'a!_%' ESCAPE '!'", "s NOT LIKE 'a%'", "s IN ('a', 'b')", "s IS NULL", "NOT b", "NOT (a = 5)",
        "NOT NOT (s LIKE 'a%')", "a > 1 AND (b OR s = 'it''s')", "JMSType = 'order' OR JMSPriority > 5",
        "JMS_vendor = 1", "JMSCorrelationID IN ('a')", "JMSTimestamp > 1700000000000", "JMSDeliveryMode = 'PERSISTENT'",
    ],
)  # fmt: skip
def test_the_plugin_can_run_what_it_answers_like_jms(text: str) -> None:
    assert objection(text) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("NOT a = 5", "column 1: the plugin reads NOT"),
        ("b AND NOT s LIKE 'a'", "column 7: the plugin reads NOT"),
        ("a = b", "column 5: .* on the right"),
        ("5 = a", "column 5: .* on the right"),
        ("a BETWEEN b AND 5", "column 11: .* on the right"),
        ("a + 1 = 5", "column 1: the plugin calculates"),
        ("-a = 5", "column 1: the plugin calculates"),
        ("(a = 1) = TRUE", "column 2: the plugin compares conditions"),
        ("NOT (a <> 5)", "column 6: below NOT"),
        ("NOT (s NOT LIKE 'a')", "column 6: below NOT"),
        ("a = -0.0", "column 5: the plugin distinguishes"),
        ("s LIKE '\x01' ESCAPE '\x01'", None),
        ("s LIKE '\t\t' ESCAPE '\t'", "reads this pattern|can't read"),
        ("s LIKE 'éé' ESCAPE 'é'", None),
        ("s LIKE 'ａａ' ESCAPE 'ａ'", "column 8: the plugin reads this pattern"),
        ("JMSMessageID = 'x'", "column 1: the plugin does not see JMSMessageID"),
        ("JMSXGroupID IS NULL", "column 1: the plugin does not see JMSXGroupID"),
        ("JMSXDeliveryCount > 1", "JMSXDeliveryCount"),
        ("é = 1", "can't read it"),
        ("a = 1.5F", "can't read it"),
    ],
)
def test_the_reason_names_the_place(text: str, reason: str | None) -> None:
    found = objection(text)
    if reason is None:
        assert found is None
    else:
        with pytest.raises(AssertionError, match=reason):
            raise AssertionError(found)


def _odd(values: Values) -> bool:
    """Whether one of the numbers is among the documented exceptions: NaN, or a zero with a minus."""
    floats = [value for value in values.values() if isinstance(value, float)]
    return any(math.isnan(value) or (value == 0 and math.copysign(1, value) < 0) for value in floats)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 5))])
def test_the_plugin_holds_back_nothing_that_jms_selects(seed: int) -> None:
    """On generated selectors and messages; the two engines agree with Java's, by other tests."""
    selected = 0
    for text, values in pairs(Generator(seed, odd=0.1), 600, 10):
        try:
            selector = Selector(text)
        except InvalidSelectorError:
            continue
        if objection(text) is None and not _odd(values) and selector.matches(values) is True:
            selected += 1
            assert Selector(text, "starlight").matches(values) is True, (text, values)
    assert selected > 500


def test_a_message_shows_the_same_headers_to_both() -> None:
    message = Message()
    message.jms_type, message.jms_correlation_id = "order", "c-1"
    text = "JMSType = 'order' AND JMSCorrelationID = 'c-1' AND JMSPriority = 4 AND JMSDeliveryMode = 'PERSISTENT'"
    assert objection(text) is None
    assert Selector(text).matches(message) is Selector(text, "starlight").matches(message) is True
