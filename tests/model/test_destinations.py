"""Destinations and the Pulsar topics that they stand for."""

from __future__ import annotations

import gc
import pickle
import weakref
from typing import Any

import pytest
from hypothesis import given, strategies as st

from jmsaio.errors import ConfigurationError, IllegalStateError, InvalidDestinationError
from jmsaio.model.destinations import (
    Destination,
    Queue,
    TemporaryQueue,
    TemporaryTopic,
    Topic,
    as_destination,
    destination_text,
    full_name,
    join_names,
    parse_destination_text,
    resolve,
    with_kind,
    without_query,
)

D = "persistent://public/default/"


def test_equality_is_by_kind_and_name() -> None:
    assert Queue("a") == Queue("a") == TemporaryQueue("a") and hash(Queue("a")) == hash(TemporaryQueue("a"))
    assert Topic("a") == TemporaryTopic("a", owner="x") and Topic("a") != Queue("a") and Queue("a") != Queue("b")
    assert Queue("a") != "a" and len({Queue("a"), TemporaryQueue("a"), Topic("a")}) == 2


@pytest.mark.parametrize("kind", [Queue, Topic])
def test_destinations_of_one_topic_are_equal_however_they_are_spelled(kind: Any) -> None:
    full, elsewhere = kind(f"{D}a"), kind("a", namespace="t/n")
    same = [
        kind("a"),
        full,
        kind("a?consumerConfig.receiverQueueSize=1"),
        kind(f"{D}a?consumerConfig.x=y"),
        kind("a", namespace="public/default"),
    ]
    assert all(one == other for one in same for other in same) and len(set(same)) == 1
    assert elsewhere == kind("persistent://t/n/a") == kind("a", namespace="t/n") and elsewhere != full
    assert elsewhere == kind("a") and hash(elsewhere) == hash(kind("a"))  # it may be the one of any namespace
    for other in ("b", "non-persistent://public/default/a", "persistent://t/n/a", "a-partition-0", "x/a"):
        assert kind(other) != full and kind(other) != kind("a")
    assert len({kind("a"), kind("b"), full}) == 2
    assert kind(f"{D}a") != (Topic if kind is Queue else Queue)(f"{D}a") and Queue("a:own") != Queue("a")


def test_destinations_survive_pickling_and_lose_their_query() -> None:
    again = pickle.loads(pickle.dumps(Queue("a?consumerConfig.x=y", namespace="t/n")))
    assert again == Queue("persistent://t/n/a") and again.name == "a?consumerConfig.x=y"
    assert without_query(again).name == "a" and without_query(again) == again
    assert without_query(plain := Topic("a")) is plain


def test_resolving_tells_equal_destinations_apart() -> None:
    """Equality follows what is known of a short name; where messages go follows how it is spelled."""
    assert resolve(Queue("a"), "t/n").topics == ("persistent://t/n/a",)
    assert resolve(Queue(f"{D}a"), "t/n").topics == (f"{D}a",)
    assert resolve(Queue("a", namespace="x/y"), "t/n").topics == ("persistent://x/y/a",)
    assert resolve(Queue("a?consumerConfig.x=1")).overrides == {"x": "1"} and resolve(Queue("a")).overrides == {}


def test_names_and_looks() -> None:
    assert Queue("a").queue_name == Queue("a").name == "a" and Topic("b").topic_name == "b"
    assert (repr(Queue("a")), str(Queue("a"))) == ("Queue('a')", "queue://a")
    assert (repr(Topic("a")), str(Topic("a"))) == ("Topic('a')", "topic://a")
    assert repr(TemporaryQueue("a", owner="x")) == "TemporaryQueue('a')"
    assert not hasattr(Queue("a"), "topic_name") and not hasattr(Topic("a"), "queue_name")


@pytest.mark.parametrize("kind", [Queue, Topic, TemporaryQueue, TemporaryTopic])
@pytest.mark.parametrize("name", ["", None, 5, b"a"])
def test_a_name_is_needed(kind: type[Destination], name: Any) -> None:
    with pytest.raises(InvalidDestinationError):
        kind(name)


