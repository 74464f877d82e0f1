"""Destinations as texts."""

from __future__ import annotations

import pytest

from jmsaio.errors import InvalidDestinationError
from jmsaio.model.destination_text import destination_text, join_names, parse_destination_text, with_kind
from jmsaio.model.destinations import Queue, Topic


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
