"""When the filter plugin decides as JMS does; its own engine, in Java, is the judge."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from jmsaio.errors import InvalidSelectorError
from jmsaio.selector.agreement import objection, plugin_selector
from tests.selector.engines import SOURCES, in_words, java_answers, our_answer
from tests.selector.generator import StarlightGenerator, Values, pairs
from tests.selector.test_differential import record_of
from tests.support.java import class_path


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
        ("s LIKE '\x01' ESCAPE '\x01'", "reads this pattern"),
        ("s LIKE '\x02' ESCAPE '\x01'", None),
        ("s LIKE '\t\t' ESCAPE '\t'", "reads this pattern"),
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


def test_what_an_operator_sets_has_more_reasons_because_the_plugin_must_not_deliver_more_either() -> None:
    assert (
        plugin_selector("'x' = a").difference
        == "column 7: to the plugin, a name on the right that is missing is unequal"
    )
    assert objection("'x' = a") is None
    difference = plugin_selector("a % 2 = 1").difference
    assert difference is not None and "column 3" in difference


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n <> 5", True),
        ("NOT (n <> 5)", False),
        ("n NOT LIKE '5'", True),
        ("n NOT IN ('5', '6')", None),
        ("m <> 5", None),
    ],
)
def test_a_value_of_another_type_is_unequal_to_the_plugin(text: str, expected: bool | None) -> None:
    """JMS says FALSE to the first three."""
    function = plugin_selector(text).matches_record
    assert function is not None
    assert function(record_of({"n": True}), lambda record, name: None) is expected


VALID = [
    "b", "NULL", "NOT NULL", "i = 1 OR NOT b", "+(s) IN ('abc')", "+REGEX(('a'), s)", "s = 'abc' = b", "i % 2 = 1",
    "INLIST(SPLIT(s, ','), 'a')", "REPLACE(s, 'a', 'b') = 'x'", "convert_string_expressions:n = 5", "-s > 1",
]  # fmt: skip
INVALID = [
    "i==5", "i!=5", "s > 'a'", "s = NULL", "s IN ()", "s LIKE s", "i BETWEEN 'a' AND 'b'", "1", "\"s\"='abc'", "é=1",
    "a.b=1", "XPATH 'a'", "xquery = 1", "'a'", "i + 1", "TRUE = 1", "(i = 5) > 1", "(i + 1) IN ('a')", "NULL = i",
    "s LIKE 'a' ESCAPE 'ab'", "s LIKE 'a' ESCAPE '😀'", "NOT 5", "i > NULL", "0xffffffffffffffff = i", "",
    "regex('a', s)", "REGEX('a')", "SPLIT(s)", "MAKELIST(s) AND b", "b AND SPLIT(s, ',') OR i = 1",
]  # fmt: skip


@pytest.mark.parametrize("text", VALID)
def test_what_the_plugin_can_read(text: str) -> None:
    assert plugin_selector(text).text == text


@pytest.mark.parametrize("text", INVALID)
def test_what_the_plugin_can_not_read(text: str) -> None:
    with pytest.raises(InvalidSelectorError):
        plugin_selector(text)


def test_columns_count_from_the_beginning_of_the_text() -> None:
    with pytest.raises(InvalidSelectorError) as caught:
        plugin_selector("convert_string_expressions:n = ")
    assert caught.value.column == len("convert_string_expressions:n = ") + 1


def _odd(values: Values) -> bool:
    """Whether one of the numbers is among the documented exceptions: NaN, or a zero with a minus."""
    floats = [value for value in values.values() if isinstance(value, float)]
    return any(math.isnan(value) or (value == 0 and math.copysign(1, value) < 0) for value in floats)


def _value_of(values: Values, record: object, name: str) -> object:
    return values.get(name)


@pytest.mark.java
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [20_27, pytest.param(7, marks=pytest.mark.slow)])
def test_the_plugin_s_own_engine_agrees(seed: int, java_classpath: str, javac: Callable[..., Path]) -> None:
    """What it can read is known; what is called alike has its results; what it is left to run, it holds back never."""
    requests = list(pairs(StarlightGenerator(seed, odd=0.12), 2_000, 10))
    classes = javac([SOURCES / "Request.java", SOURCES / "StarlightAnswers.java"])
    java = java_answers("StarlightAnswers", class_path(classes, java_classpath), requests)
    seen: Counter[str] = Counter()
    wrong = []
    for (text, values), answer in zip(requests, java, strict=True):
        try:
            selector = plugin_selector(text)
        except InvalidSelectorError:
            seen["unreadable"] += 1
            if answer != "invalid":
                wrong.append((text, values, answer, "unreadable"))
            continue
        if answer == "invalid":
            wrong.append((text, values, answer, "readable"))
        if _odd(values):
            continue
        if selector.matches_record is not None:
            ours = in_words(selector.matches_record(record_of(values), partial(_value_of, values)))
            seen[ours] += 1
            if ours != answer:
                wrong.append((text, values, answer, ours))
        if our_answer(text, values) == "true" and objection(text) is None:
            seen["selected"] += 1
            if answer != "true":
                wrong.append((text, values, answer, "selected"))
    assert wrong == []
    assert min(seen[each] for each in ("unreadable", "true", "false", "unknown", "selected")) > 500, seen