@pytest.mark.parametrize("kind", [Queue, Topic, TemporaryQueue, TemporaryTopic])
def test_a_destination_cannot_be_changed(kind: type[Destination]) -> None:
    with pytest.raises(AttributeError):
        kind("a").name = "b"  # type: ignore[misc]  # what is tested


@pytest.mark.parametrize("kind", [TemporaryQueue, TemporaryTopic])
async def test_a_temporary_destination_is_deleted_where_it_was_made(kind: type[Any]) -> None:
    calls = []

    async def delete() -> None:
        calls.append(1)

    await kind("a", delete=delete).delete()
    assert calls == [1]
    with pytest.raises(IllegalStateError):
        await kind("a").delete()


class ForeignQueue:
    queue_name = "q"


class ForeignTopic:
    topic_name = "t"


class OtherDestination:
    name = "x"


def test_destinations_of_other_libraries_are_adopted_and_anything_else_is_refused() -> None:
    queue = TemporaryQueue("a")
    assert as_destination(queue) is queue
    assert as_destination(ForeignQueue()) == Queue("q") and as_destination(ForeignTopic()) == Topic("t")
    for value in (None, "a", OtherDestination(), 5, Destination("a")):
        with pytest.raises(InvalidDestinationError):
            as_destination(value)


@pytest.mark.parametrize(
    ("destination", "topics", "subscription", "virtual"),
    [
        (Queue("q"), [D + "q"], None, False),
        (Queue("q:sub"), [D + "q"], "sub", False),
        (Queue("a:b:c"), [D + "a:b"], "c", False),
        (Queue("persistent://t/n/q:sub"), ["persistent://t/n/q"], "sub", False),
        (Queue("persistent://t/n/q"), ["persistent://t/n/q"], None, False),
        (Queue("non-persistent://t/n/q"), ["non-persistent://t/n/q"], None, False),
        (Queue("t/n/q"), [D + "t/n/q"], None, False),
        (Topic("t"), [D + "t"], None, False),
        (Topic("t:x"), [D + "t:x"], None, False),
        (Topic("persistent://t/n/x"), ["persistent://t/n/x"], None, False),
        (Queue("multi:a,b"), [D + "a", D + "b"], None, True),
        (Queue("multi:a,b:sub"), [D + "a", D + "b"], "sub", True),
        (Queue("multi:persistent://t/n/a,b:sub"), ["persistent://t/n/a", D + "b"], "sub", True),
        (Queue("multi:a,persistent://t/n/b:sub"), [D + "a", "persistent://t/n/b"], "sub", True),
        (Topic("multi:a,b:c"), [D + "a", D + "b:c"], None, True),
        (Queue("multi:a,b,"), [D + "a", D + "b"], None, True),
        (Queue("multi:a"), [D + "a"], None, False),
        (Queue("multi:a,"), [D + "a"], None, False),
    ],
    ids=str,
)
def test_a_destination_resolves_to_its_topics_and_subscription(
    destination: Destination, topics: list[str], subscription: str | None, virtual: bool
) -> None:
    found = resolve(destination)
    assert (list(found.topics), found.pattern, found.subscription) == (topics, None, subscription)
    assert found.virtual is virtual and not found.overrides and found.visible_name == destination.name


@pytest.mark.parametrize(
    ("destination", "pattern", "subscription"),
    [
        (Topic("regex:a.*"), D + "a.*", None),
        (Queue("regex:a.*"), D + "a.*", None),
        (Queue("regex:a.*:sub"), D + "a.*", "sub"),
        (Queue("regex:persistent://t/n/a.*:sub"), "persistent://t/n/a.*", "sub"),
        (Topic("regex:persistent://t/n/(a|b:c)"), "persistent://t/n/(a|b:c)", None),
    ],
    ids=str,
)
def test_a_regex_destination_resolves_to_its_pattern(
    destination: Destination, pattern: str, subscription: str | None
) -> None:
    found = resolve(destination)
    assert (found.topics, found.pattern, found.subscription, found.virtual) == ((), pattern, subscription, True)


