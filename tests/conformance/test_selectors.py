"""Message selectors (checklist.txt, group 1): the rejected message is sent first and has to be passed over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import jmsaio
from jmsaio import Byte, Float, Long, Short
from tests.conformance.kit import row

QUEUE = "core/selectorQueue/MsgSelectorQueueTestsIT"
TOPIC = "core/selectorTopic/MsgSelectorTopicTestsIT"
TYPE = "JMSType"

Name = Callable[[str], str]
Properties = dict[str, Any]

#: Method of the queue tests: selector, properties of a message that it selects, and of one that it does not.
SELECTING: dict[str, tuple[str, Properties, Properties | None]] = {
    "selectorTest01": ("JMSType = 'literal'", {TYPE: "literal"}, {TYPE: "other"}),
    "selectorTest02": ("JMSType = 'it''s'", {TYPE: "it's"}, {TYPE: "its"}),
    "selectorTest03": (
        "lowest = -9223372036854775808L AND highest = 9223372036854775807L",
        {"lowest": Long(-(2**63)), "highest": Long(2**63 - 1)},
        {"lowest": Long(-(2**63) + 1), "highest": Long(2**63 - 1)},
    ),
    "selectorTest04": ("down = -5 AND up = +7", {"down": -5, "up": 7}, {"down": 5, "up": 7}),
    "selectorTest05": ("number = 0171", {"number": 0o171}, {"number": 171}),
    "selectorTest06": ("number = 0xfF", {"number": 255}, {"number": 15}),
    "selectorTest07": ("big = 5e2 AND small = -7.25E-1", {"big": 500, "small": -0.725}, {"big": 500, "small": 0.725}),
    "selectorTest08": ("number = 46.", {"number": 46.0}, {"number": 46.5}),
    "selectorTest09": ("number = .125e2", {"number": 12.5}, {"number": 0.125}),
    "selectorTest11": ("yes = TRUE AND no = FALSE", {"yes": True, "no": False}, {"yes": False, "no": False}),
    "selectorTest12": ("yes = true AND no = false", {"yes": True, "no": False}, {"yes": True, "no": True}),
    "identifierTest01": ("$one = 1 AND _two = 2", {"$one": 1, "_two": 2}, {"$one": 1, "_two": 3}),
    "identifierTest12": ("name = 'a' AND Name = 'b'", {"name": "a", "Name": "b"}, {"name": "b", "Name": "a"}),
    "identifierTest13": ("name = 'a'", {"name": "a"}, {}),
    "whitespaceTest1": ("name   =    'a'", {"name": "a"}, {"name": "b"}),
    "whitespaceTest2": ("name\t=\t\t'a'", {"name": "a"}, {"name": "b"}),
    "whitespaceTest3": ("name\f=\f'a'", {"name": "a"}, {"name": "b"}),
    "whitespaceTest4": ("name\n=\n'a'", {"name": "a"}, {"name": "b"}),
    "expressionTest1": ("flag", {"flag": True}, None),
    "expressionTest2": ("flag", {"flag": True}, {"flag": False}),
    "expressionTest3": ("flag", {"flag": True}, {}),
    "bracketingTest1": ("(a = 1 OR b = 1) AND c = 1", {"a": 0, "b": 1, "c": 1}, {"a": 1, "b": 1, "c": 0}),
    "bracketingTest2": ("((1 = 1) AND (2 <> 3)) OR (1 > 2)", {}, None),
    "bracketingTest3": ("(a = 1 OR b = 1) AND JMSType = 't'", {"b": 1, TYPE: "t"}, {"b": 1, TYPE: "u"}),
    "bracketingTest4": ("(a = 1 AND b = 1) OR c = 1", {"a": 1, "b": 0, "c": 1}, {"a": 1, "b": 0, "c": 0}),
    "comparisonTest01": (
        "i = 3 AND i <> 4 AND f > 1.5 AND d >= 2.25 AND i < 4 AND d <= 2.25 AND s = 'x'",
        {"i": 3, "f": Float(1.75), "d": 2.25, "s": "x"},
        {"i": 3, "f": Float(1.5), "d": 2.25, "s": "x"},
    ),
    "comparisonTest02": (
        "i = 4 OR i <> 3 OR f > 1.75 OR d >= 2.5 OR i < 3 OR d <= 2 OR s = 'x'",
        {"i": 3, "f": Float(1.75), "d": 2.25, "s": "x"},
        {"i": 3, "f": Float(1.75), "d": 2.25, "s": "y"},
    ),
    "comparisonTest03": ("i < d", {"i": 3, "d": 3.5}, {"i": 3, "d": 2.5}),
    "comparisonTest08": ("s <> 'x'", {"s": "y"}, {"s": "x"}),
    "comparisonTest13": ("a = TRUE AND b <> TRUE", {"a": True, "b": False}, {"a": True, "b": True}),
    "operatorTest1": ("-a = 5 AND +b = 7", {"a": -5, "b": 7}, {"a": 5, "b": 7}),
    "operatorTest2": ("a * 3 = 12 AND a / 2 = 2", {"a": 4}, {"a": 5}),
    "operatorTest3": ("a + 3 = 7 AND a - 3 = 1", {"a": 4}, {"a": 5}),
    "betweenTest1": (
        "a BETWEEN 1 AND 5 AND b BETWEEN 1 AND 5 AND c BETWEEN -3 AND 3", {"a": 1, "b": 5, "c": -2},
        {"a": 1, "b": 6, "c": -2},
    ),
    "betweenTest2": ("a BETWEEN 1 AND 5 OR b BETWEEN 1 AND 5", {"a": 0, "b": 3}, {"a": 0, "b": 6}),
    "betweenTest3": ("a NOT BETWEEN 1 AND 5 AND b NOT BETWEEN 1 AND 5", {"a": 0, "b": 6}, {"a": 1, "b": 6}),
    "betweenTest4": ("a NOT BETWEEN 1 AND 5 OR b NOT BETWEEN 1 AND 5", {"a": 1, "b": 6}, {"a": 1, "b": 5}),
    "betweenTest5": ("a BETWEEN 1 AND 5", {"a": 3}, {"a": "3"}),
    "betweenTest6": ("a BETWEEN 1 AND 5", {"a": 3}, {"a": "three"}),
    "inTest1": ("JMSType IN ('a', 'b')", {TYPE: "b"}, {TYPE: "c"}),
    "inTest2": ("JMSType IN ('a', 'b')", {TYPE: "a"}, {TYPE: "A"}),
    "inTest3": ("JMSType NOT IN ('a', 'b')", {TYPE: "A"}, {TYPE: "a"}),
    "inTest4": ("JMSType NOT IN ('a', 'b')", {TYPE: "c"}, {TYPE: "b"}),
    "inTest5": ("s IN ('a', 'b')", {"s": "a"}, {}),
    "inTest6": ("s NOT IN ('a', 'b')", {"s": "c"}, {}),
    "inTest7": ("s NOT IN ('a', 'b')", {"s": "c"}, {"s": 5}),
    "likeTest01": ("s LIKE 'word'", {"s": "word"}, {"s": "other"}),
    "likeTest02": ("s LIKE '_ord' AND s LIKE 'w_rd' AND s LIKE 'wor_'", {"s": "word"}, {"s": "lord"}),
    "likeTest03": ("s LIKE '%ord' AND s LIKE 'w%d' AND s LIKE 'wo%' AND s LIKE 'word%'", {"s": "word"}, {"s": "wor"}),
    "likeTest04": ("s LIKE 'aZ_b_cZ%d%' ESCAPE 'Z'", {"s": "a_bxc%dyy"}, {"s": "axbxc%dyy"}),
    "likeTest05": ("s LIKE 'word'", {"s": "word"}, {"s": "swords"}),
    "likeTest06": ("s LIKE 'w_rd'", {"s": "word"}, {"s": "woord"}),
    "likeTest07": ("s LIKE '%rd'", {"s": "word"}, {"s": "wordy"}),
    "likeTest08": ("s LIKE 'aZ_b' ESCAPE 'Z'", {"s": "a_b"}, {"s": "axb"}),
    "likeTest09": ("s NOT LIKE 'word'", {"s": "other"}, {"s": "word"}),
    "likeTest10": ("s NOT LIKE 'w_rd'", {"s": "woord"}, {"s": "word"}),
    "likeTest11": ("s NOT LIKE '%rd'", {"s": "wordy"}, {"s": "word"}),
    "likeTest12": ("s NOT LIKE 'aZ_b' ESCAPE 'Z'", {"s": "axb"}, {"s": "a_b"}),
    "likeTest13": ("s NOT LIKE 'a' OR s NOT LIKE 'a'", {"s": "b"}, {"s": "a"}),
    "likeTest14": ("s NOT LIKE '_a' OR s NOT LIKE 'a_'", {"s": "ba"}, {"s": "aa"}),
    "likeTest15": ("s NOT LIKE 'w%'", {"s": "other"}, {"s": "word"}),
    "likeTest16": ("s NOT LIKE 'aZ%%' ESCAPE 'Z'", {"s": "ab"}, {"s": "a%b"}),
    "likeTest17": ("s LIKE 'a\\_b' ESCAPE '\\'", {"s": "a_b"}, {"s": "axb"}),
    "likeTest18": ("s LIKE 'w%'", {"s": "word"}, {}),
    "likeTest19": ("s NOT LIKE 'w%'", {"s": "other"}, {}),
    "likeTest20": ("s LIKE '5%'", {"s": "55"}, {"s": 55}),
    "isNullTest1": ("s IS NULL", {}, {"s": "there"}),
    "isNullTest2": ("s IS NULL", {"t": "there"}, {"s": "there"}),
    "isNullTest3": ("f IS NOT NULL", {"f": Float(1.5)}, {}),
    "isNullTest4": ("s IS NOT NULL", {"s": "there"}, {"t": "there"}),
    "caseTest1": (
        "s like 'w%' escape 'z' and not a in ('x') or b between 1 and 2 and c is not null and d = true",
        {"s": "word", "a": "y", "b": 5}, {"s": "lord", "a": "y", "b": 5},
    ),
    "precedenceTest1": ("NOT a = 1 AND b = 1", {"a": 0, "b": 1}, {"a": 0, "b": 0}),
    "precedenceTest2": ("a = 1 AND NOT b = 1", {"a": 1, "b": 0}, {"a": 0, "b": 0}),
    "precedenceTest3": ("a = 1 OR b = 1 AND c = 1", {"a": 1, "b": 0, "c": 0}, {"a": 0, "b": 1, "c": 0}),
    "precedenceTest4": ("-a + b = 1", {"a": 4, "b": 5}, {"a": -4, "b": 5}),
    "precedenceTest5": (
        "a + b * c - b / d = 10", {"a": 5.0, "b": 3.0, "c": 2.0, "d": 3.0}, {"a": 8.0, "b": 3.0, "c": 2.0, "d": 3.0},
    ),
    "nullTest04": ("a = 1 AND a = 1", {"a": 1}, {"a": 2}),
    "nullTest06": (
        "(a = 1 OR n = 1) AND (n = 1 OR a = 1) AND (a = 1 OR a = 2) AND (a = 2 OR a = 1) AND (a = 1 OR a = 1)",
        {"a": 1}, {"a": 2},
    ),
    "nullTest08": ("NOT (a = 1)", {"a": 2}, {"a": 1}),
}  # fmt: skip

#: As above, of messages that the selector never selects; they are sent, and only the next one, that it does, arrives.
NEVER: dict[str, tuple[str, str, Properties]] = {
    "nullTest01": ("missing * 2 = 4", "missing", {"a": 1}),
    "nullTest02": ("missing > 1 OR missing <= 1", "missing", {"a": 1}),
    "nullTest03": ("missing NOT IN ('a')", "missing", {"a": 1}),
    "nullTest05": (
        "(a = 1 AND n = 1) OR (n = 1 AND a = 1) OR (n = 1 AND n = 1) OR (a = 2 AND n = 1) OR (n = 1 AND a = 2) "
        "OR (a = 1 AND a = 2) OR (a = 2 AND a = 1) OR (a = 2 AND a = 2)",
        "n", {"a": 1},
    ),
    "nullTest07": ("a = 2 OR n = 1 OR (n = 1 OR a = 2) OR (n = 1 OR n = 1) OR (a = 2 OR a = 2)", "n", {"a": 1}),
    "nullTest09": ("NOT (a = 1) OR marked = 1", "marked", {"a": 1}),
    "nullTest10": ("NOT (n = 1) OR marked = 1", "marked", {"a": 1}),
}  # fmt: skip

#: What makes each of `NEVER` true after all.
MARK: dict[str, Properties] = {
    "nullTest01": {"missing": 2},
    "nullTest02": {"missing": 2},
    "nullTest03": {"missing": "b"},
    "nullTest05": {"a": 1, "n": 1},
    "nullTest07": {"a": 1, "n": 1},
    "nullTest09": {"a": 1, "marked": 1},
    "nullTest10": {"a": 1, "marked": 1},
}

#: Method of the queue tests: a selector that is refused.
INVALID = {
    **{
        f"identifierTest{number:02}": f"{word} = 'a'"
        for number, word in zip(
            (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14),
            ("NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"),
            strict=True,
        )
    },
    "comparisonTest04": "a > 'x'",
    "comparisonTest05": "a >= 'x'",
    "comparisonTest06": "a < 'x'",
    "comparisonTest07": "a <= 'x'",
    "comparisonTest09": "'x' > TRUE",
    "comparisonTest10": "'x' >= TRUE",
    "comparisonTest11": "'x' < TRUE",
    "comparisonTest12": "'x' <= TRUE",
    "betweenTest7": "a BETWEEN 'x' AND 'y'",
    "inTest8": "a IN (1, 2)",
    "likeTest21": "a LIKE 5",
}

#: Methods of the topic tests that repeat a queue test.
TWINS = [
    "selectorTest01", "identifierTest01", "whitespaceTest1", "expressionTest1", "bracketingTest1", "comparisonTest01",
    "operatorTest1", "betweenTest1", "inTest1", "likeTest01", "isNullTest1", "caseTest1", "precedenceTest1",
]  # fmt: skip

ROWS = [
    *(row(jmsaio.Queue, *case, key=f"{QUEUE}.{method}") for method, case in SELECTING.items()),
    *(row(jmsaio.Topic, *SELECTING[method], key=f"{TOPIC}.{method}") for method in TWINS),
    *(row(jmsaio.Queue, text, MARK[method], other, key=f"{QUEUE}.{method}")
      for method, (text, _, other) in NEVER.items()),
    row(jmsaio.Topic, NEVER["nullTest01"][0], MARK["nullTest01"], {"a": 1}, key=f"{TOPIC}.nullTest01"),
]  # fmt: skip


def message(text: str, properties: Properties) -> jmsaio.TextMessage:
    made = jmsaio.TextMessage(text, properties={name: value for name, value in properties.items() if name != TYPE})
    made.jms_type = properties.get(TYPE)
    return made


@pytest.mark.parametrize(("kind", "selector", "selected", "passed_over"), ROWS)
async def test_only_the_selected_message_arrives(
    session: jmsaio.Session, name: Name, kind: type[Any], selector: str, selected: Properties, passed_over: Any
) -> None:
    destination = kind(name("selector"))
    async with session.create_consumer(destination, selector) as consumer:
        async with session.create_producer(destination) as producer:
            if passed_over is not None:
                await producer.send(message("passed over", passed_over))
            await producer.send(message("selected", selected))
        found = await consumer.receive(timeout=20)
    assert found is not None and found.get_body(str) == "selected"


@pytest.mark.parametrize("selector", [row(text, key=f"{QUEUE}.{method}") for method, text in INVALID.items()])
async def test_an_invalid_selector_is_refused(session: jmsaio.Session, name: Name, selector: str) -> None:
    with pytest.raises(jmsaio.InvalidSelectorError):
        await session.create_consumer(jmsaio.Queue(name("selector")), selector)


@pytest.mark.parametrize(
    ("kind", "selector"),
    [
        row(jmsaio.Queue, None, key=f"{QUEUE}.nullTest11"),
        row(jmsaio.Topic, None, key=f"{TOPIC}.nullTest11"),
        row(jmsaio.Topic, "", key=f"{TOPIC}.emptyTest"),
    ],
)
async def test_no_selector_selects_all(session: jmsaio.Session, name: Name, kind: type[Any], selector: Any) -> None:
    destination = kind(name("selector"))
    async with session.create_consumer(destination, selector) as consumer:
        assert consumer.message_selector in (None, "")
        async with session.create_producer(destination) as producer:
            for value in (True, Byte(1), Short(2), "text"):
                await producer.send("any", properties={"value": value})
        found = [await consumer.receive(timeout=20) for _ in range(4)]
    assert [one.properties["value"] for one in found if one is not None] == [True, 1, 2, "text"]


@pytest.mark.parametrize(
    "selector",
    [row("", key=f"{TOPIC}.durableTopicEmptyStringSelTest"), row(None, key=f"{TOPIC}.durableTopicNullSelTest")],
)
async def test_no_selector_is_the_same_subscription(session: jmsaio.Session, name: Name, selector: Any) -> None:
    topic, subscription = jmsaio.Topic(name("durable")), name("subscription")
    async with session.create_durable_consumer(topic, subscription, selector, False):
        assert session.create_text_message("made while open")
    async with session.create_producer(topic) as producer:
        await producer.send("kept")
    async with session.create_durable_consumer(topic, subscription) as consumer:
        found = await consumer.receive(timeout=20)
    assert found is not None and found.get_body(str) == "kept"
    await session.unsubscribe(subscription, topic)
