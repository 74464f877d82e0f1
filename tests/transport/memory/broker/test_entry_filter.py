"""The filter plugin that the embedded broker plays: its verdicts, and what follows from them."""

from __future__ import annotations

import pytest

from jmsaio.config import ConsumerConfig
from jmsaio.errors import InvalidSelectorError
from jmsaio.model.wire import OutgoingRecord
from jmsaio.transport.base import SubscriptionType
from jmsaio.transport.memory.broker.entry_filter import RESCHEDULED, Verdict, check_playable, judge
from jmsaio.transport.memory.broker.partition import weigh
from tests.transport.memory.bench import Bench, FakePort

ON = {"jms.filtering": "true"}
ACCEPT, REJECT, RESCHEDULE = Verdict.ACCEPT, Verdict.REJECT, Verdict.RESCHEDULE


def add(bench: Bench, number: int) -> None:
    """Store a record with the property n."""
    record = OutgoingRecord(str(number).encode(), {"n": str(number), "n_jsmtype": "int"}, None, 0)
    bench.log.append(record, weigh(record), 0, bench.clock.now())


@pytest.mark.parametrize(
    ("metadata", "properties", "verdict"),
    [
        ({}, {}, ACCEPT),
        ({"jms.selector": "n = 2"}, {}, ACCEPT),  # jms.filtering is missing
        (ON, {}, ACCEPT),
        ({**ON, "jms.selector": "n = 1"}, {}, ACCEPT),
        ({**ON, "jms.selector": "n = 2"}, {}, RESCHEDULE),
        ({**ON, "jms.selector": "n = 2", "jms.selector.reject.action": "drop"}, {}, REJECT),
        ({**ON, "jms.selector": "n = 2", "jms.force.drop.rejected": "true"}, {}, REJECT),
        ({**ON, "jms.selector": "n =="}, {}, RESCHEDULE),
        ({**ON, "jms.selector": "JMSMessageID = 'x'"}, {}, RESCHEDULE),  # the plugin fails on it
        ({}, {"jms.selector": "n = 2"}, ACCEPT),
        ({}, {**ON, "jms.selector": "n = 2"}, REJECT),
        ({}, {**ON, "jms.selector": "n = 1"}, ACCEPT),
        ({"jms.selector": "n = 2"}, {**ON, "jms.selector": "n = 1"}, RESCHEDULE),
        ({}, {**ON, "jms.selector": "NOT n = 2"}, ACCEPT),  # the plugin reads (NOT n) = 2
        ({}, {**ON, "jms.selector": "n <> 'a'"}, ACCEPT),  # JMS takes unlike types for neither
    ],
)  # fmt: skip
def test_the_verdict_on_a_record(metadata: dict[str, str], properties: dict[str, str], verdict: Verdict) -> None:
    bench = Bench()
    bench.subscribe()
    add(bench, 1)
    [record] = bench.log.records.values()
    assert judge(record, metadata, properties) is verdict


@pytest.mark.parametrize("text", ["REGEX('a', s)", "n % 2 = 1", "JMSDestination = 'queue://q'"])
def test_what_only_the_plugin_has_is_refused(text: str) -> None:
    with pytest.raises(InvalidSelectorError, match=r"the embedded broker evaluates .* by the rules of JMS") as caught:
        check_playable({**ON, "jms.selector": text})
    assert caught.value.text == text
    for fine in ({}, {**ON, "jms.selector": "NOT n = 2"}, {**ON, "jms.selector": "n =="}):
        check_playable(fine)


@pytest.mark.parametrize("type_", list(SubscriptionType))
def test_what_a_subscription_excludes_is_removed_and_the_rest_comes_in_order(type_: SubscriptionType) -> None:
    bench = Bench()
    bench.broker.filters = True
    subscription = bench.subscribe()
    subscription.properties.update({**ON, "jms.selector": "n >= 3"})
    for number in range(5):
        add(bench, number)
    consumer = bench.join(subscription, type_)
    add(bench, 1)
    add(bench, 5)
    assert [record.payload for record in consumer.receive(10)] == [b"3", b"4", b"5"]
    assert subscription.size == 3 and len(bench.log.records) == 3


def test_what_no_consumer_selects_is_offered_again_each_second() -> None:
    bench = Bench()
    bench.broker.filters = True
    subscription = bench.subscribe()
    low, high = (
        subscription.join(FakePort(), SubscriptionType.SHARED, ConsumerConfig(), 10, {**ON, "jms.selector": selector})
        for selector in ("n < 2", "n > 3")
    )
    for number in range(6):
        add(bench, number)
    assert [record.payload for record in low.receive(10)] == [b"0", b"1"]
    assert [record.payload for record in high.receive(10)] == [b"4", b"5"]
    assert subscription.size == 6
    rest = bench.join(subscription)
    assert rest.receive(10) == []
    bench.clock.advance(RESCHEDULED)
    bench.broker.tick()
    assert [record.payload for record in rest.receive(10)] == [b"2", b"3"]


def test_a_key_is_free_again_when_its_record_was_held_back() -> None:
    bench = Bench()
    bench.broker.filters = True
    subscription = bench.subscribe()
    metadata = {**ON, "jms.selector": "n = 1", "jms.selector.reject.action": "drop"}
    first = subscription.join(FakePort(), SubscriptionType.KEY_SHARED, ConsumerConfig(), 10, metadata)
    for number in (0, 1):
        sent = OutgoingRecord(b"%d" % number, {"n": str(number), "n_jsmtype": "int"}, "key", 0)
        bench.log.append(sent, weigh(sent), 0, bench.clock.now())
    [record] = first.receive(10)
    assert record.payload == b"1"
    subscription.acknowledge(first, [record])
    assert subscription.size == 0 and not subscription._policy._owners  # type: ignore[attr-defined]  # of ByKey