def test_the_system_namespace() -> None:
    assert resolve(Queue("multi:a,persistent://x/y/b"), "t/n").topics == ("persistent://t/n/a", "persistent://x/y/b")
    assert resolve(Topic("regex:a"), "t/n").pattern == "persistent://t/n/a"


@pytest.mark.parametrize(
    ("query", "overrides"),
    [
        ("", {}),
        ("consumerConfig.receiverQueueSize=10", {"receiverQueueSize": "10"}),
        ("consumerConfig.a.b=1&consumerConfig.a.c=2", {"a": {"b": "1", "c": "2"}}),
        ("consumerConfig.a=1&consumerConfig.a=2", {"a": "2"}),
        ("consumerConfig.a=b%3D+c%26", {"a": "b= c&"}),
        ("consumerConfig.a=b=c", {"a": "b=c"}),
        ("consumer%43onfig.a=1", {"a": "1"}),
        ("consumerConfig.a", {"a": ""}),
        ("&&consumerConfig.a=1&", {"a": "1"}),
        ("consumerConfig.a=1?b", {"a": "1?b"}),
    ],
)
@pytest.mark.parametrize("name", ["q", "multi:a,b", "regex:x"])
def test_consumer_settings_behind_a_name_are_its_overrides(name: str, query: str, overrides: dict[str, object]) -> None:
    for destination in (Queue(f"{name}?{query}"), Topic(f"{name}?{query}")):
        found = resolve(destination)
        assert found.overrides == overrides and found.visible_name == name
        assert (found.topics, found.pattern) == (resolve(Queue(name)).topics, resolve(Queue(name)).pattern)


def test_a_queue_with_subscription_and_query() -> None:
    found = resolve(Queue("q:sub?consumerConfig.a=1:2"))
    assert (found.topics, found.subscription, found.overrides) == ((D + "q",), "sub", {"a": "1:2"})
    assert found.visible_name == "q:sub"


def test_what_is_remembered_can_not_be_changed() -> None:
    overrides: Any = resolve(Queue("q?consumerConfig.a=1")).overrides
    with pytest.raises(TypeError):
        overrides["a"] = 2


@pytest.mark.parametrize(
    "destination",
    [
        Queue("q:"), Queue("persistent://t/n/q:"), Queue(":s"), Queue("multi:"), Topic("multi:"), Queue("multi:,a"),
        Queue("multi:a,,b"), Topic("multi:a,,b"), Queue("multi:,"), Queue("regex:"), Topic("regex:"), Queue("regex:a:"),
        Queue("?consumerConfig.a=1"), Queue("q?consumerConfig=1"),
        Queue("q?consumerConfig.a=1&consumerConfig.a.b=2"), Queue("q?consumerConfig.a.b=1&consumerConfig.a=2"),
        Queue(" "), Topic(f"{D}\t"), Queue("multi:a, "), Queue("q\0"), Topic("\ud800"),
        Topic("t" * 1001), Queue("q: "), Queue("q:s\0"), Queue("q:" + "s" * 1001),
    ],
    ids=repr,
)  # fmt: skip
def test_names_that_stand_for_nothing(destination: Destination) -> None:
    with pytest.raises(InvalidDestinationError):
        resolve(destination)


