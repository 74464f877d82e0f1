"""Selectors against ActiveMQ's engine on generated pairs, and the two compiled functions against each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from jmsaio.errors import InvalidSelectorError
from jmsaio.model.text import to_java
from jmsaio.model.values import TYPE_NAMES
from jmsaio.model.wire import TYPE_SUFFIX, ReceivedRecord
from jmsaio.selector import Selector
from tests.kit.records import Record
from tests.selector.deviations import explain
from tests.selector.engines import ACTIVEMQ, SOURCES, java_answers, our_answers
from tests.selector.generator import Generator, Values, pairs
from tests.support.java import class_path

SELECTORS, EACH = 2_000, 10
PAIRS = SELECTORS * EACH
Javac = Callable[..., Path]
MavenJars = Callable[..., list[Path]]


def balanced(answers: list[str]) -> None:
    """At least 15,000 pairs parse, and a quarter of those that are evaluated gives each of the three values."""
    counts = Counter(answers)
    assert PAIRS - counts["invalid"] >= 15_000, counts
    evaluated = counts["true"] + counts["false"] + counts["unknown"]
    for answer in ("true", "false", "unknown"):
        assert counts[answer] >= evaluated / 4, counts


@pytest.mark.java
@pytest.mark.timeout(300)
def test_jms_against_activemq(maven_jars: MavenJars, javac: Javac) -> None:
    requests = list(pairs(Generator(20_26), SELECTORS, EACH))
    jars = maven_jars(*ACTIVEMQ)
    classes = javac([SOURCES / "Request.java", SOURCES / "ActiveMQAnswers.java"], *jars)
    java = java_answers("ActiveMQAnswers", class_path(classes, *jars), requests)
    ours = our_answers(requests)
    balanced(ours)
    balanced(java)
    deviations: Counter[str] = Counter()
    unexplained = []
    for (text, values), our, their in zip(requests, ours, java, strict=True):
        if our != their:
            name = explain(text, values, our, their)
            if name is None:
                unexplained.append((text, values, our, their))
            else:
                deviations[name] += 1
    lines = [f"{count:6} {name}" for name, count in deviations.most_common()]
    print("\n".join((f"{deviations.total()} of {PAIRS} differ:", *lines)))
    assert unexplained == []
    assert deviations.total() <= PAIRS / 10


def record_of(values: Values) -> ReceivedRecord:
    """The values as they stand on the wire."""
    properties: dict[str, str] = {}
    for name, value in values.items():
        if not name.startswith("JMS"):
            assert isinstance(value, (bool, int, float, str))  # the generator makes nothing else
            properties[name] = to_java(value)
            if type(value) is not str:
                properties[name + TYPE_SUFFIX] = TYPE_NAMES[type(value)]
    return Record(None, properties)


def _value_of(values: Values, record: object, name: str) -> object:
    """What the record has under a name that is no property."""
    return values.get(name)


@pytest.mark.slow
def test_records_give_the_same_answers_as_values() -> None:
    valid = 0
    for text, values in pairs(Generator(7, odd=0.1), 800, 5):
        try:
            selector = Selector(text)
        except InvalidSelectorError:
            continue
        valid += 1
        given = selector.matches_record(record_of(values), partial(_value_of, values))
        assert given is selector.matches(values), (text, values)
    assert valid > 3_000
