"""Keyword options: those of every section, without a map around them where that is unambiguous."""

import re
from typing import Any

import pytest

from jmsaio.config import Backoff, ConsumerConfig, DeadLetterPolicy, ProducerConfig, load
from jmsaio.config.keywords import KEYWORDS, find_keyword
from jmsaio.config.options import Section
from jmsaio.errors import ConfigurationError


def test_a_keyword_of_producer_or_consumer_needs_no_map() -> None:
    config = load("memory:", send_timeout=10, ack_timeout=12, io_threads=2, dead_letter={"max_redeliver_count": 3})
    assert config.producer == ProducerConfig(send_timeout=10)
    assert config.consumer == ConsumerConfig(ack_timeout=12, dead_letter=DeadLetterPolicy(max_redeliver_count=3))
    assert config.client == {"io_threads": 2}
    assert load("memory:", ack_timeout=None, negative_ack_backoff=Backoff(min_delay=1)).consumer == ConsumerConfig(
        negative_ack_backoff=Backoff(min_delay=1)
    )


@pytest.mark.parametrize(
    "config",
    [
        "memory:?send_timeout=10&dead_letter.max_redeliver_count=3",
        {"brokerServiceUrl": "memory:", "send_timeout": 10, "dead_letter": {"maxRedeliverCount": 3}},
        {"brokerServiceUrl": "memory:", "producer": {"send_timeout": "10"}, "dead_letter.max_redeliver_count": "3"},
    ],
)
def test_it_works_in_a_url_and_in_a_map_with_durations_in_seconds(config: Any) -> None:
    assert load(config) == load("memory:", send_timeout=10, dead_letter=DeadLetterPolicy(max_redeliver_count=3))


def test_a_keyword_wins_over_what_was_written_and_over_a_whole_object() -> None:
    assert load("memory:?producerConfig.sendTimeoutMs=5", send_timeout=2).producer.send_timeout == 2
    assert load("memory:?send_timeout=1", send_timeout=2).producer.send_timeout == 2
    both = load("memory:", producer=ProducerConfig(producer_name="p", send_timeout=1), send_timeout=2).producer
    assert both == ProducerConfig(producer_name="p", send_timeout=2)
    assert load("memory:", producer={"producer_name": "p"}, send_timeout=2).producer == both


@pytest.mark.parametrize(
    ("config", "options", "key"),
    [
        ("memory:?producerConfig.sendTimeoutMs=5&send_timeout=1", {}, "producerConfig.sendTimeoutMs"),
        ("memory:?producer.send_timeout=5&send_timeout=1", {}, "send_timeout"),
        ("memory:?consumerConfig.deadLetterPolicy.maxRedeliverCount=1&dead_letter.max_redeliver_count=2", {},
         "deadLetterPolicy"),
        ("memory:", {"producer": {"sendTimeoutMs": 5}, "send_timeout": 1}, "send_timeout"),
    ],
)  # fmt: skip
def test_an_option_given_twice_is_refused(config: str, options: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigurationError, match="is given twice") as caught:
        load(config, **options)
    assert caught.value.key == key


def test_a_name_that_two_sections_have_is_refused_with_the_two_ways_to_write_it() -> None:
    words = re.escape("give producer={'properties': ...} or consumer={'properties': ...}")
    with pytest.raises(ConfigurationError, match=words) as caught:
        load("memory:", properties={"team": "hidden"})  # type: ignore[call-arg]  # wrong on purpose
    assert caught.value.key == "properties"
    assert "hidden" not in str(caught.value)
    with pytest.raises(ConfigurationError, match=words):
        load("memory:?properties.team=x")
    assert "properties" not in KEYWORDS
    assert find_keyword("ack_timeout").section is Section.CONSUMER


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("sned_timeout", "did you mean 'send_timeout'?"),
        ("sendTimeoutMs", "did you mean 'send_timeout'?"),
        ("recieve_queue_size", "did you mean 'receiver_queue_size'?"),
        ("numIoThreads", "did you mean 'io_threads'?"),
        ("deadLetterPolicy", "did you mean 'dead_letter'?"),
        ("max_redeliver_count", "did you mean dead_letter={'max_redeliver_count': ...}?"),
        ("maxRedeliverCount", "did you mean dead_letter={'max_redeliver_count': ...}?"),
        ("minDelayMs", "did you mean ack_timeout_backoff={'min_delay': ...}?"),
        ("producerConfig", "did you mean 'producer'?"),
        ("zzz", ""),
    ],
)
def test_a_misspelt_keyword_finds_the_nearest_one_of_all_sections(name: str, hint: str) -> None:
    wrong: dict[str, Any] = {name: 1}
    with pytest.raises(ConfigurationError) as caught:
        load("memory:", **wrong)
    assert str(caught.value).startswith(f"unknown option {name!r}")
    assert str(caught.value).partition("; ")[2] == hint


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("sned_timeout=1", "'send_timeout'"),
        ("sendTimeout=1", "'send_timeout'"),
        ("consumerConfig.sendTimeoutMs=1", "'producerConfig.sendTimeoutMs'"),
        ("consumerConfig.maxRedeliverCount=1", "'consumerConfig.deadLetterPolicy.maxRedeliverCount'"),
        ("consumerConfig.clientId=1", "'jms.clientId'"),
        ("producerConfig.receiverQueueSize=1", "'consumerConfig.receiverQueueSize'"),
        ("maxDelayMs=1", "'consumerConfig.ackTimeoutRedeliveryBackoff.maxDelayMs'"),
    ],
)
def test_a_misspelt_written_name_finds_the_nearest_one_of_all_sections(written: str, hint: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(f"memory:?{written}")
    assert str(caught.value).endswith(f"; did you mean {hint}?")