@pytest.mark.parametrize("kind", [Queue, Topic, TemporaryQueue, TemporaryTopic])
@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("receiverQueueSize=5", "write '?consumerConfig.receiverQueueSize=...'"),
        ("deadLetterPolicy.maxRedeliverCount=5", "write '?consumerConfig.deadLetterPolicy.maxRedeliverCount=...'"),
        ("consumerConfg.receiverQueueSize=5", "write '?consumerConfig.receiverQueueSize=...'"),
        ("consumerConfig.a=1&ConsumerConfig.b=5", "write '?consumerConfig.b=...'"),
        ("jms.clientId=secret", "give it to connect"),
        ("producerConfig.batchingEnabled=false", "give it to connect"),
        ("authParams=secret", "unknown option 'authParams'"),
        ("\ud800=5", "unknown option '\\ud800'"),
    ],
)
def test_an_option_that_nothing_reads_is_refused(kind: type[Destination], query: str, words: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        kind(f"orders?{query}")
    assert words in str(refused.value) and "secret" not in str(refused.value)
    with pytest.raises(ConfigurationError, match=r"or \{0,1\} for"):
        kind("regex:orders-a?b")


@given(st.text(min_size=1), st.sampled_from([Queue, Topic]))
def test_any_name_resolves_or_is_refused_clearly(name: str, kind: type[Destination]) -> None:
    try:
        found = resolve(kind(name))
    except (InvalidDestinationError, ConfigurationError):
        return
    assert all(topic.partition("://")[0] in ("persistent", "non-persistent") for topic in found.topics)
    assert (found.pattern is None) == bool(found.topics)


@pytest.mark.parametrize("kind", [TemporaryQueue, TemporaryTopic])
def test_resolving_does_not_keep_a_temporary_destination(kind: type[TemporaryQueue | TemporaryTopic]) -> None:
    destination = kind("jms-temp-a:b", owner="x")
    plain = {TemporaryQueue: Queue, TemporaryTopic: Topic}[kind]("jms-temp-a:b")
    assert resolve(destination) == resolve(plain)
    gone = weakref.ref(destination)
    del destination
    gc.collect()
    assert gone() is None


def test_short_names_are_in_the_default_namespace() -> None:
    assert full_name("a/b") == "persistent://public/default/a/b"
    assert full_name("non-persistent://t/n/x") == "non-persistent://t/n/x"


@pytest.mark.parametrize(
    ("kind", "topic", "text"),
    [
        (Queue, "persistent://public/default/orders", "queue://orders"),
        (Topic, "persistent://public/default/orders-partition-3", "topic://orders"),
        (Queue, "persistent://other/space/orders", "queue://persistent://other/space/orders"),
    ],
)
def test_a_topic_is_read_under_the_text_that_leads_back_to_it(
    kind: type[Queue] | type[Topic], topic: str, text: str
) -> None:
    assert destination_text(kind, topic, "public/default") == text
    destination = parse_destination_text(text)
    assert (type(destination), str(destination)) == (kind, text)


@pytest.mark.parametrize("text", ["", "orders", "persistent://public/default/orders", "queue://", "Queue://x", "://x"])
def test_a_text_that_does_not_say_queue_or_topic_is_refused(text: str) -> None:
    with pytest.raises(InvalidDestinationError, match="must be written queue://name or topic://name"):
        parse_destination_text(text)


@pytest.mark.parametrize("name", ["orders", "persistent://public/default/orders", "multi:a,b"])
def test_a_name_alone_is_of_the_kind_that_is_meant(name: str) -> None:
    assert with_kind(name, "topic") == f"topic://{name}"
    assert with_kind(f"queue://{name}", "topic") == f"queue://{name}"


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("orders", "orders"),
        ("orders, returns", "multi:orders,returns"),
        ("['orders', 'returns']", "multi:orders,returns"),
        ('["orders","returns"]', "multi:orders,returns"),
        ("['orders']", "orders"),
        ("queue://orders,queue://returns", "queue://multi:orders,returns"),
        ("topic://orders, returns", "topic://multi:orders,returns"),
        ("a,b?consumerConfig.x=1,2", "multi:a,b?consumerConfig.x=1,2"),
        ("multi:a,b", "multi:a,b"),
        ("queue://multi:a, b", "queue://multi:a, b"),
        ("regex:a{1, 2}", "regex:a{1, 2}"),
    ],
)
def test_several_names_are_one_destination(text: str, joined: str) -> None:
    assert join_names(text) == joined


@pytest.mark.parametrize("text", ["queue://a,topic://b", "topic://a,queue://b", "a,queue://b,topic://c"])
def test_queues_and_topics_are_not_read_together(text: str) -> None:
    with pytest.raises(InvalidDestinationError, match="names queues and topics: read each kind, and union the rows"):
        join_names(text)
